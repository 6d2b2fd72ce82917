"""`read_profile`: launches and their counters from whatever file a profiler left."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.hardware.node.dispatches import Dispatch
from swizzle_sim.hardware.node.ncu_rows import FIRST, read_ncu
from swizzle_sim.hardware.node.rocprof_rows import read_counters
from swizzle_sim.hardware.readers.agents import Agent, read_agents
from swizzle_sim.hardware.readers.json_files import read_json_profile
from swizzle_sim.hardware.readers.rocpd import read_rocpd
from swizzle_sim.hardware.readers.trace import read_trace
from xcd_model.errors import HardwareError

Found = tuple[list[Dispatch], list[str]]
SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Profile:
    """What one file says.

    Parameters
    ----------
    path : Path
    format : str
        Such as ``"rocprofv3 counters"``.
    dispatches : tuple of Dispatch
        Launches in the profiler's numbering.
    agents : tuple of Agent
        Devices, where the file lists those.
    notes : tuple of str
        What was left out and why.
    """

    path: Path
    format: str
    dispatches: tuple[Dispatch, ...]
    agents: tuple[Agent, ...]
    notes: tuple[str, ...]


def read_profile(path: Path) -> Profile:
    """Read a file of rocprofv3 (counters, kernel trace, agents; CSV, JSON or rocpd), metrix or Nsight Compute.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Profile

    Raises
    ------
    HardwareError
        With code ``format`` if it is none of these, or holds nothing that can be used.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read ({error.strerror})", code="format") from None
    if head.startswith(SQLITE):
        return _profile(path, "rocprofv3 rocpd", read_rocpd)
    text = head.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    if text.startswith(("{", "[")):
        name, dispatches, notes = read_json_profile(path)
        return Profile(path, name, tuple(dispatches), (), tuple(notes))
    if any(line.startswith(FIRST) for line in text.splitlines()):
        return _profile(path, "Nsight Compute raw page", read_ncu)
    first = next(csv.reader(text.splitlines()[:1]), [])
    columns = {name.lower() for name in first}
    if {"counter_name", "counter_value"} <= columns:
        return _profile(path, "rocprofv3 counters", read_counters)
    if {"kernel_name", "start_timestamp", "end_timestamp"} <= columns:
        return _profile(path, "rocprofv3 kernel trace", read_trace)
    if {"agent_type", "cu_count"} <= columns:
        agents, notes = read_agents(path)
        return Profile(path, "rocprofv3 agents", (), tuple(agents), tuple(notes))
    raise HardwareError(
        f"{path}: no file of rocprofv3, metrix or Nsight Compute (--csv --page raw); it begins {text[:60]!r}",
        code="format",
    )


def _profile(path: Path, name: str, read: Callable[[Path], Found]) -> Profile:
    dispatches, notes = read(path)
    if not dispatches:
        raise HardwareError(f"{path}: {name} without one launch: {'; '.join(notes) or 'no rows'}", code="format")
    return Profile(path, name, tuple(dispatches), (), tuple(notes))
