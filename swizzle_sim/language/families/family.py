"""`Family`, a published swizzle as a text of the language with parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameter:
    """One integer parameter of a family.

    Parameters
    ----------
    default, low, high : int
        Default value, and the range, both ends included.
    doc : str
        What it counts.
    """

    default: int
    low: int
    high: int
    doc: str


@dataclass(frozen=True)
class Family:
    """A published swizzle, as a text of the language with parameters.

    Parameters
    ----------
    name : str
        Name in a spec.
    summary : str
        One sentence.
    text : callable
        ``text(**params) -> str``, a text of the language; a value for every parameter.
    source : str
        Paper or project that published it.
    parameters : mapping of str to Parameter
        In the order in which a spec writes them.
    axes : int
        0 for a placement, which maps ``pid`` to ``pid`` on any grid. 2 for an order of tiles, which reads
        ``num_pid_m, num_pid_n`` and assigns ``pid_m, pid_n``. 3 for an order of boxes, which reads
        ``num_pid_x, num_pid_y, num_pid_z`` and assigns ``pid_x, pid_y, pid_z``.
    condition : str
        Where it is a bijection, exactly: ``"always"`` or a condition of the language over ``num_pids``,
        ``num_pid_m``, ``num_pid_n``, ``num_xcds`` and the parameters, on grids that have the axes.
    """

    name: str
    summary: str
    text: Callable[..., str]
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    axes: int = 0
    condition: str = "always"

    @property
    def results(self) -> tuple[str, ...]:
        """Coordinates that its text computes."""
        return {0: ("pid",), 2: ("pid_m", "pid_n"), 3: ("pid_x", "pid_y", "pid_z")}[self.axes]
