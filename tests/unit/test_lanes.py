"""Each instruction for a block of workgroups, against the same done for one workgroup, at the ends of 32 bits."""

import itertools

import numpy as np
import pytest

from swizzle_sim.language import Grid, in_step, one_by_one, parse_form
from swizzle_sim.language.grid import Digit
from swizzle_sim.language.lower import OPCODES, compile_form
from swizzle_sim.language.rules import MAX_STEPS_PER_PID
from swizzle_sim.language.verdict import Budget
from swizzle_sim.language.vm import run
from xcd_model.compiled.numba_setup import njit
from xcd_model.errors import LanguageError

LEAST, MOST = -(2**31), 2**31 - 1
ENDS = (LEAST, LEAST + 1, -(2**16), -33, -32, -3, -2, -1, 0, 1, 2, 3, 30, 31, 32, 33, 2**16, MOST - 1, MOST)
OPERATIONS = range(OPCODES.index("move"), len(OPCODES))


@njit
def alone(op, a, b, c):
    return one_by_one._operate(op, a, b, c)


def register(values):
    """Of workgroups that hold these values, one integer where all hold the same."""
    return in_step._lanes(np.array(values, np.int64))


def of_block(op, *operands):
    """Values that an instruction computes, None where one has a fault: with what a run looks at after each."""
    result = in_step._apply(op, *map(register, operands))
    if result is None or not LEAST <= result.low <= result.high <= MOST:
        return None
    values = np.broadcast_to(result.value, len(operands[0])).tolist()
    assert (result.low, result.high) == (min(values), max(values))
    assert isinstance(result.value, np.ndarray) == (result.low < result.high)
    return values


def of_each(op, a, b, c):
    """The same of one workgroup."""
    fault, value = alone(op, np.int64(a), np.int64(b), np.int64(c))
    return None if fault or not LEAST <= value <= MOST else value


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: OPCODES[op])
def test_a_block_does_what_one_does_and_has_a_fault_where_it_has(op):
    for x, y in itertools.product(ENDS, ENDS):
        expected = of_each(op, x, y, 11)
        assert of_block(op, [x], [y], [11]) == (None if expected is None else [expected]), (x, y)


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: OPCODES[op])
@pytest.mark.parametrize("other", [[7, 7], [7, 8], [0, 0], [0, 1], [-1, 1]], ids=str)
def test_the_fault_of_one_workgroup_is_the_fault_of_all(op, other):
    """Of two workgroups that hold the same or not the same, in each operand."""
    for x, y in itertools.product(ENDS, ENDS):
        for a, b in (([x, other[0]], [y, other[1]]), ([x, x], [y, other[1]]), ([x, other[0]], [y, y])):
            expected = [of_each(op, p, q, r) for p, q, r in zip(a, b, (11, 12), strict=True)]
            assert of_block(op, a, b, [11, 12]) == (None if None in expected else expected), (a, b)


@pytest.mark.parametrize("stride", [1, 2, 3, 7, 300])
@pytest.mark.parametrize("extent", [1, 2, 3, 5, 1000])
def test_coordinates_of_a_block_are_those_of_each(stride, extent):
    for first, count in ((0, 256), (1, 3), (512, 255), (5 * stride + 1, 2)):
        found = in_step._coordinate(np.arange(first, first + count), Digit(stride, extent))
        assert found.tolist() == [(first + i) // stride % extent for i in range(count)]


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("same", [True, False])
def test_a_tile_outside_the_grid_is_seen_at_either_end(value, same):
    """Coordinates of a register and of the hardware: extent 3 at stride 4, and the pid's lowest digit of 4."""
    values = [value] * 6 if same else [1, 1, value, 1, value, 1]
    registers = [register([1] * 6), register(values), register([0] * 6)]
    ids, lost = in_step._encoded(registers, [(1, Digit(4, 3)), (-1, Digit(1, 4))], np.arange(8, 14))
    inside = [0 <= one < 3 for one in values]
    assert ids.tolist() == [4 * one + (8 + i) % 4 if inside[i] else -1 for i, one in enumerate(values)]
    assert lost == ([] if all(inside) else [(8 + inside.index(False), 0, value)])


def test_a_loop_of_just_as_many_steps_as_a_workgroup_has_is_no_end_of_the_budget():
    """`5` is its own fault; where less was left than a workgroup may take, the budget ended."""
    program = compile_form(parse_form("a = 0\nfor i in range(50000):\n    a += 1\npid = pid"))
    assert run(program, Grid((1,)), 8, budget=Budget(MAX_STEPS_PER_PID)).fault is not None
    with pytest.raises(LanguageError, match="too large to decide"):
        run(program, Grid((1,)), 8, budget=Budget(MAX_STEPS_PER_PID - 1))
