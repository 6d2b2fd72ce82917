"""Reader of rocprofv3's ``kernel_trace.csv``: durations, of ROCm 6 and 7 and of ``rocpd convert``."""

from __future__ import annotations

import csv
from pathlib import Path

from swizzle_sim.hardware.node.dispatches import Dispatch

_SIZES = tuple(f"{what}_{axis}" for what in ("workgroup_size", "grid_size") for axis in "xyz")
OLD_LDS = "group_segment_size"  # of ROCm 6
_KEPT = (
    "lds_block_size",
    "agent_id",
    "stream_id",
    "vgpr_count",
    "accum_vgpr_count",
    "sgpr_count",
    "scratch_size",
    *_SIZES,
)


def read_trace(path: Path) -> tuple[list[Dispatch], list[str]]:
    """Kernel dispatches with their durations [ns]; grid sizes are in work-items, as the file has them."""
    found, notes = [], []
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = text.splitlines()
    if lines and not text.endswith("\n"):
        notes.append(f"{path.name}: ends within a line, which is left out")
        lines.pop()
    for number, raw in enumerate(csv.DictReader(lines), start=2):
        row = {name.lower(): cell for name, cell in raw.items() if name is not None}
        if row.get("kind") not in (None, "KERNEL_DISPATCH"):
            continue
        try:
            duration = float(row["end_timestamp"]) - float(row["start_timestamp"])
            one = Dispatch(int(row["dispatch_id"]), row["kernel_name"], {}, duration)
        except (KeyError, TypeError, ValueError):
            notes.append(f"{path.name}:{number}: incomplete row left out")
            continue
        one.about = {name: row[name] for name in _KEPT if row.get(name)}
        if row.get(OLD_LDS):
            one.about["lds_block_size"] = row[OLD_LDS]
        found.append(one)
    return found, notes
