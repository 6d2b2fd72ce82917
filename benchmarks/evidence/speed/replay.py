"""``python -m swizzle_benchmarks.evidence.speed.replay``: the lockstep replay against its peers, as a Markdown table.

GEMM fp16 8192^3 (``--quick``: 4096^3) in tiles of 128 x 128 x 64 on all 8 XCDs of MI300X. A rate is line accesses a
second; by symmetry, those that were accounted for. Peers see the stream of XCD 0. Medians of three, one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from swizzle_benchmarks.suite.gemm import gemm
from xcd_model import (
    Gpu,
    IssueModel,
    Plan,
    Trace,
    compute_fs,
    gpu,
    prepare,
    replay_lockstep,
    replay_lru,
    replay_timed,
    xcd_of,
)
from xcd_model.replay.traffic import L1_HITS, READ_MISSES, WRITE_MISSES

from . import peers

REPEATS, PAIRS = 3, 7
ASSOCIATIVE_LINES = 512  # a fully associative cache that both simulators can be; ours walks its ways


def build(size: int) -> Trace:
    """Trace of the benchmark's GEMM."""
    return gemm(M=size, N=size, K=size, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64).build_trace(128)


def median(call) -> tuple[float, object]:
    """Median seconds of three calls, and what the last one gave."""
    seconds, got = [], None
    for _ in range(REPEATS):
        began = time.perf_counter()
        got = call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), got


def touches_per_xcd(trace: Trace, device: Gpu) -> np.ndarray:
    """(n_xcds,) int64: line accesses of each XCD in launch order."""
    of = np.repeat(xcd_of(trace.n_workgroups, device), np.diff(trace.start))
    return np.bincount(of, weights=trace.entries_per_template[trace.template], minlength=device.xcds).astype(np.int64)


def own_rows(trace: Trace) -> list[tuple[str, float, int]]:
    """(case, accesses a second, hits of XCD 0) of our own replays; the peers know no L1, so most go without."""
    whole, order = gpu("mi300x"), np.arange(trace.n_workgroups)
    machine = dataclasses.replace(whole, l1=None)
    of_xcd = touches_per_xcd(trace, machine)
    # two operations for each of 128 x 128 x 64 items of a step, over its two loads
    pace = IssueModel(in_flight=4, compute_fs=compute_fs(machine, flops_per_instruction=128 * 128 * 64, dtype="fp16"))
    plain, symmetric, with_l1 = prepare(trace, machine, symmetry=False), prepare(trace, machine), prepare(trace, whole)
    plain_with_l1 = prepare(trace, whole, symmetry=False)

    def lockstep(plan: Plan, threads: int = 1):
        return replay_lockstep(plan, order, workgroups_per_cu=1, threads=threads)

    def timed(plan: Plan):
        return replay_timed(plan, order, workgroups_per_cu=1, issue=pace)

    runs = {
        "lockstep": lambda: lockstep(plain),
        "lockstep, two threads over XCDs": lambda: lockstep(plain, threads=2),
        "lockstep with L1s": lambda: lockstep(plain_with_l1),
        "lockstep, by symmetry": lambda: lockstep(symmetric),
        "lockstep with L1s, by symmetry": lambda: lockstep(with_l1),
        "timed": lambda: timed(plain),
        "timed with L1s": lambda: timed(plain_with_l1),
        "timed, by symmetry": lambda: timed(symmetric),
        "timed with L1s, by symmetry": lambda: timed(with_l1),
    }
    rows = []
    for name, run in runs.items():
        run()
        seconds, traffic = median(run)
        misses = traffic.per_xcd[0, [READ_MISSES, WRITE_MISSES]].sum() + traffic.per_xcd[0, L1_HITS]
        rows.append((name, trace.n_touches / seconds, int(of_xcd[0] - misses)))
    return rows


def peer_rows(trace: Trace) -> list[tuple[str, float, int]]:
    """The peers' rows, on the stream of XCD 0; a peer that is not installed is left out."""
    machine, rows = gpu("mi300x"), []
    lines = peers.stream_of_xcd(trace, machine, 0, trace.n_touches)
    runs = {"pycachesim, iterload": lambda: peers.pycachesim(lines, machine.l2)}
    few = lines[: 1 << 20]
    for n_lines in (machine.l2.sets * machine.l2.ways, ASSOCIATIVE_LINES):
        name = f"libCacheSim, process_trace, {n_lines} lines fully associative, {few.size} accesses"
        runs[name] = lambda n_lines=n_lines: peers.libcachesim(few, n_lines)
    for name, run in runs.items():
        try:
            results = [run() for _ in range(REPEATS)]
        except ImportError:
            print(f"{name}: not installed", file=sys.stderr)
            continue
        n = lines.size if name.startswith("pycachesim") else few.size
        rows.append((name, n / statistics.median(s for s, _ in results), results[-1][1]))
    fold_off = {"channels": 1, "index": "modulo", "index_channels": None}
    fold_off |= {"index_interleave_bytes": None, "index_rows": None}
    small = {"size_bytes": ASSOCIATIVE_LINES * machine.l2.line_bytes, "ways": ASSOCIATIVE_LINES}
    ours = dataclasses.replace(machine.l2, **small, **fold_off)
    seconds, mask = median(lambda: replay_lru(few, ours))
    rows.append((f"replay_lru, {ASSOCIATIVE_LINES} lines fully associative", few.size / seconds, int(mask.sum())))
    return rows


def beside_plain_lru(trace: Trace) -> dict[int, list[float]]:
    """Rates of the plain lockstep replay of 1 and 2 threads over that of `lru.cpp`, each run next to one of its own.

    Ours replays all XCDs and the Infinity Cache, `lru.cpp` the L2 of XCD 0.
    """
    machine, order = dataclasses.replace(gpu("mi300x"), l1=None), np.arange(trace.n_workgroups)
    plan, lines = prepare(trace, machine, symmetry=False), peers.stream_of_xcd(trace, machine, 0, trace.n_touches)
    ratios: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(PAIRS):
        for threads, found in ratios.items():
            began = time.perf_counter()
            replay_lockstep(plan, order, workgroups_per_cu=1, threads=threads)
            rate = trace.n_touches / (time.perf_counter() - began)
            found.append(rate / (lines.size / peers.plain_lru(lines, machine.l2)[0]))
    return ratios


def probe(size: int) -> None:
    """In a fresh process: seconds of the first and the second replay of each kind, and peak memory, as JSON."""
    trace, seconds = build(size), []
    order = np.arange(trace.n_workgroups)
    for _ in range(2):
        began = time.perf_counter()
        for symmetry in (False, True):
            replay_lockstep(prepare(trace, gpu("mi300x"), symmetry=symmetry), order, workgroups_per_cu=1)
        seconds.append(time.perf_counter() - began)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(json.dumps({"compile_s": seconds[0] - seconds[1], "peak_mb": peak_mb}))


def fresh(size: int) -> list[dict[str, float]]:
    """`probe` with an empty compilation cache, and again."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "swizzle_benchmarks.evidence.speed.replay", "--probe", "--size", str(size)]
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        return [
            json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.speed.replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="4096^3 in place of 8192^3")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    size = chosen.size or (4096 if chosen.quick else 8192)
    if chosen.probe:
        probe(size)
        return
    cold, warm = fresh(size)  # first: a process starts with the peak memory of its parent
    trace = build(size)
    rows = own_rows(trace) + peer_rows(trace)
    reference = next((rate for name, rate, _ in rows if name.startswith("pycachesim")), float("nan"))
    print(f"GEMM fp16 {size}^3, {trace.n_touches} line accesses on 8 XCDs\n")
    print("| case | M line accesses/s | times pycachesim | hits (XCD 0) |\n| --- | ---: | ---: | ---: |")
    for name, rate, hits in rows:
        print(f"| {name} | {rate / 1e6:.1f} | {rate / reference:.1f} | {hits} |")
    print("\n| plain lockstep, times the rate of `lru.cpp` beside it | median | least to most |\n| --- | ---: | ---: |")
    for threads, ratios in beside_plain_lru(trace).items():
        spread = f"{min(ratios):.2f} to {max(ratios):.2f} of {len(ratios)}"
        print(f"| {threads} thread{'s' * (threads > 1)} | {statistics.median(ratios):.2f} | {spread} |")
    print("\n| fresh process | compile or load [s] | peak memory [MB] |\n| --- | ---: | ---: |")
    for name, got in (("empty cache", cold), ("filled cache", warm)):
        print(f"| {name} | {got['compile_s']:.1f} | {got['peak_mb']:.0f} |")


if __name__ == "__main__":
    main()
