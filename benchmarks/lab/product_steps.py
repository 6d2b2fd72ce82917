"""Time of a step of a product in two stages by how many workgroups an SM holds, and the same steps in the model.

``product-steps`` times `product_steps_triton.py` into ``product_steps.csv``: one wave of one to seven workgroups an SM,
whose operands stay in the L2. ``product-steps-replay`` compiles and replays each line as a user's kernel.
``SWIZZLE_SIM_TRITON`` names the Triton that the node had.
"""

# ruff: noqa: PLC0415  torch is there only where the GPU is

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
K, COLUMNS, SMS = 2048, 22, 132  # depth until steps begin again, tiles of B side by side
FEW, MANY = 512, 1536  # steps
PRODUCTS = (  # type, tile, waves, scales
    ("fp8", (64, 64, 128), 4, True),
    ("fp8", (64, 64, 128), 4, False),
    ("bf16", (64, 64, 32), 4, False),
    ("bf16", (64, 64, 64), 4, False),
    ("bf16", (64, 128, 64), 4, False),
    ("bf16", (128, 64, 64), 4, False),
    ("bf16", (128, 128, 64), 8, False),
)
COLUMN_NAMES = ("type", "block_m", "block_n", "block_k", "waves", "scales", "registers", "workgroups_per_sm", "us")


def product_steps(folder: Path) -> None:
    """Time steps on a GPU of 132 SMs; as many workgroups as fit."""
    with (folder / "product_steps.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMN_NAMES)
        for kind, tile, waves, scales in PRODUCTS:
            for held in range(1, 8):
                compiled, few = _timed(kind, tile, waves, scales, held, FEW)
                fit = min(
                    65536 // (-(-compiled.n_regs // 8) * 256 * waves), 232448 // (compiled.metadata.shared + 1024)
                )
                if held > fit:
                    break
                _, many = _timed(kind, tile, waves, scales, held, MANY)
                line = (kind, *tile, waves, int(scales), compiled.n_regs, held, f"{(many - few) / (MANY - FEW):.4f}")
                table.writerow(line)
                print(*line, flush=True)


def _timed(kind: str, tile: tuple[int, int, int], waves: int, scales: bool, held: int, steps: int) -> tuple[Any, float]:
    """Compiled kernel, and microseconds of a launch: of seven times the median, of four launches each."""
    import torch

    kernel = importlib.import_module("swizzle_benchmarks.lab.product_steps_triton").product_steps
    block_m, block_n, block_k = tile
    rows, cols = SMS * held // COLUMNS * block_m, COLUMNS * block_n
    dtype = {"fp8": torch.float8_e4m3fn, "bf16": torch.bfloat16}[kind]
    a, b = (torch.zeros(n, K, device="cuda").to(dtype) for n in (rows, cols))
    a_scale = torch.ones(K // block_k, rows, device="cuda")
    b_scale = torch.ones(cols // 128 + 1, K // block_k, device="cuda")
    c = torch.empty(rows, cols, device="cuda", dtype=torch.bfloat16)

    def launch() -> Any:
        return kernel[(SMS * held,)](
            *(a, b, a_scale, b_scale, c, rows, steps), N=cols, K=K, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_K=block_k, SCALED=scales, num_warps=waves, num_stages=2,
        )  # fmt: skip

    compiled, took = launch(), []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(4):
            launch()
        end.record()
        end.synchronize()
        took.append(1e3 * begin.elapsed_time(end) / 4)
    return compiled, median(took)


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
