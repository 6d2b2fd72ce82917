"""Counters of one candidate: the profiler of its vendor, one run of it for each pass, medians over launches."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .counted_launch import CountedLaunch, chosen
from .manifest import Refused
from .ncu import NsightCompute
from .processes import run
from .rocprofv3 import Rocprofv3

REPLAYED = "replay"  # in the version of a stand-in, whose results are never called measured
Passes = list[dict[str, Any]]


def profiler_for(vendor: str) -> Rocprofv3 | NsightCompute:
    """Program that reads the hardware counters of a vendor's GPUs."""
    found: dict[str, Rocprofv3 | NsightCompute] = {"amd": Rocprofv3(), "nvidia": NsightCompute()}
    if vendor not in found:
        raise Refused(f"GPU vendor {vendor!r}: one of {', '.join(found)}")
    return found[vendor]


def find_program(profiler: Rocprofv3 | NsightCompute, named: str | None) -> str | None:
    """Path of the program: the named one, or the first on the PATH or where its vendor installs it."""
    if named is not None:
        return shutil.which(named)
    usual = {"rocprofv3": "/opt/rocm/bin/rocprofv3", "ncu": "/usr/local/cuda/bin/ncu"}
    return shutil.which(profiler.name) or shutil.which(usual[profiler.name])


@dataclass(frozen=True)
class Counting:
    """How the candidates of a bundle are counted."""

    profiler: Rocprofv3 | NsightCompute
    program: str  # its path
    function: str  # kernel to count
    cwd: Path  # of the process that launches it
    limit_s: float  # [s]: of one pass
    warmups: int  # launches at the beginning that do not count
    # counters that this machine does not count: not requested, and added to
    refused: set[str] = field(default_factory=set)

    def count(self, work: Sequence[str], folder: Path, on_pass: Callable[[dict[str, Any]], None]) -> Passes:
        """Run every pass; a pass that is refused is retried in smaller groups, one that hangs is not."""
        done: Passes = []
        todo = [tuple(one) for one in self.profiler.passes]
        while todo:
            counters = tuple(name for name in todo.pop(0) if name not in self.refused)
            if not counters:
                continue
            found = self._pass(counters, work, folder / f"pass_{len(done) + 1}")
            done.append(found)
            on_pass(found)
            counted = bool(found["dispatches"])
            if not counted and found["state"] == "failed" and len(counters) == 1:
                self.refused.update(counters)
            if not counted and found["state"] in ("empty", "failed"):
                todo = [*self.profiler.fallbacks(counters), *todo]
        return done

    def _pass(self, counters: tuple[str, ...], work: Sequence[str], place: Path) -> dict[str, Any]:
        """One run of the profiler, as it goes into the result."""
        place.mkdir(parents=True)
        words = self.profiler.command(self.program, counters, place, self.function, work)
        ended = run(words, log=place / "log.txt", limit_s=self.limit_s, cwd=self.cwd)
        launches, notes = self.profiler.read(place)
        mine = chosen(launches, self.function, self.warmups)
        if launches and not mine:
            names = ", ".join(sorted({one.kernel for one in launches})[:4])
            notes.append(f"no launch of {self.function} after {self.warmups} to warm up; the file has {names}")
        counted = {name for one in mine for name in one.counters}
        if lost := [name for name in counters if name not in counted]:
            notes.append(f"not counted: {', '.join(lost)}")
        found = {
            "asked": list(counters),
            "state": ended.state if mine or ended.state != "ok" else "empty",
            "seconds": round(ended.seconds, 2),
            "dispatches": [_entry(one, counters) for one in mine],
            "notes": notes,
            "folder": place.name,
        }
        return found if ended.state == "ok" else {**found, "said": ended.tail[-600:]}


def _entry(one: CountedLaunch, counters: Iterable[str]) -> dict[str, Any]:
    """One launch, with the requested counters: a profiler may add hundreds of its own."""
    return {
        "dispatch": one.number,
        "kernel": one.kernel,
        "counters": {name: one.counters[name] for name in counters if name in one.counters},
        "duration_ns": one.duration_ns,
        "about": one.about,
    }


def medians(passes: Passes) -> dict[str, dict[str, Any]]:
    """Median over launches of each counter, from the first pass that has it."""
    found: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(passes, start=1):
        for name in dict.fromkeys(key for dispatch in one["dispatches"] for key in dispatch["counters"]):
            values = [d["counters"][name] for d in one["dispatches"] if name in d["counters"]]
            if name not in found:
                found[name] = {
                    "value": statistics.median(values),
                    "lowest": min(values),
                    "highest": max(values),
                    "launches": len(values),
                    "pass": number,
                }
    return found


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and spread: quartiles, extremes, count."""
    ordered = sorted(values)
    low, _, high = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    return {
        "median": statistics.median(ordered),
        "lower_quartile": low,
        "upper_quartile": high,
        "lowest": ordered[0],
        "highest": ordered[-1],
        "samples": len(ordered),
    }
