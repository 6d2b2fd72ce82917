"""Do kernels read tuples taken by reference as they read plain ones, and leave their arrays' reference counts alone?"""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called
from xcd_model.compiled.numba_setup import njit, uncounted


@by_reference
class Inner(NamedTuple):
    weight: np.ndarray
    factor: int


@by_reference
class Outer(NamedTuple):
    inner: Inner
    total: np.ndarray
    signed: bool


@called
def _add(outer, at, value):
    outer.total[at] += value * outer.inner.factor
    return outer.total[at]


@uncounted(cache=False)
def _weigh(outer, n):
    for i in range(n):
        _add(outer, i % outer.total.size, outer.inner.weight[i])
    return outer.total[0] if not outer.signed else -outer.total[0]


@njit
def _counted(outer):
    inner = outer.inner
    return inner.weight.sum() + outer.total.size


def outer(dtype=np.int64, signed=False):
    return Outer(Inner(np.arange(6).astype(dtype), 3), np.array([1, 2], np.int64), signed)


def test_a_kernel_reads_fields_and_writes_what_their_arrays_hold():
    one = outer(signed=True)
    assert _weigh(one, 6) == -(1 + 3 * (0 + 2 + 4))
    assert one.total.tolist() == [19, 2 + 3 * (1 + 3 + 5)]


def test_tuples_of_other_fields_are_of_other_types():
    kinds = {numba.typeof(outer(dtype)) for dtype in (np.int64, np.int32)}
    assert len({kind.name for kind in kinds}) == 2
    assert _weigh(outer(np.int32), 6) == 19


@pytest.mark.parametrize("kernel", [_counted, lambda one: _weigh(one, 6)])
def test_no_reference_to_an_array_is_kept_or_lost(kernel):
    one = outer()
    kernel(one)
    before = [sys.getrefcount(array) for array in (one.inner.weight, one.total)]
    for _ in range(5):
        kernel(one)
    assert [sys.getrefcount(array) for array in (one.inner.weight, one.total)] == before


def test_a_field_of_another_type_is_refused():
    _weigh(outer(), 6)
    (signature,) = _weigh.nopython_signatures[:1]
    kernel = _weigh.overloads[signature.args].entry_point
    with pytest.raises(TypeError):
        kernel(outer()._replace(total=None), 6)
