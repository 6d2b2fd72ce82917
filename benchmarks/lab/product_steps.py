"""Steps of a product in two stages by how many workgroups an SM holds, replayed beside the measured ones.

Each line is compiled and replayed as a user's kernel. ``SWIZZLE_SIM_TRITON`` names the Triton that the node had.
"""

# ruff: noqa: PLC0415  torch is there only where the GPU is

from __future__ import annotations

import csv
from pathlib import Path

HERE = Path(__file__).resolve().parent
K, COLUMNS, SMS = 2048, 22, 132  # depth until steps begin again, tiles of B side by side
FEW, MANY = 512, 1536  # steps


def simulated(line: dict[str, str]) -> float:
    """Microseconds of a line's step in the model, between launches of which both have been all through memory."""
    from swizzle_sim.capture.occupancy import compiled_for
    from swizzle_sim.capture.user_kernel import load
    from swizzle_sim.pricing.scoring import Scorer
    from xcd_model import gpu

    device, times = gpu("h200"), []
    sizes = {name.upper(): int(line[name]) for name in ("block_m", "block_n", "block_k")}
    sizes |= {"HELD": int(line["workgroups_per_sm"]), "SCALES": 1 + int(line["scales"])}
    few = max(32, K // sizes["BLOCK_K"])
    for steps in (few, few + 64):
        declared = f"{HERE / 'product_steps_declared.py'}:{line['type']}_{line['waves']}"
        kernel = compiled_for(load(declared, {**sizes, "STEPS": steps}, device.arch), device)
        times.append(Scorer(kernel, device).baseline.time_us)
    return (times[1] - times[0]) / 64


def measured_steps() -> list[dict[str, str]]:
    """Lines of the measured table."""
    from swizzle_benchmarks.validation.rows import DATA

    with (DATA / "machine" / "h200_product_steps.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def product_steps_replayed() -> None:
    """Print measured and simulated microseconds a step."""
    print("| type | tile | workgroups an SM | measured, us | simulated, us | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for line in measured_steps():
        measured, found = float(line["us"]), simulated(line)
        error = 100 * (found / measured - 1)
        print(
            f"| {named(line)} | {line['workgroups_per_sm']} | {measured:.3f} | {found:.3f} | {error:+.0f} % |",
            flush=True,
        )


def named(line: dict[str, str]) -> str:
    """Type and tile of a line, in two columns."""
    tile = " x ".join(line[name] for name in ("block_m", "block_n", "block_k"))
    return f"{line['type']}{', scales' * int(line['scales'])} | {tile}"
