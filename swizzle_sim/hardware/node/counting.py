"""Counters of one candidate: one run of the profiler for each pass, whatever becomes of the others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .dispatches import Dispatch, chosen
from .processes import run
from .profilers import Profiler

Passes = list[dict[str, Any]]


def count(
    profiler: Profiler,
    program: str,
    function: str,
    work: Sequence[str],
    *,
    folder: Path,
    cwd: Path,
    limit_s: float,
    warmups: int,
    refused: set[str],
    on_pass: Callable[[dict[str, Any]], None],
) -> Passes:
    """Run every pass; a pass that is refused is tried again in smaller groups, one that hangs is not.

    Parameters
    ----------
    profiler : Profiler
    program : str
        Its path.
    function : str
        Kernel to count.
    work : sequence of str
        Words of the process that launches it.
    folder : Path
        Takes the raw files, a folder for each pass.
    cwd : Path
    limit_s : float [s]
        Of one pass.
    warmups : int
        Launches at the beginning that do not count.
    refused : set of str
        Counters that this machine does not count; not asked for, and added to.
    on_pass : callable
        Called after each pass.
    """
    done: Passes = []
    todo = [tuple(one) for one in profiler.passes]
    while todo:
        counters = tuple(name for name in todo.pop(0) if name not in refused)
        if not counters:
            continue
        place = folder / f"pass_{len(done) + 1}"
        place.mkdir(parents=True)
        words = profiler.command(program, counters, place, function, work)
        ended = run(words, log=place / "log.txt", limit_s=limit_s, cwd=cwd)
        dispatches, notes = profiler.read(place)
        mine = chosen(dispatches, function, warmups)
        if dispatches and not mine:
            names = ", ".join(sorted({one.kernel for one in dispatches})[:4])
            notes.append(f"no launch of {function} after {warmups} to warm up; the file has {names}")
        counted = sorted({name for one in mine for name in one.counters})
        found = {
            "asked": list(counters),
            "state": ended.state if mine or ended.state != "ok" else "empty",
            "seconds": round(ended.seconds, 2),
            "dispatches": [_entry(one, counters) for one in mine],
            "notes": [*notes, *([f"not counted: {', '.join(lost)}"] if (lost := _lost(counters, counted)) else [])],
            "folder": place.name,
        }
        if ended.state != "ok":
            found["said"] = ended.tail[-600:]
        done.append(found)
        on_pass(found)
        if not mine and ended.state == "failed" and len(counters) == 1:
            refused.update(counters)
        if not mine and ended.state in ("ok", "failed"):
            todo = [*profiler.fallbacks(counters), *todo]
    return done


def _lost(asked: Iterable[str], counted: Iterable[str]) -> list[str]:
    return [name for name in asked if name not in set(counted)]


def _entry(one: Dispatch, asked: Iterable[str]) -> dict[str, Any]:
    """One launch, with the counters that were asked for: a profiler may add hundreds of its own."""
    return {
        "dispatch": one.number,
        "kernel": one.kernel,
        "counters": {name: one.counters[name] for name in asked if name in one.counters},
        "duration_ns": one.duration_ns,
        "about": one.about,
    }


def medians(passes: Passes) -> dict[str, dict[str, Any]]:
    """Median over launches of each counter, from the first pass that has it.

    Returns
    -------
    counters : dict
        ``{name: {"value", "lowest", "highest", "launches", "pass"}}``.
    """
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
