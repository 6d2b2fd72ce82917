r"""Count the calibration kernels again with Nsight Compute and add the rows.

    python -m benchmarks.fidelity.measure_nvidia --kernel gemm --sizes M=8192,N=8192,K=8192,BM=128,BN=128,BK=64 \
        --orders row,grp8,scatter --out benchmarks/fidelity/data/contributed.csv

Without ``--sizes`` it reruns the workloads of the H200 table, and without ``--orders`` the orders that each has there.
``--dry-run`` prints the commands. Needs an NVIDIA GPU whose counters may be read, ncu, torch and Triton; each result is
checked. The order comes from a table in memory, so counts hold four bytes a workgroup more than the kernel itself.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fidelity import contributed, h200
from benchmarks.fidelity.contributed import ContributionError
from benchmarks.fidelity.rows import DATA, all_rows
from swizzle_sim.hardware.node.ncu import LAUNCH, NsightCompute

L1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
COUNTERS = (*NsightCompute.passes[0], f"{L1}.sum", f"{L1}_lookup_hit.sum")
READS = "lts__t_sectors_srcunit_tex_op_read"
Counts = Mapping[str, float]


def main(words: Sequence[str] | None = None) -> None:
    """Measure, or print what would be run."""
    asked = _arguments().parse_args(words)
    for job in jobs(asked.kernel, asked.sizes, asked.orders):
        with tempfile.TemporaryDirectory() as folder:
            command = command_of(job, Path(folder), asked.ncu)
            if asked.dry_run:
                print(shlex.join(command))
                continue
            rows = measure(job, command, Path(folder))
        contributed.write(asked.out, rows)
        print(f"{job['kernel']} {job['problem']}: {len(rows)} rows", file=sys.stderr)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity.measure_nvidia", description=__doc__)
    parser.add_argument("--kernel", choices=sorted(h200.KERNELS), help="all of them where not given")
    parser.add_argument("--sizes", default="", help="NAME=INTEGER, separated by commas")
    parser.add_argument("--orders", default="", help="names, separated by commas")
    parser.add_argument("--out", type=Path, default=DATA / "contributed.csv")
    parser.add_argument("--ncu", default=shutil.which("ncu") or "ncu", help="the profiler")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and stop")
    return parser


def jobs(kernel: str | None, sizes: str, names: str) -> Iterator[dict[str, Any]]:
    """Kernel, problem and orders of each profiler run."""
    known: dict[tuple[str, str], list[str]] = {}
    for row in all_rows():
        if row.table == "h200" and row.quantity == "time_us" and kernel in (None, row.kernel.removeprefix("h200_")):
            key = (row.kernel.removeprefix("h200_"), json.dumps(dict(row.problem)))
            known.setdefault(key, []).append(row.order)
    if sizes:
        if kernel is None:
            raise ContributionError("--sizes needs --kernel")
        known = {(kernel, json.dumps({k: int(v) for k, v in (word.split("=") for word in sizes.split(","))})): ["row"]}
    for (name, problem), orders in known.items():
        yield {"kernel": name, "problem": json.loads(problem), "orders": names.split(",") if names else orders}


def command_of(job: Mapping[str, Any], folder: Path, ncu: str) -> list[str]:
    """Words of the profiler run; writes the job file."""
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    work = [sys.executable, "-m", "benchmarks.fidelity.nvidia_launch", str(path)]
    return NsightCompute().command(ncu, COUNTERS, folder, f"fidelity_{job['kernel']}", work)


def measure(job: Mapping[str, Any], command: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Run the profiler and make rows of its table.

    Raises
    ------
    ContributionError
        If the run failed, a result was wrong, or launches are missing.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContributionError(
            f"{shlex.join(command)}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"
        )
    launches, notes = NsightCompute().read(folder)
    if len(launches) != len(job["orders"]):
        raise ContributionError(f"{len(launches)} launches counted, {len(job['orders'])} made; {'; '.join(notes)}")
    about = json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith('{"gpu"')))
    about |= {"driver": _driver(), "command": shlex.join(["ncu", *command[1:]])}
    counted = {order: launch.counters for order, launch in zip(job["orders"], launches, strict=True)}
    return [row for order, counts in counted.items() for row in rows_of(job, order, counts, about)]


def rows_of(job: Mapping[str, Any], order: str, counts: Counts, about: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Lines of `contributed` for one launch."""
    sizes = "x".join(str(side) for side in job["problem"].values())
    resources = {
        "registers": int(counts[LAUNCH[0]]),
        "shared_bytes": int(counts[LAUNCH[1]]),
        "workgroups_per_cu": int(min(counts[name] for name in LAUNCH[2:])),
    }
    values = {
        "dram_read_bytes": counts["dram__bytes_read.sum"],
        "dram_write_bytes": counts["dram__bytes_write.sum"],
        "l2_read_hit_pct": 100 * counts[f"{READS}_lookup_hit.sum"] / counts[f"{READS}.sum"],
        "l1_hit_pct": 100 * counts[f"{L1}_lookup_hit.sum"] / counts[f"{L1}.sum"],
        "time_us": counts["gpu__time_duration.sum"] / 1e3,
    }
    for quantity, value in values.items():
        yield {
            **about,
            "gpu": _short(about["gpu"]),
            "id": f"{_short(about['gpu'])}-{job['kernel']}-{sizes}:{order}:{quantity}",
            "kernel": f"h200_{job['kernel']}",
            "problem": json.dumps(job["problem"]),
            "order": order,
            "bijective": "True",
            "resources": json.dumps(resources),
            "quantity": quantity,
            "value": repr(value),
            "note": about["gpu"],
        }


def _short(name: str) -> str:
    """``NVIDIA H200`` as the description is called: h200."""
    return name.split()[1].lower() if name.startswith("NVIDIA ") else name.lower()


def _driver() -> str:
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()


if __name__ == "__main__":
    main()
