"""What a family of swizzles is: a text of the language with parameters in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Parameter:
    """One integer parameter of a family.

    Parameters
    ----------
    default, low, high : int
        Value when a spec does not give one, and the range, both ends included.
    doc : str
        What it counts.
    """

    default: int
    low: int
    high: int
    doc: str


@dataclass(frozen=True)
class Family:
    """A published swizzle, as a text of the language with parameters in it.

    Parameters
    ----------
    name : str
        What a spec calls it.
    summary : str
        One sentence.
    text : callable
        ``text(**params) -> str``, a text of the language; a value for every parameter.
    source : str
        Paper or project that published it.
    parameters : mapping of str to Parameter
        In the order in which a spec writes them.
    needs_tiles : bool
        Whether it reads ``num_pid_m`` and ``num_pid_n`` and answers ``pid_m, pid_n`` (an order); otherwise it
        takes ``pid`` to ``pid`` (a placement) and works on any grid.
    condition : str
        Where it is a bijection, exactly: ``"always"`` or a condition of the language over ``num_pids``,
        ``num_pid_m``, ``num_pid_n``, ``num_xcds`` and the parameters.
    """

    name: str
    summary: str
    text: Callable[..., str]
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: MappingProxyType({}))
    needs_tiles: bool = False
    condition: str = "always"
