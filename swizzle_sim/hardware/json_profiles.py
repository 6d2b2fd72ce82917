"""Readers of JSON: rocprofv3's (``rocprofiler-sdk-tool``) and metrix's.

Sources: ROCm documentation of rocprofv3 and its tests for where counters, symbols and records lie; metrix (AMDResearch)
for its names and that its rates are percentages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.hardware.node.counted_launch import CountedLaunch
from xcd_model.errors import HardwareError

Found = tuple[str, list[CountedLaunch], list[str]]


def read_json_profile(path: Path) -> Found:
    """Name of the format, launches, notes.

    Raises
    ------
    HardwareError
        With code ``format``.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise HardwareError(f"{path}: JSON that is cut short or damaged ({error})", code="format") from None
    try:
        if isinstance(document, dict) and "rocprofiler-sdk-tool" in document:
            tools = document["rocprofiler-sdk-tool"]
            found = [one for tool in (tools if isinstance(tools, list) else [tools]) for one in _rocprof(tool)]
            name, notes = "rocprofv3 JSON", list[str]()
        else:
            name, (found, notes) = "metrix JSON", _metrix(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        _check_known(path, document)
        raise HardwareError(f"{path}: JSON of another form ({type(error).__name__}: {error})", code="format") from None
    if not found:
        _check_known(path, document)
        raise HardwareError(f"{path}: {name} without one launch", code="format")
    return name, found, notes


def _check_known(path: Path, document: Any) -> None:
    """Refuse what has nothing of any format."""
    if not (isinstance(document, dict) and {"rocprofiler-sdk-tool", "kernels"} & set(document)):
        raise HardwareError(f"{path}: neither result.json nor a profiler's file that is known", code="format")


def _rocprof(tool: Mapping[str, Any]) -> Iterable[CountedLaunch]:
    names = {one["id"]["handle"]: one["name"] for one in tool.get("counters", [])}
    symbols = {one["kernel_id"]: _symbol(one) for one in tool.get("kernel_symbols", []) if "kernel_id" in one}
    found: dict[int, CountedLaunch] = {}
    for entry in tool.get("callback_records", {}).get("counter_collection", []):
        data = entry["dispatch_data"]
        info = data["dispatch_info"]
        one = found.setdefault(
            info["dispatch_id"], CountedLaunch(info["dispatch_id"], symbols.get(info["kernel_id"], ""))
        )
        if "start_timestamp" in data and "end_timestamp" in data:
            one.duration_ns = float(data["end_timestamp"]) - float(data["start_timestamp"])
        for record in entry["records"]:
            name = names[record["counter_id"]["handle"]]
            one.counters[name] = one.counters.get(name, 0.0) + float(record["value"])
    for entry in tool.get("buffer_records", {}).get("kernel_dispatch", []):
        info = entry["dispatch_info"]
        one = found.setdefault(
            info["dispatch_id"], CountedLaunch(info["dispatch_id"], symbols.get(info["kernel_id"], ""))
        )
        one.duration_ns = float(entry["end_timestamp"]) - float(entry["start_timestamp"])
    return found.values()


def _symbol(one: Mapping[str, Any]) -> str:
    return one.get("formatted_kernel_name") or one.get("truncated_kernel_name") or one["kernel_name"]


def _metrix(document: Any) -> tuple[list[CountedLaunch], list[str]]:
    """Kernels as a list of objects with ``name``, or an object by name; a metric is a number or has ``avg``."""
    kernels = document.get("kernels", document) if isinstance(document, dict) else document
    named = kernels.items() if isinstance(kernels, dict) else ((one["name"], one) for one in kernels)
    found, notes = [], []
    for number, (name, one) in enumerate(named):
        duration = _average(one.get("duration_us"))
        metrics = {key: value for key, cell in one["metrics"].items() if (value := _average(cell)) is not None}
        rate = metrics.get("memory.l2_hit_rate")
        if rate is not None and not 0 <= rate <= 100:
            notes.append(f"{name}: memory.l2_hit_rate = {rate}: not between 0 and 100 percent")
        found.append(CountedLaunch(number, name, metrics, None if duration is None else duration * 1e3))
    return found, notes


def _average(cell: Any) -> float | None:
    if isinstance(cell, Mapping):
        cell = cell.get("avg", cell.get("mean"))
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
