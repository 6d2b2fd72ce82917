"""Generated parts of the README and of ``believe.md``: the example run, and four GEMM orders that were counted.

Source of the four orders' counters: ROCm gfx950-gluon-tutorials, GEMM v8, M = N = 4096, K = 8192, fp16, both operands
K-contiguous, tile 256 x 256 x 64, 256 workgroups, one a CU; 16,777,216 L1-to-L2 reads in every order.
"""

from __future__ import annotations

import csv

import numpy as np

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import Gpu, Trace, TraceBuilder, gpu, prepare, replay_lockstep
from xcd_model.replay.traffic import READ_MISSES

from ...validation.rows import DATA

BEST = "longest_first(size=16)"  # what `make run` advises
GAINS = "longest_first(size=8)"  # the tool's choice of a bundle of an H200


def run_words() -> str:
    """A paragraph: the launch order of causal attention against the order that `make run` advises."""
    scorer = Scorer(kernel("attention", CAUSAL=1, H=64, S=2048), gpu("mi300x"), replay="timed")
    launched, best = scorer.baseline, scorer.score(Swizzle.parse(family(BEST)))
    if launched.balance is None or best.speedup < 1.2 or best.l2_hit_rate < 1.5 * launched.l2_hit_rate:
        raise ValueError(f"{BEST} no longer gains what the paragraph says: write it anew")
    return "\n".join(
        [
            "In launch order every XCD reads all 64 heads, and one XCD always gets the long rows. L2 hit rate: "
            f"{100 * launched.l2_hit_rate:.1f} %; the last XCD",
            f"ends {launched.balance.last_over_first:.1f} times as late as the first. With `{BEST}`: "
            f"{100 * best.l2_hit_rate:.1f} %, and {best.time_us:.0f} µs for {launched.time_us:.0f} (simulated).",
            "On MI300X such predictions are unproven, so the answer is *measure it*.",
        ]
    )


def gain_words() -> str:
    """A sentence: the gain that was predicted for causal attention on an H200 before it was measured."""
    tables = []
    for name, column in (("h200_bundles_predicted.csv", "time_us"), ("h200_bundles.csv", "time_cold_us")):
        with (DATA / name).open(encoding="utf-8", newline="") as lines:
            rows = [line for line in csv.DictReader(lines) if line["kernel"] == "attention"]
        tables.append({line["order"]: float(line[column]) for line in rows})
    predicted, measured = (100 * (of[GAINS] / of["as launched"] - 1) for of in tables)
    return (
        f"Causal attention of 64 heads and 4096 keys on an H200, `{GAINS}` in place of the launch order: time predicted"
        f"\n**{predicted:+.1f} %**, measured **{measured:+.1f} %**; predicted and committed before it was measured."
    )


MEASURED = {  # order: L2 read misses, in 128-byte requests
    "identity": 4_754_139,
    "contiguous+row": 4_870_303,
    "contiguous+group_m(size=4)": 3_148_321,
    "contiguous+group_m(size=6)": 3_147_765,
}
READS = 16_777_216
TILES = (16, 16)


def tutorial_trace() -> Trace:
    """Loads of the tutorial's kernel: A (M x K) and the transposed B (N x K), both row-major, no stores."""
    pid_m, pid_n = np.divmod(np.arange(256), TILES[1])
    build = TraceBuilder(n_workgroups=256, line_bytes=128)
    a = build.array("A", rows=4096, cols=8192, item_bytes=2)
    b = build.array("B", rows=4096, cols=8192, item_bytes=2)
    k = np.arange(0, 8192, 64)[None, :]
    row, col = pid_m[:, None] * 256, pid_n[:, None] * 256
    build.step(build.read(a, row=row, col=k, rows=256, cols=64), build.read(b, row=col, col=k, rows=256, cols=64))
    return build.trace()


def read_misses(device: Gpu, workload: Trace) -> dict[str, int]:
    """L2 read misses of each order in the lockstep replay."""
    plan = prepare(workload, device)
    orders = {name: Swizzle.parse(family(name)).permutation(Grid((256,), TILES), device.xcds) for name in MEASURED}
    return {
        name: replay_lockstep(plan, order, workgroups_per_cu=1).total(READ_MISSES) for name, order in orders.items()
    }
