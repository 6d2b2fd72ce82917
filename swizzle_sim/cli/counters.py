"""``counters``: a profiler's own file explained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from swizzle_sim.cli.arguments import Json, known_gpus, option
from swizzle_sim.cli.output import fixed, line, pct, print_json, table_of

Of = Annotated[str | None, option("--gpu", help="GPU that was counted; else by the counters.", offers=known_gpus)]
SHOWN = 40  # launches in the table


def counters(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Of rocprofv3 (CSV, JSON, rocpd) or ncu (--csv --page raw).")
    ],
    gpu: Of = None,
    json: Json = False,
) -> None:
    """Explain a profiler's own file: L2 hit rate and bytes of each launch, the formulas, and what is doubtful."""
    from swizzle_sim.hardware.readers import explained, read_profile
    from xcd_model import gpu as gpu_named

    profile = read_profile(file)
    found = explained(profile, gpu_named(gpu).arch if gpu else "")
    if json:
        about = {"format": profile.format, "arch": found.arch}
        formulas = [{"formula": str(one), "source": one.source} for one in found.formulas]
        print_json({**about, "launches": list(found.launches), "formulas": formulas, "doubts": list(found.doubts)})
        return
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "launch": lambda row: str(row["number"]),
        "time [µs]": lambda row: fixed(row["time_us"]),
        "L2 hit rate [%]": lambda row: pct(row["l2_hit_rate"]),
        "read [GB]": lambda row: fixed(row["read_bytes"], 1e-9, 3),
        "written [GB]": lambda row: fixed(row["write_bytes"], 1e-9, 3),
    }
    rows = [(row["kernel"][:60], row) for row in found.launches[:SHOWN]]
    more = len(found.launches) - len(rows)
    note = f"{more} more launches: --json" if more else ""
    table_of(
        f"{file}: {profile.format}, taken for {found.arch.replace('sm_', 'NVIDIA')}", "kernel", columns, rows, note=note
    )
    for one in found.formulas:
        line(f"{one} ({one.source})")
    if found.arch.startswith("gfx") and found.formulas:
        line("_sum is over all channels of all XCDs (16 channels an XCD; 8 XCDs on MI300X and MI355X in SPX mode)")
    for doubt in found.doubts:
        line(f"doubt: {doubt}")
