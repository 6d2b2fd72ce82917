"""Each part of a block run in step, against the same done for one workgroup, at the ends of 32 bits."""

import itertools

import numpy as np
import pytest

from swizzle_sim.swizzle import Grid, parse_form, vm
from swizzle_sim.swizzle.lower import OPCODES, compile_form
from swizzle_sim.swizzle.verdict import Budget
from swizzle_sim.swizzle.vm import run
from xcd_model.errors import LanguageError
from xcd_model.numba_setup import njit

LEAST, MOST = -(2**31), 2**31 - 1
ENDS = (LEAST, LEAST + 1, -(2**16), -33, -32, -3, -2, -1, 0, 1, 2, 3, 30, 31, 32, 33, 2**16, MOST - 1, MOST)
OPERATIONS = range(OPCODES.index("move"), len(OPCODES))


@njit
def in_lanes(op, a, b, c, out):
    return vm._operate_lanes(op, a, b, c, out)


@njit
def alone(op, a, b, c):
    return vm._operate(op, a, b, c)


@njit
def digits(first, count, stride, extent, out):
    vm._digits(first, count, stride, extent, out)


@njit
def tiles(rows, encode, first, ids):
    return vm._tiles(rows, encode, first, ids)


def lanes(value):
    return np.full(vm.LANES, value, np.int32)


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: OPCODES[op])
def test_lanes_do_what_one_does_and_have_a_fault_where_it_has(op):
    for x, y in itertools.product(ENDS, ENDS):
        out = lanes(5)
        fault, value = alone(op, np.int64(x), np.int64(y), np.int64(11))
        stops = fault != 0 or not LEAST <= value <= MOST  # `_run_one` looks at the value
        assert bool(in_lanes(op, lanes(x), lanes(y), lanes(11), out)) == stops, (x, y)
        assert stops or (out == value).all(), (x, y)


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "<<", ">>"])
def test_the_fault_of_one_lane_is_the_fault_of_all(op):
    a, b = lanes(MOST), lanes(1)
    a[:-1] = 8
    if op in ("//", "%", "<<", ">>"):
        b[-1] = 0 if op in ("//", "%") else 32
    if op == "-":
        b[-1] = -1
    if op == "*":
        b[-1] = 2
    assert in_lanes(OPCODES.index(op), a, b, lanes(0), lanes(0))
    a[-1] = b[-1] = 1
    assert not in_lanes(OPCODES.index(op), a, b, lanes(0), lanes(0))


@pytest.mark.parametrize("stride", [1, 2, 3, 7, 300])
@pytest.mark.parametrize("extent", [1, 2, 3, 5, 1000])
def test_digits_of_a_block_are_those_of_each(stride, extent):
    for first, count in ((0, vm.LANES), (1, 3), (2 * vm.LANES, vm.LANES - 1), (5 * stride + 1, 2)):
        out = lanes(-9)
        digits(first, count, stride, extent, out)
        expected = [(first + i) // stride % extent for i in range(count)]
        assert out.tolist() == expected + [expected[-1]] * (vm.LANES - count)


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 3])
def test_a_tile_outside_the_grid_is_seen_at_either_end(value):
    """Coordinates of a register and of the hardware: extent 3 at stride 4, and the pid's lowest digit of 4."""
    rows = np.stack([lanes(1), lanes(value), lanes(0)])
    ids = np.full(6, -7, np.int64)
    encode = np.array([[1, 4, 3], [-1, 1, 4]], np.int64)
    assert tiles(rows, encode, 8, ids) == (not 0 <= value < 3)
    assert ids.tolist() == [4 * value + (8 + i) % 4 for i in range(6)]


def test_a_loop_of_just_as_many_steps_as_a_workgroup_has_is_no_end_of_the_budget():
    """`5` is its own fault; where less was left than a workgroup may take, the budget ended."""
    program = compile_form(parse_form("a = 0\nfor i in range(50000):\n    a += 1\npid = pid"))
    most = vm.MAX_STEPS_PER_PID
    assert run(program, Grid((1,)), 8, budget=Budget(most)).fault is not None
    with pytest.raises(LanguageError, match="too large to decide"):
        run(program, Grid((1,)), 8, budget=Budget(most - 1))
