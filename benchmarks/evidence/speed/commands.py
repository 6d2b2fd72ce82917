"""``python -m swizzle_benchmarks.evidence.speed.commands``: a table of what commands take in fresh processes.

Seconds by the clock on the wall, and the most memory that the process or one it waited for had at once. Kernels are
compiled, but for the row that says otherwise; nothing else that an earlier command left is found: each has a cache of
the user's own. Short commands are the median of `REPEATS`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

REPEATS = 5
# In a process of its own: what this one holds when it starts another counts as the other's.
NAMES = """
from swizzle_sim.workload.kernels import kernel, kernel_names
from xcd_model import gpu

device = gpu("mi300x")
print(*(one for one in kernel_names() if kernel(one).runs_on(device)))
"""
SHORT = (["--help"], ["gpus"], ["runs"], ["check", "group_m(size=8)", "--grid", "64x64"])


def taken(words: Sequence[str], folder: Path, **environment: str) -> tuple[float, float]:
    """Seconds and megabytes of a command in a folder of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "swizzle_sim", *words],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"swizzle-sim {' '.join(words)}: status {process.returncode}")
    return seconds, used.ru_maxrss / 1024


def rows(kernels: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Command, seconds and megabytes of each row."""
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as name:
        folder = Path(name)
        for words in SHORT:
            found = [taken(words, folder) for _ in range(REPEATS)]
            yield f"`{' '.join(words)}`", *map(statistics.median, zip(*found, strict=True))
        compiled = {"NUMBA_CACHE_DIR": str(folder / "compiled")}
        yield "`score gemm`, nothing compiled", *taken(["score", "gemm"], folder, **compiled)
        found = [taken(["score", "gemm"], folder, **compiled) for _ in range(REPEATS)]
        yield "the same again", *map(statistics.median, zip(*found, strict=True))
        taken(["optimize", "smith_waterman"], folder)  # compiles for what follows
    for one in kernels:
        with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as name:
            yield f"`optimize {one}`", *taken(["optimize", one], Path(name))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.speed.commands", description=__doc__)
    parser.add_argument("kernels", nargs="*", help="to optimize; by default all of the suite")
    given = parser.parse_args().kernels
    names = given or subprocess.check_output([sys.executable, "-c", NAMES], text=True).split()
    print("| command | time [s] | peak memory [MB] |\n| --- | ---: | ---: |")
    for command, seconds, megabytes in rows(names):
        print(f"| {command} | {seconds:.{1 if seconds < 10 else 0}f} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
