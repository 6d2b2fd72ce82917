"""``python -m swizzle_benchmarks.evidence.speed.threads``: candidates a second by threads, as a Markdown table.

A search replays its candidates side by side, one a thread; here drawn permutations of three kernels, in the timed
replay: a GEMM of which symmetry leaves one set in 32, one without symmetry, and a stencil whose L1s go line by
line. Seconds by the clock on the wall, the best of `REPEATS`; a row is all candidates, dealt to so many threads.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

KERNELS = ("gemm", "gemm_jagged", "stencil_2d")
REPEATS = 2


def seconds(scorer: Scorer, orders: list[np.ndarray], threads: int) -> float:
    """Least wall seconds in which so many threads replay all orders."""
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS):
            began = time.perf_counter()
            list(pool.map(scorer.traffic, orders))
            best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    """Print the table."""
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.speed.threads", description=__doc__)
    parser.add_argument("kernels", nargs="*", default=KERNELS, help=f"by default {', '.join(KERNELS)}")
    names = parser.parse_args().kernels
    counts = [2**i for i in range(cores.bit_length()) if 2**i <= cores]
    print("| kernel | " + " | ".join(f"{n} thread{'s' * (n > 1)} [candidates/s]" for n in counts) + " | times one |")
    print("| --- |" + " ---: |" * (len(counts) + 1))
    for name in names:
        scorer, draw = Scorer(kernel(name), gpu("mi300x")), np.random.default_rng(0)
        orders = [draw.permutation(scorer.plan.n_workgroups) for _ in range(2 * cores)]
        scorer.traffic(orders[0])  # compiles
        rates = [len(orders) / seconds(scorer, orders, n) for n in counts]
        print(f"| `{name}` | " + " | ".join(f"{rate:.1f}" for rate in rates) + f" | {rates[-1] / rates[0]:.1f} |")


if __name__ == "__main__":
    main()
