"""`explained`: what somebody's own profiler file says, launch by launch, by the formulas of its GPU's architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swizzle_sim.hardware.node.formulas import (
    FORMULAS,
    Formula,
    doubts_of_pass,
    formulas_of,
    hit_rate,
    missing,
    quantities,
)
from swizzle_sim.hardware.readers import Profile

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
