"""`read_profile`: a profiler's own file, whose kind is found by its content; `explained`: what it says.

Sources: the view ``counters_collection`` of rocprofiler-sdk's ``data_views.sql`` (rocpd, the SQLite file that rocprofv3
writes since ROCm 7, a row for each dispatch and counter); ROCm documentation of rocprofv3 and its tests for its JSON.
"""

from __future__ import annotations

import csv
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swizzle_sim.hardware.node.counted_launch import CountedLaunch
from swizzle_sim.hardware.node.formulas import (
    FORMULAS,
    Formula,
    doubts_of_pass,
    formulas_of,
    hit_rate,
    missing,
    quantities,
)
from swizzle_sim.hardware.node.ncu import FIRST, read_ncu
from swizzle_sim.hardware.node.rocprofv3 import read_counters, read_rocpd
from xcd_model.errors import HardwareError

Found = tuple[list[CountedLaunch], list[str]]
JSON_KEY = "rocprofiler-sdk-tool"
SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Profile:
    """Content of one file."""

    path: Path
    format: str  # such as ``"rocprofv3 counters"``
    dispatches: tuple[CountedLaunch, ...]  # launches in the profiler's numbering
    notes: tuple[str, ...]  # what was left out and why


_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, csv.Error, sqlite3.Error)


def read_profile(path: Path) -> Profile:
    """Read counters of rocprofv3 (CSV, JSON or rocpd) or Nsight Compute."""
    try:
        return _checked(_read_by_content(path))
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read ({error.strerror})", code="format") from None
    except _WRONG as error:  # whatever a damaged or a hostile file holds in place of a number or a name
        raise HardwareError(f"{path}: damaged ({type(error).__name__}: {str(error)[:200]})", code="format") from None


def _checked(profile: Profile) -> Profile:
    """Hold names and numbers against their types; a count that is not a finite number is left out, and said."""
    notes = []
    for one in profile.dispatches:
        if not isinstance(one.kernel, str) or type(one.number) is not int:
            what = f"dispatch {one.number!r} of {one.kernel!r}"
            raise HardwareError(f"{profile.path}: {what[:200]}: it has no number and name", code="format")
        if not all(isinstance(name, str) for name in one.counters):
            raise HardwareError(f"{profile.path}: dispatch {one.number}: a counter without a name", code="format")
        for name in [name for name, value in one.counters.items() if not _is_finite(value)]:
            notes.append(f"dispatch {one.number}: {name} = {one.counters.pop(name)!r} left out: no finite number")
        if one.duration_ns is not None and not _is_finite(one.duration_ns):
            notes.append(f"dispatch {one.number}: duration {one.duration_ns!r} left out: no finite number")
            one.duration_ns = None
    return replace(profile, notes=(*profile.notes, *notes))


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _read_by_content(path: Path) -> Profile:
    with open(path, "rb") as file:
        head = file.read(65536)
    if head.startswith(SQLITE):
        return _profile(path, "rocprofv3 rocpd", read_rocpd(path))
    text = head.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    if text.startswith(("{", "[")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or JSON_KEY not in document:
            raise HardwareError(f"{path}: neither result.json nor a profiler's file that is known", code="format")
        tools = document[JSON_KEY]
        launches = [one for tool in (tools if isinstance(tools, list) else [tools]) for one in _rocprof(tool)]
        return _profile(path, "rocprofv3 JSON", (launches, []))
    if any(line.startswith(FIRST) for line in text.splitlines()):
        return _profile(path, "Nsight Compute raw page", read_ncu(path))
    first = next(csv.reader(text.splitlines()[:1]), [])
    columns = {name.lower() for name in first}
    if {"counter_name", "counter_value"} <= columns:
        return _profile(path, "rocprofv3 counters", read_counters(path))
    raise HardwareError(
        f"{path}: no counters of rocprofv3 or Nsight Compute (--csv --page raw); it begins {text[:60]!r}", code="format"
    )


def _profile(path: Path, name: str, found: Found) -> Profile:
    dispatches, notes = found
    if not dispatches:
        raise HardwareError(f"{path}: {name} without one launch: {'; '.join(notes) or 'no rows'}", code="format")
    return Profile(path, name, tuple(dispatches), tuple(notes))


def _rocprof(tool: Mapping[str, Any]) -> Iterable[CountedLaunch]:
    names = {one["id"]["handle"]: one["name"] for one in tool.get("counters", [])}
    symbols = {
        one["kernel_id"]: one.get("formatted_kernel_name") or one.get("truncated_kernel_name") or one["kernel_name"]
        for one in tool.get("kernel_symbols", [])
        if "kernel_id" in one
    }
    found: dict[int, CountedLaunch] = {}

    def launch(info: Mapping[str, Any]) -> CountedLaunch:
        number = info["dispatch_id"]
        return found.setdefault(number, CountedLaunch(number, symbols.get(info["kernel_id"], "")))

    for entry in tool.get("callback_records", {}).get("counter_collection", []):
        data = entry["dispatch_data"]
        one = launch(data["dispatch_info"])
        if "start_timestamp" in data and "end_timestamp" in data:
            one.duration_ns = float(data["end_timestamp"]) - float(data["start_timestamp"])
        for record in entry["records"]:
            name = names[record["counter_id"]["handle"]]
            one.counters[name] = one.counters.get(name, 0.0) + float(record["value"])
    for entry in tool.get("buffer_records", {}).get("kernel_dispatch", []):
        one = launch(entry["dispatch_info"])
        one.duration_ns = float(entry["end_timestamp"]) - float(entry["start_timestamp"])
    return found.values()


# What a file says, launch by launch, by the formulas of its GPU's architecture.

KIB = {"FETCH_SIZE": "read_bytes", "WRITE_SIZE": "write_bytes"}  # derived by rocprofv3 itself, in KiB
NVIDIA = ("lts__", "dram__", "l1tex__", "sm__", "gpu__", "launch__")
HALVED = (
    "FETCH_SIZE of gfx950 counts reads of 128 B as 64 B where ROCm's definitions are older than rocm-systems PR 2501: "
    "count TCC_EA0_RDREQ_128B_sum, _64B_sum and _32B_sum"
)


@dataclass(frozen=True)
class Explained:
    """One file."""

    arch: str
    launches: tuple[dict[str, Any], ...]  # kernel, number, time [us], hit rate (0 to 1), bytes
    formulas: tuple[Formula, ...]  # those that gave a value somewhere
    doubts: tuple[str, ...]


def explained(profile: Profile, arch: str = "") -> Explained:
    """Quantities of every launch of a file; an architecture that is not named follows from the counters in it."""
    launches = [(one, _whole(one.counters)) for one in profile.dispatches]
    names = {name for _, counters in launches for name in counters}
    arch = arch or _arch_of(names)
    rows, doubts = [], list(profile.notes)
    for one, counters in launches:
        found = quantities(counters, arch)
        for name, quantity in KIB.items():
            if name in counters and found[quantity] is None:
                found[quantity] = 1024 * counters[name]
        time_us = None if one.duration_ns is None else one.duration_ns / 1000
        head = {"kernel": one.kernel, "number": one.number, "time_us": time_us, "l2_hit_rate": hit_rate(found)}
        rows.append({**head, **found, "counters": dict(one.counters)})
    for kernel in dict.fromkeys(one.kernel for one, _ in launches):
        mine = [counters for one, counters in launches if one.kernel == kernel]
        said = doubts_of_pass({"dispatches": [{"counters": one} for one in mine]})
        doubts += [f"{kernel}: {text}" for text in said]
    doubts += [text for text in missing(dict.fromkeys(names, 0.0), arch) if not names & KIB.keys()]
    if "FETCH_SIZE" in names and arch == "gfx950":
        doubts.append(HALVED)
    used = tuple(one for one in formulas_of(arch) if any(row[one.quantity] is not None for row in rows))
    return Explained(arch, tuple(rows), used, tuple(dict.fromkeys(doubts)))


def _whole(counters: Mapping[str, float]) -> dict[str, float]:
    """Counters by the names of formulas: one without ``_sum`` was added up over its rows, of all channels and XCDs."""
    known = {name for formulas in FORMULAS.values() for one in formulas for name in one.terms} | {"TCC_REQ_sum"}
    return {f"{name}_sum" if f"{name}_sum" in known else name: value for name, value in counters.items()}


def _arch_of(names: set[str]) -> str:
    """Architecture that has such counters: those of gfx942 where several have."""
    if any(name.startswith(NVIDIA) for name in names):
        return "sm_"
    only = {"gfx950": ("TCC_EA0_RDREQ_128B", "TCC_EA0_RDREQ_64B"), "gfx90a": ("TCC_EA_",)}
    return next((arch for arch, begins in only.items() if any(name.startswith(begins) for name in names)), "gfx942")
