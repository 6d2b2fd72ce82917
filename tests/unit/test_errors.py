"""Errors come out of another process as they were raised there."""

import pickle

import pytest

from xcd_model import errors

RAISED = [
    errors.UnknownName("kernel", "gem", ["gemm", "softmax"]),
    errors.LanguageError("no", filename="a.txt", line=2, column=3, source_line="x = y", code="name"),
    errors.RewriteError("no", path="kernel.py", line=4),
    errors.HardwareError("no", code="other-gpu"),
    errors.MissingExtra("no"),
    errors.SpecError("no"),
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda one: type(one).__name__)
def test_an_error_is_the_same_in_another_process(raised):
    found = pickle.loads(pickle.dumps(raised))
    assert (type(found), str(found), vars(found)) == (type(raised), str(raised), vars(raised))
    assert found.code == raised.code
