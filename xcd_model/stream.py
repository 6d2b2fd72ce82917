"""The arrays and numbers that the compiled replay reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .cache import Index, index_of
from .gpu import Gpu


class Stream(NamedTuple):
    """A trace as the compiled replay reads it; ``dirty`` and ``requests`` are in the GPU's request sizes.

    ``set_weight`` is (l2_sets,): how many sets each L2 set stands for.
    """

    start: np.ndarray
    base: np.ndarray
    template: np.ndarray
    rel_start: np.ndarray
    rel: np.ndarray
    dirty: np.ndarray
    is_write: np.ndarray
    requests: np.ndarray
    set_weight: np.ndarray


class Machine(NamedTuple):
    """The numbers of a GPU that the compiled replay reads; ``mall.n_sets`` is 0 without an Infinity Cache."""

    xcds: int
    slots: int
    offset: int
    l2: Index
    l2_ways: int
    mall: Index
    mall_ways: int


def machine_of(gpu: Gpu) -> Machine:
    """Numbers of a GPU for the compiled replay, with one slot a CU."""
    return Machine(
        xcds=gpu.xcds,
        slots=gpu.cus_per_xcd,
        offset=gpu.dispatch_offset,
        l2=index_of(gpu.l2),
        l2_ways=gpu.l2.ways,
        mall=index_of(gpu.mall),
        mall_ways=gpu.mall.ways if gpu.mall else 0,
    )
