"""`Profiler`, the one interface to rocprofv3 and Nsight Compute, and the choice between them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from . import ncu, rocprofv3
from .dispatches import Dispatch
from .sealed import Refused

REPLAYED = "replay"  # a stand-in says so in its version, and nothing it yields is called measured


class Profiler(Protocol):
    """What counts.

    ``passes`` are groups of counters that one run can count together; ``fallbacks`` of a pass are smaller groups to
    try where the whole is refused.
    """

    @property
    def name(self) -> str:
        """Name of the program."""

    @property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """Groups of counters."""

    @property
    def cold(self) -> str:
        """In what state the caches are before a counted launch."""

    def version(self, program: str, log: Path) -> str:
        """Version as the program says it; empty if it says none."""

    def command(
        self, program: str, counters: Sequence[str], folder: Path, function: str, work: Sequence[str]
    ) -> list[str]:
        """Words that count one run of ``work``."""

    def read(self, folder: Path) -> tuple[list[Dispatch], list[str]]:
        """Launches that a run left in its folder, and what is wrong with them."""

    def fallbacks(self, counters: Sequence[str]) -> list[tuple[str, ...]]:
        """Smaller groups."""


def profiler_for(vendor: str) -> Profiler:
    """Profiler of a GPU's vendor.

    Raises
    ------
    Refused
        For a vendor without one.
    """
    found: dict[str, Profiler] = {"amd": rocprofv3.Rocprofv3(), "nvidia": ncu.NsightCompute()}
    if vendor not in found:
        raise Refused(f"GPU vendor {vendor!r}: one of {', '.join(found)}")
    return found[vendor]


def find_program(profiler: Profiler, asked: str | None) -> str | None:
    """Path of the program: the one asked for, or the first on the PATH or where its vendor installs it."""
    if asked is not None:
        return shutil.which(asked)
    usual = {"rocprofv3": "/opt/rocm/bin/rocprofv3", "ncu": "/usr/local/cuda/bin/ncu"}
    return shutil.which(profiler.name) or shutil.which(usual[profiler.name])
