"""`by_reference`: mark a class of named tuples that compiled functions take by reference, without loading the compiler.

    @by_reference
    class Slots(NamedTuple): ...       made by Python, and read by kernels: ``slots.pid`` is a load from its address

`xcd_model.compiled.numba_reference` tells numba of all that were marked and will be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Tuple = TypeVar("Tuple", bound=type)
_marked: list[type] = []
_told: list[Callable[[type], Any]] = []


def by_reference(cls: Tuple) -> Tuple:
    """Let compiled functions take a class of named tuples by reference."""
    _marked.append(cls)
    for tell in _told:
        tell(cls)
    return cls


def tell_of_each(tell: Callable[[type], Any]) -> None:
    """Call a function with each class that was marked, and with those that will be."""
    _told.append(tell)
    for cls in _marked:
        tell(cls)
