"""Does the virtual machine compute what the form says, and stop where a GPU would disagree?"""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Grid, at_once, parse_form, vm
from swizzle_sim.language.lower import compile_form
from swizzle_sim.language.verdict import Budget
from swizzle_sim.language.vm import run
from tests.naive_int32 import NaiveFault, evaluate
from tests.strategies import forms
from xcd_model.errors import LanguageError, SizeError


def run_text(text, grid, num_xcds=8, sizes=None, **limits):
    return run(compile_form(parse_form(text)), grid, num_xcds, sizes, **limits)


def check_each(form, num_pids, num_xcds, size):
    """Hold a run against the naive evaluator, workgroup by workgroup, up to the first that stops."""
    result = run(compile_form(form), Grid((num_pids,)), num_xcds, {"M": size})
    lost = None
    for pid in range(num_pids):
        inputs = {"pid": pid, "num_pids": num_pids, "num_xcds": num_xcds, "M": size}
        try:
            (value,) = evaluate(form, inputs)
        except NaiveFault as fault:
            assert (result.fault.code, result.fault.pid) == (str(fault), pid)
            break
        inside = 0 <= value < num_pids
        lost = (pid, value) if lost is None and not inside else lost
        assert result.ids[pid] == (value if inside else -1)
    else:
        assert result.fault is None
    assert (result.out_of_range and (result.out_of_range.pid, result.out_of_range.value)) == lost


@settings(max_examples=190, deadline=None)
@given(forms(), st.integers(1, 9) | st.integers(16, 550), st.integers(1, 8), st.integers(-5, 5000))
def test_agrees_with_the_naive_evaluator(form, num_pids, num_xcds, size):
    for most in (at_once.MOST, 0):  # on arrays where there are no branches, and compiled
        with mock.patch.object(at_once, "MOST", most):
            check_each(form, num_pids, num_xcds, size)


@settings(max_examples=80, deadline=None)
@given(form=forms(), sides=st.lists(st.integers(1, 40), min_size=1, max_size=5), budget=st.integers(1, 2000))
def test_on_arrays_several_launches_are_permutations_where_they_are_compiled(form, sides, budget):
    found, launches = [], [(Grid((n,)), n % 8 + 1, {"M": 700}) for n in sides]
    for most in (at_once.MOST, 0):
        with mock.patch.object(at_once, "MOST", most):
            left = Budget(budget)
            found.append((vm.are_permutations(compile_form(form), launches, left), left.left))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text",
    [
        "pid = pid ^ 1",
        "pid = num_pids - 1 - pid",
        "pid = pid if pid != 300 else 7 // (pid - 300)",
        "pid = pid + 1",  # the last one is outside
        "pid = pid - (pid == 257) * 1000",
        "a = pid * 4194304\npid = pid",  # 2**31 from pid 512 on
        "a = 2147483647 + (pid == 300)\npid = pid",
        "a = -2147483648 - (pid == 300)\npid = pid",
        "pid = (pid << 22 >> 22)",
        "pid = (pid << 0) + (pid >> 0) - pid",
        "pid = pid << pid // 8 >> pid // 8",
        "pid = pid if pid <= 7 else 22 - pid",
        "pid = 1 << (pid // 16)",
        "pid = 1 << (290 - pid) // 10",
        "pid = (pid - 600) // 7 + 90",
        "pid = (pid - 600) // -7",
        "pid = pid // -1 * -1",
        "pid = pid + pid % -1",
        "a = -2147483648 // 2\npid = pid + a + 1073741824",
        "pid = (600 - pid) % 7",
        "if pid < 300:\n    a = 4 // (299 - pid)\nelse:\n    a = 3\npid = a",
        "if pid < 256:\n    a = pid\nelse:\n    a = 767 - pid\npid = a",
        "a = 0\nfor i in range(pid // 256):\n    a += 1\npid = a",
        "a = 0\nfor i in range(pid % 3):\n    a += 1\npid = a",
        "pid = min(pid, 400) if pid <= 500 and pid != 3 else max(pid, 511)",
        "pid = (pid | 4) & ~1 if not pid == 5 else 0",
    ],
)
def test_the_first_workgroup_that_stops(text):
    check_each(parse_form(text), 767, 8, 700)  # and values beyond 32 bits


def test_a_sample_has_both_ends_and_no_workgroup_twice():
    for grid in (Grid((2**22 + 1,)), Grid((3, 2**21)), Grid((2**30,), (2**15, 2**15)), Grid((2**31 - 1,))):
        first = np.array(vm._blocks(grid))
        assert (first[0], first[-1]) == (0, grid.num_pids - vm._BLOCK)
        assert (np.diff(first) >= vm._BLOCK).all()
        assert first.size * vm._BLOCK < 2**20
    part = run(compile_form(parse_form("pid = pid + 7")), Grid((2**30,)), 8, pids=range(2**29, 2**29 + 5))
    assert part.ids.tolist() == list(range(2**29 + 7, 2**29 + 12))


@pytest.mark.parametrize(
    ("text", "code", "pid", "line"),
    [
        ("a = pid * 2147483647\npid = a", "overflow", 2, 1),
        ("a = -2147483648\npid = -a", "overflow", 0, 2),
        ("a = -2147483648\npid = a - 1", "overflow", 0, 2),
        ("pid = abs(-2147483648)", "overflow", 0, 1),
        ("pid = -2147483648 // (pid - 1)", "overflow", 0, 1),
        ("pid = -2147483648 % (pid - 1)", "overflow", 0, 1),
        ("pid = cdiv(2147483647, 2)", "overflow", 0, 1),
        ("pid = pid << 31", "overflow", 1, 1),
        ("pid = 7 // (3 - pid)", "division-by-zero", 3, 1),
        ("pid = pid % 0", "division-by-zero", 0, 1),
        ("pid = tl.where(pid > 0, 4 // pid, 0)", "division-by-zero", 0, 1),
        ("pid = (pid - 2) // 4", "signed-division", 0, 1),
        ("pid = (pid - 5) % 3", "signed-division", 0, 1),
        ("pid = 0 << (pid + 30)", "shift", 2, 1),
        ("pid = pid >> -1", "shift", 0, 1),
        ("a = 0\nfor i in range(1000000):\n    a = i\npid = a", "step-limit", 0, 2),
    ],
)
def test_stops_where_a_gpu_would_disagree(text, code, pid, line):
    fault = run_text(text, Grid((8,))).fault
    assert (fault.code, fault.pid) == (code, pid)
    assert fault.line in (line, line + 1)  # in a loop the limit may strike in the body


def test_the_branch_not_taken_is_not_evaluated():
    text = "if pid > 0:\n    a = 4 // pid\nelse:\n    a = 0\npid = a"
    assert run_text(text, Grid((8,))).fault is None


def test_the_budget_of_a_whole_run_is_kept():
    text = "a = pid + 1\npid = a - 1"
    steps = run_text(text, Grid((1000,))).steps
    shared = Budget(2 * steps + 1)
    assert all(run_text(text, Grid((1000,)), budget=shared).fault is None for _ in range(2)) and shared.left == 1
    with pytest.raises(LanguageError, match=r"too large to decide.* 999 of 1000 workgroups") as caught:
        run_text(text, Grid((1000,)), budget=Budget(steps - 1))
    assert (caught.value.code, caught.value.line, caught.value.column) == ("limit", 2, 1)


def test_a_whole_run_may_take_longer_on_a_larger_grid(monkeypatch):
    monkeypatch.setattr("swizzle_sim.language.verdict.MAX_STEPS", 100)
    assert run_text("a = pid + 1\npid = a - 1", Grid((1000,))).fault is None
    with pytest.raises(LanguageError, match="too large to decide"):
        run_text("for i in range(9000): pid = pid ^ 0", Grid((1000,)))
    # one workgroup that is too slow is the candidate's own fault, whatever is left for the others
    slow = run_text("n = 100000 if pid == 1 else 0\nfor i in range(n): pid = pid ^ 0", Grid((1000,)))
    assert (slow.fault.code, slow.fault.pid) == ("step-limit", 1)


def test_a_range_looks_at_its_end_once():
    text = "n = 3\na = 0\nfor i in range(n):\n    n = n + 1\n    a += 1\npid = pid + a - 3"
    np.testing.assert_array_equal(run_text(text, Grid((5,))).ids, np.arange(5))


def test_an_overwritten_input_is_whole_for_the_next_workgroup():
    text = "M += 1\nnum_xcds = num_xcds * M\npid = pid + num_xcds - 24"
    np.testing.assert_array_equal(run_text(text, Grid((6,)), 8, {"M": 2}).ids, np.arange(6))


def decoded(grid):
    """The coordinates of each workgroup, x fastest, spelled out."""
    gx, gy, gz = (*grid.launch, 1, 1)[:3]
    return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]


@pytest.mark.parametrize("launch", [(12,), (3, 5), (5, 3), (2, 3, 4)])
def test_program_id_counts_x_fastest(launch):
    grid = Grid(launch)
    for axis in range(3):
        text = f"pid = tl.program_id({axis})"
        assert run_text(text, grid).ids.tolist() == [where[axis] for where in decoded(grid)]
        counted = run_text(f"pid = tl.num_programs({axis}) - 1", grid).ids
        assert set(counted.tolist()) == {(*launch, 1, 1)[axis] - 1}


@pytest.mark.parametrize("names", [("pid_m", "pid_n"), ("pid_x", "pid_y"), ("x", "y")])
def test_two_axes_go_back_x_fastest(names):
    a, b = names
    assert run_text(f"{a}, {b} = {a}, {b}", Grid((3, 5))).ids.tolist() == list(range(15))
    # one coordinate alone: the other keeps what the hardware gave
    turned = run_text(f"{b} = ({b} + 1) % 5", Grid((3, 5))).ids
    assert turned.tolist() == [x + 3 * ((y + 1) % 5) for x, y, _ in decoded(Grid((3, 5)))]


def test_three_axes():
    grid = Grid((2, 3, 4))
    assert run_text("x = 1 - x", grid).ids.tolist() == [1 - x + 2 * (y + 3 * z) for x, y, z in decoded(grid)]
    ids = run_text("pid_x, pid_z = pid_x, 3 - pid_z", grid).ids
    assert ids.tolist() == [x + 2 * (y + 3 * (3 - z)) for x, y, z in decoded(grid)]


def test_tiles_are_row_major():
    grid = Grid((15,), (3, 5))
    assert run_text("pid_m, pid_n = pid // num_pid_n, pid % num_pid_n", grid).ids.tolist() == list(range(15))
    assert run_text("pid = pid_m * num_pid_n + pid_n", grid).ids.tolist() == list(range(15))
    turned = "pid_m = num_pid_m - 1 - pid_m"
    assert run_text(turned, grid).ids.tolist() == [*range(10, 15), *range(5, 10), *range(5)]
    assert run_text(turned, Grid((4,))).ids.tolist() == [3, 2, 1, 0]  # rows alone are the pid


def test_a_coordinate_out_of_range_does_not_alias_another_row():
    result = run_text("pid_m, pid_n = pid // num_pid_n, pid % num_pid_n + 1", Grid((15,), (3, 5)))
    assert result.ids[4] == -1
    lost = result.out_of_range
    assert (lost.pid, lost.name, lost.value, lost.extent) == (4, "pid_n", 5, 5)


@pytest.mark.parametrize(
    ("text", "grid", "name"),
    [
        ("pid = pid + OFFSET", Grid((4,)), "OFFSET"),
        ("pid = pid_n", Grid((4,)), "pid_n"),
        ("pid = pid_m", Grid((2, 2, 2)), "pid_m"),
        ("pid_z = 0", Grid((2, 2)), "pid_z"),
        ("pid_n = 0", Grid((4,)), "pid_n"),
    ],
)
def test_names_that_a_grid_lacks(text, grid, name):
    with pytest.raises(LanguageError) as caught:
        run_text(text, grid)
    assert caught.value.code == "name"
    assert repr(name) in str(caught.value)
    assert caught.value.line == 1


@pytest.mark.parametrize("name", ["pid_n", "num_pid_n"])
@pytest.mark.parametrize(("sides", "better"), [(4096, "64x64"), (4098, "6x683"), (7, "1x7")])
def test_tile_axes_of_a_line_are_explained(name, sides, better):
    with pytest.raises(LanguageError, match=f"needs two tile axes: write the grid as {better};"):
        run_text(f"pid = pid + {name}", Grid((sides,)))


def test_the_nearest_size_is_offered():
    with pytest.raises(LanguageError, match="did you mean BLOCK_M"):
        run_text("pid = pid % BLOCKM", Grid((4,)), sizes={"BLOCK_M": 2})


def test_sizes_fit_32_bits():
    with pytest.raises(SizeError, match="M = "):
        run_text("pid = pid % M", Grid((4,)), sizes={"M": 2**31})
    with pytest.raises(SizeError, match="num_xcds"):
        run_text("pid = pid", Grid((4,)), 0)
