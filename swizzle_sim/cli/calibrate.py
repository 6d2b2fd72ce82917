"""``calibrate``: constants of this machine's GPU, measured, beside its description, and a description made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from swizzle_sim.cli.arguments import GpuName, Json, option
from swizzle_sim.cli.output import line, print_json, table, table_of
from xcd_model.errors import HardwareError
from xcd_model.files import read_text

Out = Annotated[Path | None, option("--out", "-o", metavar="FILE.toml", help="Description to write.")]
Kept = Annotated[Path | None, option("--csv", metavar="FILE", help="Where to keep what the program printed.")]
Given = Annotated[
    Path | None, option("--measured", metavar="FILE", help="What the program printed elsewhere: measures nothing.")
]


def calibrate(
    gpu: GpuName = "mi300x", out: Out = None, csv: Kept = None, measured: Given = None, json: Json = False
) -> None:
    """Measure this machine's GPU (with nvcc or hipcc, 20 s) and write its description; --gpu: the one to start from."""
    from swizzle_sim.hardware import calibrate as calibration
    from xcd_model import gpu as gpu_named
    from xcd_model.spec.load import load_gpu, shipped

    device = gpu_named(gpu)
    try:
        text = calibration.measure() if measured is None else read_text(measured)
        if csv:
            csv.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HardwareError(f"{measured or csv}: {error.strerror}") from None
    name, lines = calibration.read(text)
    found = calibration.facts(lines, device)
    rows, functions = calibration.compared(found, device), calibration.indices(lines, device)
    kept = calibration.lines_kept(lines, device)
    if out:
        base = Path(gpu) if gpu.endswith(".toml") else shipped(gpu.partition("-")[0])
        made = calibration.description(base.read_text(encoding="utf-8"), name, found, device)
        out.write_text(made, encoding="utf-8")
        load_gpu(out)  # refuses what is no description
    if json:
        print_json(
            {
                **{"kind": "measured", "on": name, "gpu": device.name, "facts": rows, "l2_lines_kept": kept},
                **{"index": functions, "strides": len(kept), "round_robin": calibration.is_round_robin(lines)},
                "out": str(out) if out else None,
            }
        )
        return
    _print(name, rows, functions, kept, calibration.is_round_robin(lines))
    if out:
        print(out)


def _print(
    name: str, rows: list[dict[str, Any]], functions: dict[str, int], kept: dict[int, int], in_turn: bool | None
) -> None:
    def figure(value: Any) -> str:
        return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "measured": lambda row: figure(row["measured"]),
        "described": lambda row: figure(row["described"]),
        "status": lambda row: row["status"],
        "off [%]": lambda row: "-" if row["percent"] is None else f"{row['percent']:+.1f}",
    }
    note = f"measured on {name}; described: the GPU's description, with the status of that figure"
    table_of("Constants", "constant", columns, [(row["key"], row) for row in rows], note=note)
    strides = [(f"{stride:,}", f"{n:,}") for stride, n in kept.items()]
    table("Lines that the L2 keeps", ("stride [B]", "lines"), strides, left=0, note="powers of two")
    agree = [(words, f"{n} of {len(kept)}") for words, n in functions.items()]
    table("Index functions of the L2", ("function", "strides at which it keeps as many"), agree)
    if in_turn is not None:
        words = "in turn" if in_turn else "in another order than in turn"
        line(f"workgroups come to XCDs {words}")
