"""What people read of a bundle, and the scripts that start it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from string import Template
from typing import Any

FILES = {"README.md": "README.md", "run.sh": "run.sh", "job.sbatch": "job.sbatch"}


def texts(manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """README, shell script and Slurm script of a bundle, as files.

    Parameters
    ----------
    manifest : mapping
        Without its files and its name.
    """
    gpu = manifest["gpu"]
    values = {
        "kernel": manifest["kernel"],
        "sizes": " ".join(f"{name}={size}" for name, size in manifest["problem"].items()),
        "title": gpu["title"],
        "mode": f", {gpu['xcds']} XCDs ({gpu['partition']} mode)" if gpu["vendor"] == "amd" else "",
        "stack": "ROCm" if gpu["vendor"] == "amd" else "CUDA",
        "profiler": "rocprofv3" if gpu["vendor"] == "amd" else "Nsight Compute (ncu)",
        "version": manifest["version"],
        "candidates": "\n".join(_line(one) for one in manifest["candidates"]),
        "replay": manifest["replay"],
    }
    here = resources.files("swizzle_sim.hardware").joinpath("files")
    return {
        name: Template(here.joinpath(file).read_text(encoding="utf-8")).substitute(values).encode()
        for name, file in FILES.items()
    }


def _line(one: Mapping[str, Any]) -> str:
    rate = one["predicted"]["l2_hit_rate"] if one["predicted"] else None
    said = "-" if rate is None else f"{100 * rate:.2f} %"
    name = " ".join(one["name"].split()).replace("|", "/")[:80]
    return f"| `{one['file']}` | {name} | {said} |"
