"""Proposers other than the families, found by name through the entry-point group ``swizzle_sim.proposers``.

A proposer is a callable that takes a `Task` and gives a `Proposed`. This package imports none of them: what they need
may be an extra that is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swizzle_sim.search.history import Attempt
from swizzle_sim.search.optimize import Run
from swizzle_sim.workload.kernels import Kernel, registered
from xcd_model import Gpu
from xcd_model.errors import UnknownName

GROUP = "swizzle_sim.proposers"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of a proposer.

    Parameters
    ----------
    kernel, gpu
        None where a run is to be repeated: the run says.
    folder : Path
    replay : str
    objective : str or None
        As typed; None for the default of the GPU and the replay.
    seed : int
    jitter_ns : float [ns]
    resume : bool
    repeat : Path or None
        A run to repeat.
    command : str
    options : mapping
        The proposer's own, as typed; None where not given.
    say : callable
        Called with a line of progress.
    """

    kernel: Kernel | None
    gpu: Gpu | None
    folder: Path
    replay: str
    objective: str | None = None
    seed: int = 0
    jitter_ns: float = 0.0
    resume: bool = False
    repeat: Path | None = None
    command: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = print


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """Result of a proposer.

    Parameters
    ----------
    run : Run
    beside : sequence of (str, Attempt or None)
        Rows of the table, each with its label.
    lines : sequence of str
        Printed below the table.
    document : mapping
        For ``--json``.
    again : callable
        ``again(run) -> Proposed`` of the run whose finalists were compiled since.
    """

    run: Run
    beside: tuple[tuple[str, Attempt | None], ...]
    lines: tuple[str, ...]
    document: Mapping[str, Any]
    again: Callable[[Run], Proposed]


def load_proposer(name: str) -> Callable[[Task], Proposed]:
    """Proposer by name.

    Raises
    ------
    UnknownName
        If there is none of that name.
    """
    found = registered(GROUP)
    if name not in found:
        raise UnknownName("proposer", name, ["families", *found])
    return found[name].load()
