"""``python -m swizzle_benchmarks.evidence.speed.suite``: ratios of each suite kernel, in Markdown.

    trace -> plan -> bound                    once a kernel and GPU
                  -> lockstep or timed        once a candidate; a kernel launched repeatedly: one launch of it

Default sizes, of the paper's ten those that it measured, in launch order on MI300X. What is done once is given as a
multiple of a timed candidate; a replay by its rate over that of two plain LRU caches of the L2's sets and ways on the
first lines that XCD 0 touches in lockstep: `lru.cpp`, a few lines of C++ that count no more than hits, and pycachesim.
A test holds their hits to ours. Times are CPU time of one core: medians of three of a candidate, single runs of what is
done once. *All cores*: so many candidates at once as there are cores, as a search replays them, by the clock on the
wall, over the rate of one core. A second table has what a size costs over that of another: ragged rows, and twice as
much in each dimension.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import Kernel, kernel, kernel_names
from xcd_model import Gpu, gpu, hit_rate_bound, replay_lockstep, replay_timed
from xcd_model.cache.packed import BY_LINE, BY_TILE, NO_L1

from ..paper.scored_suite import PAPER
from . import peers

REPEATS = 3
PEER_LINES, PYCACHESIM_LINES = 1 << 24, 1 << 22
L1 = {NO_L1: "", BY_TILE: "tile", BY_LINE: "line"}
HEAD = (
    *("kernel", "M accesses", "sets simulated", "L1 by", "trace / timed", "plan / timed", "bound / timed"),
    *("lockstep / C++", "timed / C++", "timed / pycachesim", "all cores / one, lockstep", "all cores / one, timed"),
)
CUBE = {"M": 4096, "N": 4096, "K": 4096}
SHAPE = {"H": 8, "S": 8192}
SIZES = (  # one size of a kernel, and another
    ("gemm", CUBE, dict.fromkeys(CUBE, 4000)),
    *(("gemm", CUBE, {**CUBE, key: 8192}) for key in CUBE),
    *(("attention", SHAPE, {**SHAPE, key: 2 * n}) for key, n in SHAPE.items()),
)


@dataclass(frozen=True)
class Row:
    """One kernel: line accesses, share of L2 sets simulated, how the L1 is replayed, stages [CPU s], rates [1/s]."""

    name: str
    accesses: int
    simulated: float
    l1: str
    seconds: dict[str, float]
    all_cores: tuple[float, ...]
    plain_lru: float
    pycachesim: float

    def cells(self) -> list[str]:
        """One string a column."""
        rates = [self.accesses / self.seconds[stage] for stage in ("lockstep", "timed")]
        return [
            f"`{self.name}`{' *' if self.name in PAPER else ''}",
            f"{self.accesses / 1e6:.1f}",
            f"{100 * self.simulated:.1f} %",
            self.l1,
            *(f"{self.seconds[stage] / self.seconds['timed']:.2f}" for stage in ("trace", "plan", "bound")),
            *(f"{rate / self.plain_lru:.2f}" for rate in rates),
            f"{rates[1] / self.pycachesim:.2f}",
            *(f"{every / one:.1f}" for every, one in zip(self.all_cores, rates, strict=True)),
        ]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, and what it gave."""
    began = time.process_time()
    got = call()
    return time.process_time() - began, got


def rate_of_all_cores(call: Callable[[], Any], accesses: int) -> float:
    """Line accesses a second, by the clock on the wall, of as many threads of calls as there are cores."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        began = time.perf_counter()
        list(pool.map(lambda _: call(), range(REPEATS * cores)))
        return accesses * REPEATS * cores / (time.perf_counter() - began)


def host() -> str:
    """Processor and cores of this machine."""
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in told if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def stages(scorer: Scorer) -> tuple[dict[str, float], list[Callable[[], Any]]]:
    """CPU seconds of each stage of a kernel, and its two replays; what it calls has been compiled before."""
    seconds = {}
    seconds["trace"], _ = timed(lambda: scorer.trace)
    seconds["plan"], plan = timed(lambda: scorer.plan)
    seconds["bound"], _ = timed(lambda: hit_rate_bound(plan))
    order, occupancy = np.arange(plan.n_workgroups), scorer.occupancy
    replays = {
        "lockstep": lambda: replay_lockstep(plan, order, workgroups_per_cu=occupancy),
        "timed": lambda: replay_timed(plan, order, workgroups_per_cu=occupancy, issue=scorer.issue_model),
    }
    for stage, replay in replays.items():
        seconds[stage] = statistics.median(timed(replay)[0] for _ in range(REPEATS))
    return seconds, list(replays.values())


def row(work: Kernel, device: Gpu) -> Row:
    """Time one kernel beside its peers."""
    scorer = Scorer(work, device)
    seconds, replays = stages(scorer)
    trace, plan = scorer.trace, scorer.plan
    lines = peers.stream_of_xcd(trace, device, 0, PEER_LINES, scorer.occupancy)
    plain = statistics.median(peers.plain_lru(lines, device.l2)[0] for _ in range(REPEATS))
    few = lines[:PYCACHESIM_LINES]
    return Row(
        name=work.name,
        accesses=trace.n_touches,
        simulated=plan.simulated_fraction,
        l1=L1[plan.machine.l1_mode],
        seconds=seconds,
        all_cores=tuple(rate_of_all_cores(replay, trace.n_touches) for replay in replays),
        plain_lru=lines.size / plain,
        pycachesim=few.size / peers.pycachesim(few, device.l2, time.process_time)[0],
    )


def growth(name: str, one: dict[str, int], other: dict[str, int], device: Gpu) -> list[str]:
    """A row of the second table: what one size of a kernel costs over another."""
    found = [Scorer(kernel(name, **sizes), device) for sizes in (one, other)]
    before, after = (stages(scorer)[0] for scorer in found)
    accesses = [scorer.trace.n_touches for scorer in found]
    shown = [" ".join(f"{key}={n}" for key, n in sizes.items()) for sizes in (one, other)]
    ratios = [accesses[1] / accesses[0], *(after[stage] / before[stage] for stage in before)]
    return [f"`{name} {shown[0]}`", f"`{shown[1]}`", *(f"{ratio:.1f}" for ratio in ratios)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.speed.suite", description=__doc__)
    parser.add_argument("kernels", nargs="*", help="by default all of the suite, the paper's first")
    device = gpu("mi300x")
    others = (name for name in kernel_names() if name not in PAPER and kernel(name).runs_on(device))
    names = parser.parse_args().kernels or [*PAPER, *others]
    row(kernel("gemm", M=512, N=512, K=512), device)  # compiles
    print(f"{host()}\n")
    print("| " + " | ".join(HEAD) + " |\n| --- | ---: | ---: | --- |" + " ---: |" * (len(HEAD) - 4))
    for name in names:
        print("| " + " | ".join(row(kernel(name), device).cells()) + " |", flush=True)
    print("\n\\* one of the paper's ten, at the size measured there; `fdtd_2d`: one of its launches.\n")
    print("| size | over | accesses | trace | plan | bound | lockstep | timed |\n| --- | --- |" + " ---: |" * 6)
    for name, one, other in SIZES:
        of, over, *ratios = growth(name, one, other, device)
        print("| " + " | ".join([over, of, *ratios]) + " |", flush=True)


if __name__ == "__main__":
    main()
