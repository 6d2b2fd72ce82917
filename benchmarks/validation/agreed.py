"""Rows of the results of a node, in the columns of `contributed`: what `contribute` takes of a run or a bundle."""

from __future__ import annotations

import json
from typing import Any

from swizzle_sim.hardware.agreement import Agreement
from swizzle_sim.hardware.node.manifest import RIGHT
from swizzle_sim.hardware.results import of_kinds
from swizzle_sim.language import family
from xcd_model.errors import HardwareError

HIT_RATE = {"amd": "l2_hit_pct", "nvidia": "l2_read_hit_pct"}


@of_kinds("the result")
def rows_of(found: Agreement) -> list[dict[str, Any]]:
    """Rows of everything measured."""
    if found.kind != "measured":
        raise HardwareError(f"this result is {found.kind}, not measured: it makes no fidelity rows")
    first = {name: value for name, value, *_ in _quantities(found, found.measurements[0].candidate)}
    sources = {one["id"]: one["source"] or family("identity") for one in found.manifest["candidates"]}
    rows = []
    for one in (one for one in found.measurements if one.right in RIGHT):
        for quantity, value, low, high in _quantities(found, one.candidate):
            row = {
                **_machine(found),
                "id": f"{found.manifest['kernel']}-{found.manifest['bundle'][:8]}/{one.candidate}:{quantity}",
                "kernel": found.manifest["kernel"],
                "problem": json.dumps(found.manifest["problem"]),
                "order": "identity" if one.candidate == found.measurements[0].candidate else one.name,
                "mapping": sources[one.candidate],
                "bijective": "True",
                "resources": json.dumps(_resources(found, one.candidate)),
                "quantity": quantity,
                **{"value": value, "low": low, "high": high, "baseline": first.get(quantity, "")},
                "note": "; ".join(one.doubts),
            }
            rows.append({column: str(cell) for column, cell in row.items()})
    return rows


def _machine(found: Agreement) -> dict[str, str]:
    machine, profiler = found.result["machine"], found.result.get("profiler") or {}
    versions = machine.get("versions") or {}
    rocm = machine.get("rocm") or versions.get("hip")
    named = {
        "gpu": found.manifest["gpu"]["name"],
        "driver": machine.get("nvidia_smi") or (f"ROCm {rocm}" if rocm else ""),
        "compiler": f"Triton {versions['triton']}, PyTorch {versions.get('torch')}" if versions.get("triton") else "",
        "command": f"confirm.py of bundle {found.manifest['bundle'][:12]}, "
        f"{profiler.get('version') or 'no profiler'}; {profiler.get('caches', 'GPU events only')}",
    }
    for field, text in named.items():
        if not text:
            raise HardwareError(f"the result names no {field}: without it the row cannot be measured a second time")
    return named


def _quantities(found: Agreement, candidate: str) -> list[tuple[str, float, float, float]]:
    """Quantity, value, lowest and highest."""
    vendor = found.manifest["gpu"]["vendor"]
    one = next(m for m in found.measurements if m.candidate == candidate)
    counters = found.result["candidates"][candidate].get("counters", {})
    rows: list[tuple[str, float, float, float]] = []
    if one.l2_hit_rate is not None:
        rows.append((HIT_RATE[vendor], *(3 * (100 * one.l2_hit_rate,))))
    direct = {"l2_hits": "TCC_HIT_sum", "l2_misses": "TCC_MISS_sum"}
    direct |= {"dram_read_bytes": "dram__bytes_read.sum", "dram_write_bytes": "dram__bytes_write.sum"}
    for quantity, name in direct.items():
        if name in counters:
            rows.append((quantity, *(counters[name][key] for key in ("value", "lowest", "highest"))))
    if one.time_cold_us is not None:
        rows.append(("time_us", one.time_cold_us, *one.spreads["time_cold_us"]))
    return rows


def _resources(found: Agreement, candidate: str) -> dict[str, int]:
    counters = found.result["candidates"][candidate].get("counters", {})
    names = {"registers": "launch__registers_per_thread", "shared_bytes": "launch__shared_mem_per_block"}
    return {key: int(counters[name]["value"]) for key, name in names.items() if name in counters}
