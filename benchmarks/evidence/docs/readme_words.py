"""Generated parts of the README and of ``believe.md``: gains, the example run, and four GEMM orders that were counted.

Source of the four orders' counters: ROCm gfx950-gluon-tutorials, GEMM v8, M = N = 4096, K = 8192, fp16, both operands
K-contiguous, tile 256 x 256 x 64, 256 workgroups, one a CU; 16,777,216 L1-to-L2 reads in every order.
"""

from __future__ import annotations

import csv
from functools import cache

import numpy as np

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import Gpu, Trace, TraceBuilder, gpu, prepare, replay_lockstep
from xcd_model.replay.traffic import READ_MISSES

from ...validation.amd import scores, tables
from ...validation.rows import DATA

SHAPE = ("B", "H", "HKV", "S", "CAUSAL")
HERE, PUBLISHED = "measured; committed before", "published by AMD; not fitted to"
BEST = "longest_first(size=16)"  # what `make run` advises


@cache
def _attention() -> dict[str, Score]:
    """The kernel of `make run` and of the tutorial, and its scores by order."""
    scorer = Scorer(kernel("attention", CAUSAL=1, H=64, S=2048), gpu("mi300x"), replay="timed")
    scores = {
        name: scorer.score(Swizzle.parse(family(name)))
        for name in ("contiguous+column", BEST, "longest_first(size=32)")
    }
    return {"launch order": scorer.baseline, **scores}


def run_words() -> str:
    """A paragraph: the launch order of causal attention against the order that `make run` advises."""
    launched, best = (_attention()[name] for name in ("launch order", BEST))
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


def tutorial_words() -> str:
    """A table: the three orders that the tutorial scores."""
    lines = ["| order | L2 hit rate | time | time over that of even work |", "| --- | --- | --- | --- |"]
    for name, score in _attention().items():
        even = score.balance.over_ideal if score.balance else 1.0
        said = f"{100 * score.l2_hit_rate:.1f} % | {score.time_us:.0f} µs | {even:.2f}"
        lines.append(f"| {name if name == 'launch order' else f'`{name}`'} | {said} |")
    return "\n".join(lines)


def gain_words() -> str:
    """A table of gains: what the tool chose for bundles of an H200, and orders of MI300X that AMD timed."""
    names = ("GPU", "kernel", "order", "time, predicted", "time, measured", "status")
    rows = [" | ".join(names), " | ".join(["---"] * len(names)), *_h200_rows(), *_mi300x_rows()]
    return "\n".join(f"| {row} |" for row in rows)


def _h200_rows() -> list[str]:
    """Of each bundle the gain of the order that the tool chose, as committed and as measured."""
    predicted, measured = (_rows(name) for name in ("h200_bundles_predicted.csv", "h200_bundles.csv"))
    rows = []
    for at, line in predicted.items():
        if line["choice"]:
            was = (*at[:2], "as launched")
            said = float(line["time_us"]) / float(predicted[was]["time_us"])
            took = float(measured[at]["time_cold_us"]) / float(measured[was]["time_cold_us"])
            rows.append(f"H200 | {' '.join(at[:2])} | `{at[2]}` | {_gain(said)} | {_gain(took)} | {HERE}")
    return rows


def _mi300x_rows() -> list[str]:
    """Of causal shapes that chose no constant the launched order of the least predicted time, over the plain one."""
    rows = []
    for shape, speed in tables.attention().items():
        lines = {one: scores.replayed()["attention", " ".join(map(str, shape)), one] for one in speed}
        times = {one: float(line["timed_us"]) for one, line in lines.items() if one.startswith("launched ")}
        plain, best = next(iter(times)), min(times, key=lambda one: times[one])
        if shape[-1] and not int(lines[plain]["chooses"]):
            sizes = " ".join(f"{name}={size}" for name, size in zip(SHAPE, shape, strict=True))
            said, took = _gain(times[best] / times[plain]), _gain(speed[plain] / speed[best])
            order = f"`{best.split()[1]}` for `{plain.split()[1]}`"
            rows.append(f"MI300X | attention {sizes} | {order} | {said} | {took} | {PUBLISHED}")
    return rows


def _gain(ratio: float) -> str:
    return f"{100 * ratio - 100:+.1f} %"


def _rows(name: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """Lines of a table by kernel, sizes and order."""
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return {(one["kernel"], one["problem"], one["order"]): one for one in csv.DictReader(lines)}


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
