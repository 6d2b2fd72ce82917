"""Rows of the launches that Nsight Compute counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from swizzle_sim.hardware.node.ncu import LAUNCH, NsightCompute

L1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
READS = "lts__t_sectors_srcunit_tex_op_read"
COUNTERS = (*NsightCompute.passes[0], f"{L1}.sum", f"{L1}_lookup_hit.sum")
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
