"""Does the check that no capture escapes notice each way in which a trace can be wrong?"""

from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.capture.check import _compare, sample
from swizzle_sim.capture.interpret import Touch
from xcd_model import Tensor, Trace
from xcd_model.errors import CaptureError
from xcd_model.trace.coalesce import Touched

PROGRAM = SimpleNamespace(launch=SimpleNamespace(path=SimpleNamespace(name="k.py"), function="k"))


def trace(**change):
    parts = {
        "start": np.array([0, 1]),
        "base": np.array([2]),
        "template": np.array([0], np.int32),
        "rel_start": np.array([0, 2]),
        "rel": np.array([0, 1], np.int32),
        "sectors": np.array([15, 1], np.uint8),
        "is_write": np.array([False]),
        "tensor": np.array([0], np.int32),
        "wave_requests": np.array([1, 2], np.uint16),
    }
    tensors = (Tensor("x", 0, 8, 1024), Tensor("y", 16384, 8, 1024))
    return Trace(line_bytes=128, tensors=tensors, **{**parts, **change})


SHAPE = Touched(np.array([1, 2]), np.array([15, 1], np.uint8), np.array([1, 2], np.uint16))
REAL = [Touch(1, SHAPE, 0, False, np.array([8, 9, 10, 11, 12]))]


def test_equal_lines_pass_wherever_their_base_is():
    _compare(PROGRAM, trace(), 0, REAL)


@pytest.mark.parametrize(
    "change",
    [
        {"base": np.array([3])},
        {"rel": np.array([0, 2], np.int32)},
        {"rel": np.array([1, 0], np.int32)},
        {"sectors": np.array([15, 3], np.uint8)},
        {"wave_requests": np.array([1, 1], np.uint16)},
        {"is_write": np.array([True])},
        {"tensor": np.array([1], np.int32), "base": np.array([16386])},
        {"start": np.array([0, 2]), "base": np.array([2, 2]), "template": np.array([0, 0], np.int32)},
    ],
)
def test_any_difference_is_refused(change):
    with pytest.raises(CaptureError, match=r"k\.py: k: workgroup 0") as error:
        _compare(PROGRAM, trace(**change), 0, REAL)
    assert error.value.code == "mismatch"


def test_lines_that_are_coalesced_wrongly_on_both_sides_are_refused():
    """The sectors come from the addresses alone."""
    with pytest.raises(CaptureError, match="other lines"):
        _compare(PROGRAM, trace(), 0, [REAL[0]._replace(sectors=np.array([8, 9, 10, 11]))])


def test_the_sample_holds_corners_and_paths():
    paths = [np.arange(5, 59), np.array([3])]
    found = sample((4, 5, 3), paths, seed=1)
    assert {0, 3, 16, 19, 40, 43, 56, 59} <= set(found)
    assert len(found) == len(set(found))
    assert found == sample((4, 5, 3), paths, seed=1)
    assert all(set(path.tolist()) & set(found) for path in paths)
