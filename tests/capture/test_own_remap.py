"""Is a remap that a kernel holds already found, and is it put off by its constant?"""

from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.capture.own_remap import own_remap
from swizzle_sim.language import Grid
from swizzle_sim.workload.launch import Array, Launch

HEAD = """
import triton
import triton.language as tl


@triton.jit
def f(x, M, N, GROUP_M: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK)
    num_pid_n = tl.cdiv(N, BLOCK)
"""
GROUPED = """
    width = GROUP_M * num_pid_n
    first = (pid // width) * GROUP_M
    size = min(num_pid_m - first, GROUP_M)
    pid_m = first + (pid % width) % size
    pid_n = (pid % width) // size
    tl.store(x + pid_m, pid_n)
"""
PLAIN = "    pid_m = pid // num_pid_n\n    pid_n = pid % num_pid_n\n    tl.store(x + pid_m, pid_n)\n"
COLUMNS = "    pid_n = pid // num_pid_m\n    pid_m = pid % num_pid_m\n    tl.store(x + pid_m, pid_n)\n"


@pytest.fixture
def found(tmp_path):
    def make(body, group):
        path = tmp_path / "k.py"
        path.write_text(HEAD + body)
        launch = Launch(
            path=path,
            function="f",
            arguments={"x": Array(shape=(64,), dtype="int32", role="out"), "M": 64, "N": 96},
            constexprs={"GROUP_M": group, "BLOCK": 16},
            grid=(24,),
        )
        return own_remap(SimpleNamespace(file="k.py", programs=None, grid=Grid((24,), (4, 6)), launch=launch), 8)

    return make


def test_a_group_is_found_and_put_off_by_its_constant(found):
    inside = found(GROUPED, 2)
    assert (inside.now, inside.constants) == ({"GROUP_M": 2}, {"GROUP_M": 1})
    assert inside.tiles[:4].tolist() == [0, 6, 1, 7]
    assert np.array_equal(inside.tiles[inside.without], np.arange(24))
    assert str(inside) == "the kernel's own remap (GROUP_M=2)"


def test_a_remap_without_such_a_constant_is_found_too(found):
    inside = found(COLUMNS, 2)
    assert (inside.constants, inside.tiles[:4].tolist()) == ({}, [0, 6, 12, 18])


def test_a_plain_decode_and_a_group_of_one_are_no_remap(found):
    assert found(PLAIN, 2) is None
    assert found(GROUPED, 1) is None


def test_an_id_that_a_helper_hands_on_is_read(found):
    helper = "\n\n@triton.jit\ndef number(axis):\n    return tl.program_id(axis).to(tl.int64)\n"
    assert found("    pid = number(0)\n" + GROUPED.lstrip("\n") + helper, 2).constants == {"GROUP_M": 1}


def test_what_cannot_be_read_is_none(found):
    assert found("    pid_m = tl.load(x + pid)\n", 2) is None
