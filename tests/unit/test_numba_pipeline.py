"""Does the compiler of kernels give what numba's own does, and leave that as it was?"""

import numba
import numpy as np
import pytest

from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import KernelCompiler, uncounted


@inlined
def _mixed(values, i):
    """Operators of more types than one, a constant index, a tuple and what only literals of numba's choose."""
    pair = (values[i], np.uint64(i) << np.uint64(3))
    low, high = min(np.int64(pair[0]), i), max(i, 3)
    return low + high * 2 - (high // 3) % 5, pair[1] if i & 1 else np.uint64(low > 1 or high == 3)


@uncounted(cache=False)
def _sum(values, out):
    for i in range(values.size):
        number, bits = _mixed(values, i)
        out[i] = number + np.int64(bits) + np.int64(values[i] / 2)


def by_numba(values):
    """The same by numba's own compiler, with a closure and an expression of arrays, which kernels may not have."""
    mixed = numba.njit(getattr(_mixed, "py_func", _mixed))

    @numba.njit
    def total(values):
        def one(i):
            number, bits = mixed(values, i)
            return number + np.int64(bits)

        return np.array([one(i) for i in range(values.size)]) + (values / 2).astype(np.int64)

    return total(values)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
def test_a_kernel_computes_what_numbas_own_compiler_makes_of_it(dtype):
    values, out = (np.arange(12) * 7 % 5).astype(dtype), np.zeros(12, np.int64)
    _sum(values, out)
    assert out.tolist() == by_numba(values).tolist()


@uncounted(cache=False, boundscheck=True)
def _set(row, i, value):
    row[0, i] = row[0, i] + value


@pytest.mark.skipif(numba.config.DISABLE_JIT or not KernelCompiler, reason="Python counts from the end")
def test_an_index_counts_from_the_front_alone():
    row = np.zeros((1, 3), np.int64)
    _set(row, 2, 5)
    assert row.tolist() == [[0, 0, 5]]
    for i in (-1, 3):
        with pytest.raises(IndexError):
            _set(row, i, 5)


@inlined
def _raised(number, by):
    return number + by


@uncounted(cache=False)
def _raise_twice(row):
    row[0] = _raised(_raised(row[0], 1), 2)


@pytest.mark.skipif(numba.config.DISABLE_JIT or not KernelCompiler, reason="nothing is compiled once")
def test_a_function_is_compiled_once_for_all_literals():
    row = np.zeros(1, np.int64)
    _raise_twice(row)
    assert row[0] == 3
    assert len(_raised.overloads) == 1
