"""Count and time the orders of many bundles on one NVIDIA GPU, in two processes instead of two for each order.

    python benchmarks/lab/bundles_counted.py FOLDER counted.csv [--samples 20]
    python benchmarks/lab/bundles_counted.py FOLDER merged.csv --merged

``FOLDER`` holds bundles. Needs PyTorch, Triton and ncu, and swizzle_sim's `hardware.node`, which is plain Python. The
first process checks and times every order (`worker.Work.check_and_time`), the second runs under ncu and launches each
once, caches flushed. ``--merged`` counts only the sectors that SMs take in and those that the L2 gives out for them.
"""
# ruff: noqa: PLC0415  torch is there only where the GPU is

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from swizzle_sim.hardware.node.counted_launch import name_pattern
from swizzle_sim.hardware.node.counting import find_program
from swizzle_sim.hardware.node.manifest import read_manifest
from swizzle_sim.hardware.node.ncu import NsightCompute

COLUMNS = (
    *("bundle", "candidate", "order", "result", "time_cold_us", "time_warm_us", "dram_read_bytes"),
    *("dram_write_bytes", "read_sectors", "registers", "shared_bytes"),
)
METRICS = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "launch__registers_per_thread",
    "launch__shared_mem_per_block",
)
MERGED = {"arrived": "l1tex__m_xbar2l1tex_read_sectors.sum", "given": "lts__t_sectors_srcunit_tex_op_read.sum"}


def bundles(folder: Path) -> list[Path]:
    """Bundles of a folder, by name."""
    return sorted(one.parent for one in folder.glob("*/manifest.json"))


def launch(folder: Path) -> None:
    """Launch every order of every bundle once, in the order of the tables; to be run under ncu."""
    from swizzle_sim.hardware.node.launches import POISONS
    from swizzle_sim.hardware.node.worker import Work

    for place in bundles(folder):
        work = Work(place, read_manifest(place))
        for one in work.by_id.values():
            work.tensors.prepare(POISONS[0])
            work.launch_of(one)()


def time(folder: Path, out: Path, samples: int) -> None:
    """Check and time every order of every bundle; lines of JSON."""
    from swizzle_sim.hardware.node.worker import FLUSH_BYTES, Work

    with out.open("w", encoding="utf-8") as file:
        for place in bundles(folder):

            def say(place: Path = place, **line: Any) -> None:
                file.write(json.dumps({"bundle": place.name, **line}) + "\n")
                file.flush()

            Work(place, read_manifest(place)).check_and_time(samples, FLUSH_BYTES, say)
            print(place.name, flush=True)


def count(folder: Path, scratch: Path, metrics: Sequence[str] = METRICS) -> list[dict[str, float]]:
    """Counters of each launch, in order."""
    functions = sorted({read_manifest(place)["function"] for place in bundles(folder)})
    words = [sys.executable, __file__, str(folder), "-", "--verb", "launch"]
    program = find_program(NsightCompute(), None)
    if program is None:
        sys.exit("no ncu on the PATH: nothing is counted (what was timed is written)")
    command = NsightCompute().command(program, metrics, scratch, functions[0], words)
    place = command.index("--kernel-name") + 1
    command[place] = f"regex:{'|'.join(map(name_pattern, functions))}"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found, notes = NsightCompute().read(scratch)
    print(*notes, sep="\n", flush=True)
    return [one.counters for one in sorted(found, key=lambda one: one.number)]


def bundles_counted(words: Sequence[str]) -> None:
    """Measure, then write the table; times first, since the profiler may fail."""
    parser = argparse.ArgumentParser(
        prog="python -m swizzle_benchmarks.lab bundles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--verb", choices=("all", "launch", "time"), default="all", help=argparse.SUPPRESS)
    parser.add_argument("--merged", action="store_true", help="count what SMs take in and the L2 gives out, no times")
    given = parser.parse_args(words)
    if given.verb == "launch":
        launch(given.folder)
        return
    if given.verb == "time":
        time(given.folder, given.out, given.samples)
        return
    if not bundles(given.folder):
        sys.exit(f"{given.folder}: no bundles here")
    if given.merged:
        merged(given.folder, given.out)
        return
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch) / "times.jsonl"
        words = [sys.executable, __file__, str(given.folder), str(lines), "--verb", "time"]
        subprocess.run([*words, "--samples", str(given.samples)], check=False)
        if not lines.exists():
            sys.exit("nothing was timed: see above")
        said = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        write(given.folder, given.out, said, [])
        write(given.folder, given.out, said, count(given.folder, Path(scratch)))


def merged(folder: Path, out: Path) -> None:
    """Write a line for each order: what SMs take in and what the L2 gives out, where that serves several as one."""
    orders = [(place.name, one["name"]) for place in bundles(folder) for one in read_manifest(place)["candidates"]]
    with tempfile.TemporaryDirectory() as scratch:
        counted = count(folder, Path(scratch), [*MERGED.values()])
    with out.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["bundle", "order", *MERGED])
        for order, row in zip(orders, counted, strict=True):
            table.writerow([*order, *(f"{row[name]:.0f}" for name in MERGED.values())])


def write(folder: Path, out: Path, said: list[dict[str, Any]], counted: list[dict[str, float]]) -> None:
    """Write a line for each order; counters are left empty where the profiler did not come to all launches."""
    times: dict[tuple[str, str, str], list[float]] = {}
    checked: dict[tuple[str, str], str] = {}
    for one in said:
        if one["what"] == "times":
            for name, states in one["times"].items():
                for state, values in states.items():
                    times.setdefault((one["bundle"], name, state), []).extend(values)
        if one["what"] == "check":
            how = "differs" if one.get("permutation") == "differs" else one["how"]
            checked.setdefault((one["bundle"], one["candidate"]), how)
    orders = [(place.name, one) for place in bundles(folder) for one in read_manifest(place)["candidates"]]
    rows = counted if len(counted) == len(orders) else [{}] * len(orders)
    with out.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for (bundle, one), row in zip(orders, rows, strict=True):
            values = [times.get((bundle, one["id"], state), []) for state in ("cold", "warm")]
            taken = [round(median(value), 3) if value else "" for value in values]
            result = checked.get((bundle, one["id"]), "")
            counters = [f"{row[name]:.0f}" if name in row else "" for name in METRICS]
            table.writerow([bundle, one["id"], one["name"], result, *taken, *counters])


if __name__ == "__main__":
    bundles_counted(sys.argv[1:])
