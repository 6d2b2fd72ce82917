"""Counters of all candidates: the profiler of their vendor, one run of it for each pass, medians over launches."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .counted_launch import CountedLaunch, chosen
from .formulas import torn
from .launcher import COUNT_WARMUPS, COUNTED
from .manifest import Refused
from .ncu import NsightCompute
from .processes import run
from .rocprofv3 import Rocprofv3

REPLAYED = "replay"  # in the version of a stand-in, whose results are never called measured
Passes = dict[str, dict[str, Any]]  # one pass of each candidate
MOST_HUNG = 2


def profiler_for(vendor: str) -> Rocprofv3 | NsightCompute:
    """Program that reads the hardware counters of a vendor's GPUs."""
    found: dict[str, Rocprofv3 | NsightCompute] = {"amd": Rocprofv3(), "nvidia": NsightCompute()}
    if vendor not in found:
        raise Refused(f"GPU vendor {vendor!r}: one of {', '.join(found)}")
    return found[vendor]


def find_program(profiler: Rocprofv3 | NsightCompute, named: str | None) -> str | None:
    """Path of the program: the named one, else that of the ROCm that PyTorch brings, on the PATH, or as installed."""
    if named is not None:
        return shutil.which(named)
    own = (Path(folder) / "_rocm_sdk_core" / "bin" for folder in sys.path)
    tried = [*map(str, own), None, os.path.join(os.environ.get("ROCM_PATH", ""), "bin")]
    found = (shutil.which(profiler.name, path=one) for one in (tried if profiler.name == "rocprofv3" else [None]))
    return next(filter(None, found), None) or shutil.which(profiler.usual)


@dataclass
class Counting:
    """How the candidates of a bundle are counted: all of them in one process of the profiler, one for each pass."""

    profiler: Rocprofv3 | NsightCompute
    program: str  # its path
    function: str  # kernel to count
    names: Sequence[str]  # candidates, in the order in which they are launched
    launches: int  # of one start of a candidate
    cwd: Path  # of the process that launches it
    limit_s: float  # [s]: of one pass
    # counters that this machine does not count: not requested, and added to
    refused: set[str] = field(default_factory=set)
    hung: int = 0  # passes that were killed

    def count(
        self, work: Sequence[str], passes: Sequence[tuple[str, ...]], folder: Path, on_pass: Callable[[Passes], None]
    ) -> None:
        """Run every pass; one that fails is retried in smaller groups, one that hangs too, after all others.

        The second that hangs is the last that is tried.
        """
        todo = [tuple(one) for one in passes]
        number = 0
        while todo and self.hung < MOST_HUNG:
            counters = tuple(name for name in todo.pop(0) if name not in self.refused)
            if not counters:
                continue
            number += 1
            found = self.run_pass(counters, work, folder / f"pass_{number}")
            on_pass(found)
            states = {one["state"] for one in found.values()}
            if states == {"failed"} and len(counters) == 1:
                self.refused.update(counters)
            smaller = self.profiler.fallbacks(counters)
            if "hung" in states:
                todo += smaller
            elif states != {"ok"}:
                todo = [*smaller, *todo]

    def run_pass(self, counters: tuple[str, ...], work: Sequence[str], place: Path) -> Passes:
        """One run of the profiler: by candidate what goes into the result."""
        place.mkdir(parents=True)
        words = self.profiler.command(self.program, counters, place, self.function, work)
        ended = run(words, log=place / "log.txt", limit_s=self.limit_s, cwd=self.cwd)
        self.hung += ended.state == "hung"
        launches, notes = self.profiler.read(place)
        mine = chosen(launches, self.function)
        each = (COUNT_WARMUPS + COUNTED) * self.launches
        short = len(self.names) * each - len(mine)
        cut = any("ends within a line" in note for note in notes)
        if short and not (cut and 0 < short < COUNTED * self.launches):
            seen = ", ".join(sorted({one.kernel for one in launches})[:4]) or "nothing"
            notes.append(
                f"{len(mine)} launches of {self.function} for {len(self.names) * each}; the profiler saw {seen}"
            )
            mine = []
        counted = {name for one in mine for name in one.counters}
        if lost := [name for name in counters if name not in counted]:
            notes.append(f"not counted: {', '.join(lost)}")
        found = {}
        for number, name in enumerate(self.names):
            own = mine[number * each + COUNT_WARMUPS * self.launches : (number + 1) * each]
            entry = {
                **{"asked": list(counters), "state": ended.state, "seconds": round(ended.seconds, 2)},
                **{"dispatches": [_entry(one, counters) for one in own], "notes": notes, "folder": place.name},
                **({} if ended.state == "ok" else {"said": ended.tail[-600:]}),
            }
            if not own and ended.state == "ok":
                entry["state"] = "empty"
            elif own:
                entry["state"] = "doubtful" if torn(entry) and len(counters) > 2 else "ok"
            found[name] = entry
        return found


def _entry(one: CountedLaunch, counters: Iterable[str]) -> dict[str, Any]:
    """One launch, with the requested counters: a profiler may add hundreds of its own."""
    return {
        "dispatch": one.number,
        "kernel": one.kernel,
        "counters": {name: one.counters[name] for name in counters if name in one.counters},
        "duration_ns": one.duration_ns,
        "about": one.about,
    }


def medians(passes: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Median over launches of each counter, from the first pass that has it and is not doubtful."""
    found: dict[str, dict[str, Any]] = {}
    for number, one in sorted(enumerate(passes, start=1), key=lambda each: each[1]["state"] == "doubtful"):
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
