"""Are functions without code of their own inlined or called as declared, with the results of plain ones?"""

import re
from typing import NamedTuple

import numpy as np
import pytest

from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.numba_setup import KernelCompiler, uncounted

private_parts = pytest.mark.skipif(not KernelCompiler, reason="of a numba that was not tried")


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@inlined
def _add(pair, at, n):
    for i in range(n):
        pair.left[at] += pair.right[i]
    return pair.left[at]


@called
def _add_all(pair, n):
    return np.int64(_add(pair, 0, n)), _add(pair, 1, n)


@uncounted(cache=False)
def _sums(pair, n):
    first, second = _add_all(pair, n)
    return first + _add(pair, 0, n), second


def test_kernels_compute_what_their_functions_do_in_python():
    pair = Pair(np.array([10, 20]), np.arange(5))
    assert _sums(pair, 5) == (20 + 30, 30)
    assert pair.left.tolist() == [30, 30]


@private_parts
def test_nothing_of_an_inlined_function_is_left_beside_the_kernel_and_its_wrapper():
    _sums(Pair(np.array([0, 0]), np.arange(5)), 5)
    (text,) = _sums.inspect_llvm().values()
    defined = re.findall(r"^define .*?@(\S+?)\(", text, re.MULTILINE)
    assert len(defined) == 2 and all("_sums" in name for name in defined)


@private_parts
def test_python_cannot_call_one():
    pair = Pair(np.array([0, 0]), np.arange(5))
    _sums(pair, 5)
    with pytest.raises(TypeError, match="not callable"):
        _add(pair, 0, 5)
