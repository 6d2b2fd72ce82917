"""Which workgroups run in step, and when is a block given up? As plain Python, whose parts can be replaced and counted.

What is given up needlessly is run one by one to the same result, so that no verdict shows it.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.swizzle import Grid, parse_form, vm
from swizzle_sim.swizzle.lower import compile_form
from swizzle_sim.swizzle.vm import run

PARTS = "_evaluate _run_each _run_lanes _digits _tiles _operate_lanes _run_one _operate"
LANES, FEWEST, USED = 8, 3, 100  # steps that others took
LEAST, MOST = -(2**31), 2**31 - 1


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in PARTS.split():
        kernel = getattr(vm, name)
        monkeypatch.setattr(vm, name, getattr(kernel, "py_func", kernel))
    monkeypatch.setattr(vm, "LANES", LANES)
    monkeypatch.setattr(vm, "FEWEST_LANES", FEWEST)


def new_report(left=10**6):
    return np.array([0, 0, 0, -1, 0, 0, USED, USED + left])


@pytest.fixture
def blocks_of(monkeypatch):
    """First workgroup and size of each block tried in step, which stays there or not, and of each run one by one."""

    def blocks(num_pids, stay, registers=(7,), stops=False):
        tried, alone = [], []
        registers = np.array(registers, np.int64)

        def run_lanes(code, rows, decode, encode, first, ids, report):
            assert (rows[: registers.size] == registers[:, None]).all()
            tried.append((first, ids.size))
            return next(stay)

        def run_each(code, reg, decode, encode, first, ids, report):
            alone.append((first, ids.size))
            return stops

        monkeypatch.setattr(vm, "_run_lanes", run_lanes)
        monkeypatch.setattr(vm, "_run_each", run_each)
        none = np.zeros((0, 3), np.int64)
        rows = np.empty((registers.size + 1, LANES), np.int32)
        vm._evaluate(none, registers, rows, none, none, np.zeros(num_pids, np.int64), new_report())
        return tried, alone

    return blocks


def test_whole_blocks_and_a_last_one_that_is_large_enough_run_in_step(blocks_of):
    whole = [(0, 8), (8, 8)]
    assert blocks_of(16 + FEWEST, itertools.repeat(True)) == ([*whole, (16, FEWEST)], [])
    assert blocks_of(16 + FEWEST - 1, itertools.repeat(True)) == (whole, [(16, FEWEST - 1)])
    assert blocks_of(16, itertools.repeat(True)) == (whole, [])


@pytest.mark.parametrize("stayed", [0, 1, 2])
def test_two_blocks_more_may_part_ways_than_stay_in_step(stayed, blocks_of):
    tried, alone = blocks_of(64, itertools.chain([True] * stayed, itertools.repeat(False)))
    assert tried == [(first, 8) for first in range(0, 8 * (2 * stayed + 2), 8)]
    assert alone == [(first, 8) for first in range(8 * stayed, 64, 8)]


@pytest.mark.parametrize(
    ("registers", "fits"),
    [([LEAST, MOST], True), ([LEAST - 1, 0], False), ([0, LEAST - 1], False), ([MOST + 1, 0], False), ([], True)],
)
def test_what_needs_more_than_32_bits_runs_one_by_one(registers, fits, blocks_of):
    assert bool(blocks_of(8, itertools.repeat(True), registers)[0]) == fits


def test_nothing_runs_after_a_workgroup_that_stopped(blocks_of):
    assert blocks_of(64, itertools.repeat(False), stops=True) == ([(0, 8)], [(0, 8)])


@pytest.fixture
def machine(monkeypatch):
    """Runs a block of a text, in step or one by one, from what `run` hands on."""

    def machine(text, grid):
        handed = []
        monkeypatch.setattr(vm, "_evaluate", lambda *arguments: handed.extend(arguments))
        run(compile_form(parse_form(text)), grid, 4, {"M": 5})
        code, reg, _, decode, encode = handed[:5]

        def in_step(first, count, left):
            rows = np.full((reg.size + 1, LANES), 77, np.int32)
            rows[:-1] = reg[:, None]
            ids, report = np.full(count, -9), new_report(left)
            stayed = vm._run_lanes(code, rows, decode, encode, first, ids, report)
            return stayed, ids.tolist(), report.tolist()

        def one_by_one(first, count, left=10**6):
            ids, report = np.full(count, -9), new_report(left)
            stopped = vm._run_each(code, reg.copy(), decode, encode, first, ids, report)
            return stopped, ids.tolist(), report.tolist()

        return SimpleNamespace(in_step=in_step, one_by_one=one_by_one)

    return machine


STAY = [
    "pid = pid + 0",
    "pid = num_pids - 1 - pid",
    "if pid >= 0:\n    pid = pid ^ 1\nelse:\n    pid = 7",
    "if pid < 0:\n    pid = 7\nelse:\n    pid = pid ^ 1",
    "if M - pid + pid:\n    pid = pid",  # taken where it is not 1 either
    "a = 0\nfor i in range(3):\n    a += i\npid = (pid + a) % num_pids",
    "a = pid // 8\nfor i in range(a):\n    a += i\npid = pid",
]
PART = [
    "pid = pid if pid != 12 else 7 // (pid ^ 12)",  # a fault of one
    "pid = pid if pid != 12 else num_pids",  # leaves the grid
    "if pid == 12:\n    pid = pid",
    "if pid != 12:\n    pid = pid",
    "if pid > 12:\n    pid = pid",
]


@pytest.mark.parametrize(("first", "count"), [(8, 8), (16, 5), (64, 1)])
@pytest.mark.parametrize("text", STAY)
def test_a_block_in_step_counts_what_its_workgroups_do_one_by_one(text, first, count, machine, monkeypatch):
    block = machine(text, Grid((72,)))
    stopped, ids, report = block.one_by_one(first, count)
    steps = report[6] - USED
    assert not stopped
    assert block.in_step(first, count, steps) == (True, ids, [*report[:7], USED + steps])
    assert not block.in_step(first, count, steps - 1)[0]  # the budget may end: one by one finds where
    monkeypatch.setattr(vm, "MAX_STEPS_PER_PID", steps // count)
    assert block.in_step(first, count, 10**6) == (True, ids, [*report[:7], USED + 10**6])
    monkeypatch.setattr(vm, "MAX_STEPS_PER_PID", steps // count - 1)
    assert not block.in_step(first, count, 10**6)[0]


@pytest.mark.parametrize("text", PART)
def test_a_block_whose_workgroups_part_ways_is_given_up_and_nothing_is_counted(text, machine):
    block = machine(text, Grid((72,)))
    stayed, _, report = block.in_step(8, 8, 10**6)
    assert (stayed, report) == (False, new_report().tolist())


def test_lanes_without_a_workgroup_do_as_the_last_one(machine):
    """8 to 11 stay together, whatever 12 would do."""
    for text in PART:
        assert machine(text, Grid((72,))).in_step(8, 4, 10**6)[0]


def test_the_first_register_may_be_the_result():
    """Of a program without instructions: what came in, turned round by the strides."""
    none, decode = np.zeros((0, 6), np.int32), np.array([[0, 1, 4], [1, 4, 2]])
    encode = np.array([[0, 2, 4], [1, 1, 2]])
    turned = [0, 2, 4, 6, 1, 3, 5, 7]
    ids, reg, rows = np.full(8, -9), np.zeros(2, np.int64), np.zeros((3, LANES), np.int32)
    assert not vm._run_each(none, reg, decode, encode, 0, ids, new_report())
    assert ids.tolist() == turned
    assert vm._run_lanes(none, rows, decode, encode, 0, ids, new_report())
    assert ids.tolist() == turned
