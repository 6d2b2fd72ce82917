"""`CountedLaunch`, one launch as a profiler counted it, and the choice among all that a profiler lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class CountedLaunch:
    """One launch as a profiler saw it."""

    number: int  # the profiler's own, in launch order
    kernel: str  # name of the compiled kernel
    counters: dict[str, float] = field(default_factory=dict)  # by the profiler's own names
    duration_ns: float | None = None  # [ns]: under the profiler
    about: dict[str, str] = field(default_factory=dict)  # registers, LDS, grid as printed


def name_pattern(function: str) -> str:
    """Regular expression for the compiled names of a Triton function: plain, or with a suffix.

    That is such as ``_0d1d``, or what the function's own ``repr`` makes of its constants: ``_BLOCK_M_128``.
    """
    return rf"^{re.escape(function)}(_[0-9A-Z][0-9a-zA-Z_]*)?(\.kd)?$"


def chosen(dispatches: Iterable[CountedLaunch], function: str) -> list[CountedLaunch]:
    """Launches of one function in order."""
    named = re.compile(name_pattern(function))
    return sorted((one for one in dispatches if named.match(one.kernel)), key=lambda one: one.number)
