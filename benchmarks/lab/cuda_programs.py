"""CUDA programs that are compiled where they run, and counted by Nsight Compute."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from swizzle_sim.hardware.node.counted_launch import CountedLaunch
from swizzle_sim.hardware.node.ncu import read_ncu


def cuda_source(name: str) -> Path:
    """Path of a CUDA program of this folder."""
    return Path(__file__).with_name(name)


def outputs(source: Path, *options: str, runs: int = 1) -> list[str]:
    """Compile a program and run it so many times; exit with status 1 and a line that says what is missing.

    Parameters
    ----------
    source : Path
        A ``.cu`` file.
    *options : str
        For the compiler, behind the file.
    runs : int

    Returns
    -------
    outputs : list of str
        What each run printed.
    """
    with compiled(source, *options) as program:
        return [run([program]) for _ in range(runs)]


@contextmanager
def compiled(source: Path, *options: str) -> Iterator[str]:
    """Path of a compiled program, while the block lasts; exits as `outputs`."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc is not on the PATH: CUDA's compiler builds the kernels")
    with tempfile.TemporaryDirectory() as place:
        program = str(Path(place) / source.stem)
        run([nvcc, "-O3", "-std=c++17", "-arch=native", "-o", program, str(source), *options])
        yield program


def profiled(words: list[str], counters: Iterable[str], *options: str) -> tuple[str, list[CountedLaunch]]:
    """Run a program under Nsight Compute; return what it printed, and its launches. Exits if there are none."""
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "launches.csv"
        table = ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        printed = run(["ncu", *options, "--metrics", ",".join(counters), *table, *words])
        launches, notes = read_ncu(log)
    if not launches:
        sys.exit("; ".join(notes))
    return printed, launches


def run(words: list[str]) -> str:
    """Output of a command; exit with status 1 and its last words if it is missing or fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit(f"{words[0]} is not on the PATH")
    if done.returncode:
        sys.exit(f"{words[0]} failed with status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout
