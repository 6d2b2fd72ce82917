"""Which L2 index function explains the published L2 misses of four GEMM orders on MI355X.

    python -m benchmarks.fidelity.index

Source of the measured figures: ROCm gfx950-gluon-tutorials, GEMM v8, M = N = 4096, K = 8192, fp16, both operands
K-contiguous, tile 256 x 256 x 64, 256 workgroups, one a CU; 16,777,216 L1-to-L2 reads in every order.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.fidelity.markdown import table
from swizzle_sim.swizzle import Grid, Swizzle, family
from xcd_model import Gpu, Trace, TraceBuilder, gpu, prepare, replay_lockstep
from xcd_model.replay.traffic import READ_MISSES

MEASURED = {  # order: L2 read misses, in 128-byte requests
    "identity": 4_754_139,
    "contiguous+row": 4_870_303,
    "contiguous+group_m(size=4)": 3_148_321,
    "contiguous+group_m(size=6)": 3_147_765,
}
READS = 16_777_216
TILES = (16, 16)


def trace() -> Trace:
    """Loads of the tutorial's kernel: A (M x K) and the transposed B (N x K), both row-major, no stores."""
    pid_m, pid_n = np.divmod(np.arange(256), TILES[1])
    build = TraceBuilder(n_workgroups=256, line_bytes=128)
    a = build.array("A", rows=4096, cols=8192, item_bytes=2)
    b = build.array("B", rows=4096, cols=8192, item_bytes=2)
    k = np.arange(0, 8192, 64)[None, :]
    row, col = pid_m[:, None] * 256, pid_n[:, None] * 256
    build.step(build.read(a, row=row, col=k, rows=256, cols=64), build.read(b, row=col, col=k, rows=256, cols=64))
    return build.trace()


def with_index(device: Gpu, index: str, interleave_bytes: int | None) -> Gpu:
    """Same GPU with another index function in its L2."""
    channels = None if interleave_bytes is None else 16
    l2 = dataclasses.replace(
        device.l2, index=index, index_channels=channels, index_interleave_bytes=interleave_bytes, index_rows=None
    )
    return dataclasses.replace(device, l2=l2)


def read_misses(device: Gpu, workload: Trace) -> dict[str, int]:
    """L2 read misses of each order in the lockstep replay."""
    plan = prepare(workload, device)
    orders = {name: Swizzle.parse(family(name)).permutation(Grid((256,), TILES), device.xcds) for name in MEASURED}
    return {
        name: replay_lockstep(plan, order, workgroups_per_cu=1).total(READ_MISSES) for name, order in orders.items()
    }


def by_order() -> str:
    """Markdown table: measured beside simulated misses, in millions, for each index function."""
    device, workload = gpu("mi355x"), trace()
    choices = {"modulo": ("modulo", None)} | {f"fold, {n} B": ("channel-fold", n) for n in (128, 256, 4096)}
    found = {name: read_misses(with_index(device, *choice), workload) for name, choice in choices.items()}
    lines = []
    for order, measured in MEASURED.items():
        cells = [f"{misses[order] / 1e6:.3f}" for misses in found.values()]
        lines.append([order, f"{measured / 1e6:.3f}", *cells])
    return table(["order", "measured", *found], lines)


if __name__ == "__main__":
    print(by_order(), end="")
