"""Balance against what others published of it: ``python -m swizzle_benchmarks.validation.balance`` prints both tables.

Dense attention under rocke's persistent orders is the workload of its fidelity rows, with the swizzled head-first order
that its study tried on a persistent grid and gave up. The jagged GEMM has a shape of our own: none was published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.pricing.replaying import Replayer, balance_of
from swizzle_sim.pricing.scores import Balance
from xcd_model import Resources, Trace, TraceBuilder, gpu

from .rows import dense_rows
from .workloads.dense_attention import WAYS, items_of
from .workloads.from_row import workload
from .workloads.workload import Workload


@dataclass(frozen=True)
class Case:
    """One order of one workload, replayed in time."""

    name: str
    l2_hit_rate: float
    time_us: float
    balance: Balance

    def row(self, first_us: float) -> str:
        """Line of a Markdown table; ``first_us`` is the time that the speedup is over."""
        cells = [f"{100 * self.l2_hit_rate:.1f}", f"{self.balance.heaviest_over_mean:.2f}"]
        cells += [f"{self.balance.over_ideal:.2f}", f"{self.time_us:.1f}", f"{first_us / self.time_us:.3f}"]
        return f"| {self.name} | {' | '.join(cells)} |"


HEAD = (
    "| order | L2 hit rate [%] | fullest XCD / mean | makespan / ideal | time [us] | speedup |\n" + "| --- " * 6 + "|"
)


def replayed(name: str, work: Workload, device: str, order: np.ndarray) -> Case:
    """Replay one order in time."""
    replayer = Replayer(work, gpu(device), replay="timed")
    traffic = replayer.traffic(order)
    time = replayer.time(traffic)
    return Case(name, traffic.l2_hit_rate, time.total_us, balance_of(traffic, time))


@lru_cache
def attention_cases(device: str) -> tuple[Case, ...]:
    """Persistent orders of causal dense attention, H=32 HKV=8 S=4096, under a persistent grid of a program a CU."""
    row = next(one for one in dense_rows() if one.gpu == device and _is_shape(one))
    work, size = workload(row), dict(row.problem)
    persistent = replace(work, programs=gpu(device).cus)
    xcds, blocks = gpu(device).xcds, -(-size["S"] // size["BM"])
    folded = items_of("persistent bt_hkv_minor", size, xcds)
    orders = {
        "persistent, key heads fastest, blocks upwards": folded // blocks * blocks
        + WAYS["fold"](folded % blocks, blocks),  # a fold undoes itself
        "the same, folded: the second half downwards": folded,
        "persistent, light with heavy of two query heads": items_of("persistent gqa_pair", size, xcds),
        "persistent, swizzled head-first": items_of("launched hq_minor_swz", size, xcds),
    }
    return tuple(replayed(name, persistent, device, order) for name, order in orders.items())


def _is_shape(row) -> bool:
    size = row.problem
    return (size["B"], size["H"], size["S"], size["CAUSAL"]) == (1, 32, 4096, 1)


GROUPS, MOST_TILES, COLUMNS, STEPS, BLOCK = 64, 16, 4, 32, 128  # of the jagged GEMM, in tiles of BLOCK x BLOCK


def jagged_lengths(vary: bool) -> np.ndarray:
    """(GROUPS,) row tiles of each group: all half of the most, or drawn from 1 to the most."""
    if not vary:
        return np.full(GROUPS, MOST_TILES // 2)
    return np.random.default_rng(0).integers(1, MOST_TILES, GROUPS)


def jagged_gemm(vary: bool) -> Workload:
    """GEMM of groups of unequal length, launched for the longest: workgroups past its end read where that is."""
    tiles = jagged_lengths(vary)
    n = GROUPS * MOST_TILES * COLUMNS
    group, row, column = np.unravel_index(np.arange(n), (GROUPS, MOST_TILES, COLUMNS))

    def trace(line_bytes: int) -> Trace:
        build = TraceBuilder(n_workgroups=n, line_bytes=line_bytes)
        k, first = STEPS * 64, np.concatenate([[0], np.cumsum(tiles)])
        a = build.place("A", shape=(int(first[-1]) * BLOCK, k), item_bytes=2)
        b = build.place("B", shape=(GROUPS, k, COLUMNS * BLOCK), item_bytes=2)
        c = build.place("C", shape=(int(first[-1]) * BLOCK, COLUMNS * BLOCK), item_bytes=2)
        ends = build.place("ends", shape=(GROUPS,), item_bytes=8)
        build.step(build.read_box(ends, at=(group,), size=(1,)))  # all that is done past the end of a group
        high = np.where(row < tiles[group], BLOCK, 0)
        at = np.minimum(first[group] + row, first[-1] - 1) * BLOCK
        step = np.arange(0, k, 64)[None, :]
        build.step(
            build.read_box(a, at=(at[:, None], step), size=(high[:, None], 64)),
            build.read_box(b, at=(group[:, None], step, column[:, None] * BLOCK), size=(high[:, None] > 0, 64, BLOCK)),
        )
        build.step(build.write_box(c, at=(at, column * BLOCK), size=(high, BLOCK)))
        return build.trace()

    flops = 2.0 * int(tiles.sum()) * COLUMNS * BLOCK * BLOCK * STEPS * 64
    return Workload(
        name="jagged_gemm",
        problem={},
        dtype="bf16",
        resources=Resources(threads=256, vgprs=256, lds_bytes=32768, instructions_in_flight=2, source="assumed"),
        flops=flops,
        issued_flops=flops,
        build_trace=trace,
        grid=(n,),
        tiles=(GROUPS * MOST_TILES, COLUMNS),
    )


@lru_cache
def jagged_cases(device: str, vary: bool) -> tuple[Case, ...]:
    """Launch order, each XCD one run of groups, and chunks of a group."""
    work = jagged_gemm(vary)
    grid = Grid((GROUPS * MOST_TILES * COLUMNS,), (GROUPS * MOST_TILES, COLUMNS))
    specs = ("identity", "contiguous", f"chunked(chunk={MOST_TILES * COLUMNS})")
    orders = {spec: Swizzle.parse(family(spec)).permutation(grid, gpu(device).xcds) for spec in specs}
    return tuple(replayed(spec, work, device, order) for spec, order in orders.items())


def main() -> None:
    """Print the tables."""
    for device in ("mi355x", "mi300x"):
        _table(f"Causal dense attention on {device}", attention_cases(device))
    for vary in (False, True):
        _table(
            f"Jagged GEMM on mi300x, groups of {'unequal' if vary else 'equal'} length",
            jagged_cases("mi300x", vary),
        )


def _table(title: str, cases: tuple[Case, ...]) -> None:
    print(f"\n{title}\n\n{HEAD}")
    for case in cases:
        print(case.row(cases[0].time_us))


if __name__ == "__main__":
    main()
