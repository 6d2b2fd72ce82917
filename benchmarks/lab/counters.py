r"""Count the calibration kernels with Nsight Compute and write rows as they come.

    python -m swizzle_benchmarks.lab counters --kernel gemm --sizes M=8192,N=8192,K=8192,BM=128,BN=128,BK=64 \
        --orders row,grp8,scatter --out rows.csv
    python -m swizzle_benchmarks.lab counters --list benchmarks/validation/data/h200_hypotheses.txt --minutes 9
    python -m swizzle_benchmarks.validation.contribute rows.csv          # at home: checked, and added to the table

Without ``--list`` and ``--sizes`` it reruns the workloads of the H200 table, and without ``--orders`` the orders that
each has there. A line of a list is ``KERNEL NAME=INTEGER,... ORDER,...``; # begins a comment. ``--dry-run`` prints the
commands. Needs an NVIDIA GPU whose counters may be read, ncu, torch and Triton; each result is checked. The order comes
from a table in memory, so counts hold four bytes a workgroup more than the kernel itself. What fails is told and left
out, and the rest goes on; status 1 says that something did. Beside the rows, ``rows.jsonl`` keeps every counter.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swizzle_benchmarks.validation import contributed
from swizzle_benchmarks.validation.contributed import ContributionError
from swizzle_benchmarks.validation.rows import all_rows
from swizzle_benchmarks.validation.workloads import h200
from swizzle_sim.hardware.node.ncu import LAUNCH, NsightCompute
from swizzle_sim.hardware.node.processes import run

Job = Mapping[str, Any]
Rows = list[dict[str, Any]]
LEAST_S = 45.0  # with less time than this left, no job is begun
RETRY_S = 20.0  # nor a second attempt with less than this
IN_A_ROW = 2  # jobs without any row before the rest is given up: the profiler does not work here


def counters(words: Sequence[str]) -> None:
    """Measure, or print what would be run; exit with status 1 if something is missing from the rows."""
    asked = _arguments().parse_args(words)
    try:
        todo = list(read_list(asked.list) if asked.list else jobs(asked.kernel, asked.sizes, asked.orders))
        if asked.dry_run:
            for job in todo:
                print(shlex.join(command_of(job, Path("FOLDER"), asked.ncu, COUNTERS)))
            return
        failed = measure_all(todo, asked.out, asked.ncu, limit_s=asked.limit, until_s=60 * asked.minutes)
    except ContributionError as error:
        sys.exit(str(error))
    if failed:
        sys.exit(f"{len(failed)} of {len(todo)} jobs incomplete:\n" + "\n".join(failed))


def _arguments() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m swizzle_benchmarks.lab counters", description=__doc__, formatter_class=formatter
    )
    parser.add_argument("--list", type=Path, help="file of jobs")
    parser.add_argument("--kernel", choices=sorted(h200.KERNELS), help="all of them where not given")
    parser.add_argument("--sizes", default="", help="NAME=INTEGER, separated by commas")
    parser.add_argument("--orders", default="", help="names, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("rows.csv"), help="rows are added to it; rows.csv by default")
    parser.add_argument("--ncu", default=shutil.which("ncu") or "ncu", help="the profiler")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one run of the profiler")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no job that this would not hold")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and stop")
    return parser


def read_list(path: Path) -> Iterator[Job]:
    """Jobs of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ContributionError(f"{path}: cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words and (len(words) != 3 or words[0] not in h200.KERNELS):
            known = ", ".join(sorted(h200.KERNELS))
            raise ContributionError(
                f"{path.name}, line {number}: KERNEL NAME=INTEGER,... ORDER,... with KERNEL one of {known}"
            )
        if words:
            yield {"kernel": words[0], "problem": _sizes(words[1]), "orders": words[2].split(",")}


def jobs(kernel: str | None, sizes: str, names: str) -> Iterator[Job]:
    """Kernel, problem and orders of each profiler run."""
    known: dict[tuple[str, str], list[str]] = {}
    for row in all_rows():
        if row.table == "h200" and row.quantity == "time_us" and kernel in (None, row.kernel.removeprefix("h200_")):
            key = (row.kernel.removeprefix("h200_"), json.dumps(dict(row.problem)))
            known.setdefault(key, []).append(row.order)
    if sizes:
        if kernel is None:
            raise ContributionError("--sizes needs --kernel")
        known = {(kernel, json.dumps(_sizes(sizes))): ["row"]}
    for (name, problem), orders in known.items():
        yield {"kernel": name, "problem": json.loads(problem), "orders": names.split(",") if names else orders}


def _sizes(text: str) -> dict[str, int]:
    try:
        return {name: int(value) for name, value in (word.split("=") for word in text.split(","))}
    except ValueError:
        raise ContributionError(f"{text!r}: sizes are NAME=INTEGER, separated by commas") from None


def measure_all(todo: Sequence[Job], out: Path, ncu: str, *, limit_s: float, until_s: float) -> list[str]:
    """Measure jobs one after the other, each written before the next begins; what went wrong, a line a job."""
    began, failed, driver, empty = time.monotonic(), [], _driver(), 0
    for job in todo:
        name, left = f"{job['kernel']} {json.dumps(job['problem'])}", until_s - (time.monotonic() - began)
        if left < LEAST_S or empty == IN_A_ROW:
            failed.append(f"{name}: " + ("no time left" if left < LEAST_S else f"not tried after {IN_A_ROW} failures"))
            continue
        try:
            rows, raw, why = attempt(job, ncu, driver, limit_s, left)
            contributed.write(out, rows)
            with out.with_suffix(".jsonl").open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(one) + "\n" for one in raw)
        except ContributionError as error:
            rows, why = [], str(error)
        empty = 0 if rows else empty + 1
        print(f"{name}: {len(rows)} rows, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if why:
            failed.append(f"{name}: {why}")
    return failed


def attempt(job: Job, ncu: str, driver: str, limit_s: float, left_s: float) -> tuple[Rows, Rows, str]:
    """Measure a job, and if nothing came of it, and time is left, once more with memory and time alone."""
    began, fewer = time.monotonic(), NsightCompute().fallbacks(COUNTERS)[0]
    rows: Rows = []
    for counters in (COUNTERS, fewer):
        left = left_s - (time.monotonic() - began)
        if counters is fewer and left < RETRY_S:
            break
        with tempfile.TemporaryDirectory() as folder:
            command = command_of(job, Path(folder), ncu, counters)
            (Path(folder) / "job.json").write_text(json.dumps(job), encoding="utf-8")
            rows, raw, why = measure(job, command, Path(folder), driver, min(limit_s, left))
        if rows:
            lost = f"without {len(COUNTERS) - len(fewer)} counters of the caches" if counters is fewer else ""
            return rows, raw, "; ".join(part for part in (lost, why) if part)
    return rows, raw, why


def command_of(job: Job, folder: Path, ncu: str, counters: Sequence[str]) -> list[str]:
    """Words of the profiler run; the job is read from ``job.json`` in the folder."""
    work = [sys.executable, "-m", "swizzle_benchmarks.lab.nvidia_launch", str(folder / "job.json")]
    return NsightCompute().command(ncu, counters, folder, f"fidelity_{job['kernel']}", work)


def measure(
    job: Job, command: Sequence[str], folder: Path, driver: str, limit_s: float = 600.0
) -> tuple[Rows, Rows, str]:
    """Run the profiler and make rows of those launches that it counted and whose results were right; as `attempt`."""
    log = folder / "log.txt"
    done = run(command, log=log, limit_s=limit_s)
    said = _json_lines(log)
    about = next((one for one in said if "gpu" in one), None)
    right = {one["order"] for one in said if one.get("right")}
    launches, notes = NsightCompute().read(folder)
    if about is None:
        return [], [], f"{done.state}, status {done.code}: {' '.join([*notes, done.tail[-600:]])}"
    about |= {"driver": driver, "command": shlex.join(["ncu", *command[1:]]).replace(str(folder), "FOLDER")}
    counted = {job["orders"][one.number]: one.counters for one in launches if one.number < len(job["orders"])}
    good = {order: counters for order, counters in counted.items() if order in right}
    rows = [row for order, counters in good.items() for row in rows_of(job, order, counters, about)]
    raw = [{**job, "order": order, "orders": None, "counters": dict(counters)} for order, counters in good.items()]
    lost = [order for order in job["orders"] if order not in good]
    ended = "" if done.state == "ok" else f" ({done.state}, status {done.code}: {done.tail[-300:]})"
    return rows, raw, f"nothing of {', '.join(lost)}{ended} {'; '.join(notes)}".strip() if lost else ""


def _json_lines(log: Path) -> list[dict[str, Any]]:
    """What the launched program printed of itself, among the profiler's own lines."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def _driver() -> str:
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        raise ContributionError("nvidia-smi names no driver here, and a row without one is refused") from None


L1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
READS = "lts__t_sectors_srcunit_tex_op_read"
COUNTERS = (*NsightCompute.metrics, f"{L1}.sum", f"{L1}_lookup_hit.sum")
Counts = Mapping[str, float]


def rows_of(job: Mapping[str, Any], order: str, counts: Counts, about: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Lines of `contributed` for one launch; a quantity whose counters are missing is left out."""
    gpu = _short(about["gpu"])
    sizes = "x".join(str(side) for side in job["problem"].values())
    for quantity, value in _values(counts):
        yield {
            **about,
            "gpu": gpu,
            "id": f"{gpu}-{job['kernel']}-{sizes}:{order}:{quantity}",
            "kernel": f"h200_{job['kernel']}",
            "problem": json.dumps(job["problem"]),
            "order": order,
            "bijective": "True",
            "resources": json.dumps(_resources(counts)),
            "quantity": quantity,
            "value": repr(value),
            "note": about["gpu"],
        }


def _values(counts: Counts) -> Iterator[tuple[str, float]]:
    for quantity, name, unit in (
        ("dram_read_bytes", "dram__bytes_read.sum", 1.0),
        ("dram_write_bytes", "dram__bytes_write.sum", 1.0),
        ("time_us", "gpu__time_duration.sum", 1e3),
    ):
        if name in counts:
            yield quantity, counts[name] / unit
    for quantity, name in (("l2_read_hit_pct", READS), ("l1_hit_pct", L1)):
        if counts.get(f"{name}.sum") and f"{name}_lookup_hit.sum" in counts:
            yield quantity, 100 * counts[f"{name}_lookup_hit.sum"] / counts[f"{name}.sum"]


def _resources(counts: Counts) -> dict[str, int]:
    """What a workgroup of the compiled kernel took, and how many fit an SM."""
    return {
        "registers": int(counts[LAUNCH[0]]),
        "shared_bytes": int(counts[LAUNCH[1]]),
        "workgroups_per_cu": int(min(counts[name] for name in LAUNCH[2:])),
    }


def _short(name: str) -> str:
    """``NVIDIA H200`` as the description is called: h200."""
    return name.split()[1].lower() if name.startswith("NVIDIA ") else name.lower()
