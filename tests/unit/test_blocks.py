"""Which workgroups run in step, and when is a block given up? What is given up needlessly is run one by one.

To the same result, so that no verdict shows it.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.language import Grid, in_step, one_by_one, parse_form, vm
from swizzle_sim.language.grid import Digit
from swizzle_sim.language.in_step import CALL, Allowance, tiles_of
from swizzle_sim.language.lower import compile_form
from swizzle_sim.language.verdict import Budget
from swizzle_sim.language.vm import run
from xcd_model.errors import LanguageError

LEAST, MOST = -(2**31), 2**31 - 1
EACH = getattr(one_by_one.run_each, "py_func", one_by_one.run_each)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """As plain Python, whose limits can be replaced, and with all that a process may lose."""
    monkeypatch.setattr(in_step, "BEFORE_COMPILING", Allowance(10**12))
    for name in ("run_each", "_run_one", "_operate"):
        kernel = getattr(one_by_one, name)
        monkeypatch.setattr(one_by_one, name, getattr(kernel, "py_func", kernel))


@pytest.fixture
def machine(monkeypatch):
    """Runs a block of a text, in step or one by one, from what `run` hands on."""

    def machine(text, grid):
        handed = []
        monkeypatch.setattr(vm, "tiles_of", lambda *arguments: handed.extend(arguments))
        monkeypatch.setattr(one_by_one, "run_each", lambda *arguments: handed.extend(arguments[:4]))
        run(compile_form(parse_form(text)), grid, 4, {"M": 5})
        code, registers, decode, encode = handed[:4]
        tables = handed[6:]

        def together(first, count, left=10**9):
            return tiles_of(code, registers, decode, encode, np.arange(first, first + count), left)

        def alone(first, count, left=10**6):
            ids, report = np.full(count, -9), np.array([0, 0, 0, -1, 0, 0, 0, left])
            EACH(tables[0], tables[1].copy(), *tables[2:], first, ids, report)
            lost = tuple(report[3:6].tolist()) if report[3] >= 0 else None
            return SimpleNamespace(fault=int(report[0]), ids=ids.tolist(), outside=lost, steps=int(report[6]))

        return SimpleNamespace(in_step=together, one_by_one=alone, registers=len(registers))

    return machine


STAY = [
    "pid = pid + 0",
    "pid = num_pids - 1 - pid",
    "if pid >= 0:\n    pid = pid ^ 1\nelse:\n    pid = 7",
    "if pid < 0:\n    pid = 7\nelse:\n    pid = pid ^ 1",
    "if M - pid + pid:\n    pid = pid",  # taken where it is not 1 either
    "if pid - 90:\n    pid = 71 - pid",  # taken though it is not the same in all
    "a = pid + 2147483576\npid = pid",  # up to the last of 32 bits
    "a = 0\nfor i in range(3):\n    a += i\npid = (pid + a) % num_pids",
    "a = pid // 8\nfor i in range(a):\n    a += i\npid = pid",
]
PART = [
    "if pid == 12:\n    pid = pid",
    "if pid != 12:\n    pid = pid",
    "if pid > 12:\n    pid = pid ^ 1\nelse:\n    a = pid\n    pid = a + 0",
    "if pid - 12:\n    pid = 71 - pid",
    "if pid % 3:\n    if pid % 2:\n        pid = pid + 2\n    pid = pid - 2",
    "a = 0\nfor i in range(pid % 5):\n    a += i\npid = (pid + a) % num_pids",
    "n = M\nif pid > 10:\n    n = 3\nfor i in range(n):\n    pid = pid ^ i",  # the same in all of each part
    "pid = pid if pid != 12 else num_pids",  # leave the grid
    "pid = pid - (pid > 11) * 90",
    "if pid > 10:\n    pid = pid + 100\nelse:\n    pid = pid",
    "if pid > 10:\n    pid = pid\nelse:\n    pid = 0 - 1 - pid",
]
FAULTS = [
    "pid = pid if pid != 12 else 7 // (pid ^ 12)",
    "a = pid * 178956971\npid = pid",  # 2**31 from pid 12 on
    "if pid == 12:\n    pid = pid // 0",
    "a = -2147483648 - (pid == 12)\npid = pid",
]


@pytest.mark.parametrize(("first", "count"), [(8, 8), (16, 5), (64, 1), (0, 72)])
@pytest.mark.parametrize("text", STAY + PART)
def test_a_block_computes_and_counts_what_its_workgroups_do_one_by_one(text, first, count, machine):
    block = machine(text, Grid((72,)))
    each = block.one_by_one(first, count)
    found = block.in_step(first, count)
    assert each.fault == 0
    assert (found.ids.tolist(), found.outside, found.steps) == (each.ids, each.outside, each.steps)
    assert block.in_step(first, count, each.steps).steps == each.steps
    assert block.in_step(first, count, each.steps - 1) is None  # the budget may end: one by one finds where


@pytest.mark.parametrize("text", STAY)
def test_a_block_in_step_is_given_up_where_a_workgroup_takes_more_steps_than_it_may(text, machine, monkeypatch):
    block = machine(text, Grid((72,)))
    steps = block.one_by_one(8, 8).steps // 8
    monkeypatch.setattr(in_step, "MAX_STEPS_PER_PID", steps)
    assert block.in_step(8, 8).steps == 8 * steps
    monkeypatch.setattr(in_step, "MAX_STEPS_PER_PID", steps - 1)
    assert block.in_step(8, 8) is None


@pytest.mark.parametrize("text", FAULTS)
def test_a_block_with_a_fault_is_given_up_and_one_without_is_not(text, machine):
    block = machine(text, Grid((72,)))
    assert block.in_step(8, 8) is None
    assert block.in_step(8, 4).ids.tolist() == [8, 9, 10, 11]


@pytest.fixture
def loses(monkeypatch):
    """Whether a block loses so much, and no less: it is given up with one less, of the block's or of the process's."""

    def loses(lost, run):
        found = []
        for block, process in ((lost, lost), (lost - 1, lost), (lost, lost - 1)):
            allowance = Allowance(process)
            monkeypatch.setattr(in_step, "MOST_LOST", block)
            monkeypatch.setattr(in_step, "BEFORE_COMPILING", allowance)
            found.append(run() is not None)
            assert allowance.steps == (process - min(block, process))  # all that it might, where it is given up
        return found == [True, False, False]

    return loses


def test_an_instruction_loses_what_calling_numpy_takes_longer_than_compiled_code(machine, loses):
    loop = machine("a = 0\nfor i in range(100):\n    a += i\npid = pid", Grid((9000,)))
    calls = loop.one_by_one(0, 1).steps
    for size in (8, 4095):
        assert loses(calls * (CALL - size), lambda size=size: loop.in_step(8, size))


def test_a_large_block_that_stays_together_loses_nothing(machine, monkeypatch):
    loop = machine("a = 0\nfor i in range(100):\n    a += i\npid = pid", Grid((9000,)))
    monkeypatch.setattr(in_step, "BEFORE_COMPILING", Allowance(0))
    assert loop.in_step(0, CALL - 1) is None
    for size in (CALL, CALL + 1, 8192):
        assert loop.in_step(0, size).steps == size * loop.one_by_one(0, 1).steps
    assert in_step.BEFORE_COMPILING.steps == 0


def test_parts_lose_for_their_registers_and_for_what_each_does(machine, loses):
    block = machine("if pid == 12:\n    pid = pid", Grid((72,)))
    taken, other, before = (block.one_by_one(pid, 1).steps for pid in (12, 8, 8))  # to the jump, the last of the others
    parts = (taken - before) * (CALL - 1) + (other - before) * (CALL - 7)
    assert loses(before * (CALL - 8) + 4 * block.registers * CALL + parts, lambda: block.in_step(8, 8))


def test_a_block_of_many_parts_is_given_up(machine, monkeypatch):
    many = machine("a = 0\nfor i in range(pid):\n    a += i\npid = pid", Grid((72,)))
    monkeypatch.setattr(in_step, "MOST_LOST", 400 * CALL)  # more than any of its parts
    assert many.in_step(0, 2) is not None
    assert many.in_step(0, 72) is None


@pytest.mark.parametrize(
    ("registers", "fits"),
    [([LEAST, MOST], True), ([LEAST - 1, 0], False), ([0, LEAST - 1], False), ([MOST + 1, 0], False), ([], True)],
)
def test_what_needs_more_than_32_bits_runs_one_by_one(registers, fits):
    found = tiles_of([], registers, [], [(-1, Digit(1, 8))], np.arange(8), 0)
    assert (found is not None) == fits
    assert not fits or (found.ids.tolist(), found.outside, found.steps) == (list(range(8)), None, 0)


def test_the_first_register_may_be_the_result():
    """Of a program without instructions: what came in, turned round by the strides."""
    decode, encode = [(0, Digit(1, 4)), (1, Digit(4, 2))], [(0, Digit(2, 4)), (1, Digit(1, 2))]
    turned = [0, 2, 4, 6, 1, 3, 5, 7]
    assert tiles_of([], [0, 0], decode, encode, np.arange(8), 0).ids.tolist() == turned
    ids, none = np.full(8, -9), np.zeros((0, 6), np.int32)
    tables = (np.array([[0, 1, 4], [1, 4, 2]]), np.array([[0, 2, 4], [1, 1, 2]]))
    EACH(none, np.zeros(2, np.int64), *tables, 0, ids, np.array([0, 0, 0, -1, 0, 0, 0, 9]))
    assert ids.tolist() == turned


@pytest.fixture
def runs(monkeypatch):
    """Blocks of 8 that a run tried in step, and the first of each run one by one."""
    tried, alone, true, each = [], [], vm.tiles_of, one_by_one.run_each
    monkeypatch.setattr(vm, "BLOCK", 8)
    monkeypatch.setattr(vm, "tiles_of", lambda *given: tried.append(given[4].tolist()) or true(*given))
    monkeypatch.setattr(one_by_one, "run_each", lambda *given: alone.append((given[4], given[5].size)) or each(*given))
    return SimpleNamespace(tried=tried, alone=alone)


def of_text(text, num_pids, budget=None):
    return run(compile_form(parse_form(text)), Grid((num_pids,)), 4, budget=budget)


def test_blocks_run_in_step_one_after_the_other(runs):
    found = of_text("pid = pid_x ^ 1", 20)
    assert runs.tried == [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    assert (found.ids.tolist(), found.steps, runs.alone) == ([pid ^ 1 for pid in range(20)], 20, [])


def test_from_the_first_block_that_is_given_up_on_workgroups_run_one_by_one(runs):
    found = of_text("a = 7 // (17 - pid) if pid < 18 else 0\npid = pid", 40)
    assert [one[0] for one in runs.tried] == [0, 8, 16] and runs.alone == [(16, 24)]
    assert (found.fault.pid, found.ids[:17].tolist()) == (17, list(range(17)))


def test_the_first_outside_the_grid_may_be_in_any_block(runs):
    lost = of_text("pid = pid + (pid > 18) * 30 - (pid == 30)", 40).out_of_range
    assert (lost.pid, lost.value) == (19, 49)
    lost = of_text("pid = pid - 100", 40).out_of_range
    assert (lost.pid, lost.value) == (0, -100)
    lost = of_text("pid = pid - (pid > 2) * 99", 40).out_of_range
    assert (lost.pid, lost.value) == (3, -96)
    assert not runs.alone


def test_a_budget_is_spent_block_by_block(runs):
    text, budget = "a = pid_x\npid = a ^ 1", Budget(2 * 20 + 3)
    of_text(text, 20, budget)
    assert budget.left == 3 and not runs.alone
    with pytest.raises(LanguageError, match="after 39 steps 19 of 20 workgroups are done"):
        of_text(text, 20, Budget(39))
    assert runs.alone == [(16, 4)]
