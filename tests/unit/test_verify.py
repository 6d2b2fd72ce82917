"""Is the verdict right, and does a counter-example show what it says?"""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Grid, Swizzle, vm
from swizzle_sim.language.verdict import PROVED, REFUTED, TESTED, THIS_GRID_ONLY
from xcd_model.errors import LanguageError, NotBijective, SizeError

verify_module = importlib.import_module("swizzle_sim.language.swizzle")
LINE = Grid((1024,))
CHUNKED = "pid = (pid % num_xcds) * (num_pids // num_xcds) + pid // num_xcds"
# Chunks of unequal length, so that any number of workgroups will do.
BALANCED = """
long = (num_pids + num_xcds - 1) // num_xcds
n_long = num_pids % num_xcds
n_long = num_xcds if n_long == 0 else n_long
xcd, local = pid % num_xcds, pid // num_xcds
if xcd < n_long:
    pid = xcd * long + local
else:
    pid = n_long * long + (xcd - n_long) * (long - 1) + local
"""
GROUPED = """
group = GROUP * num_pid_n
first = (pid // group) * GROUP
rows = min(num_pid_m - first, GROUP)
pid_m = first + (pid % group) % rows
pid_n = (pid % group) // rows
"""


def check(text, grid, num_xcds=8, sizes=None, lattice=None):
    return Swizzle.parse(text).verify(grid, num_xcds, sizes, lattice)


@pytest.mark.parametrize(
    ("text", "grid", "domain"),
    [
        ("pid = pid", LINE, "every grid tried"),
        ("pid = num_pids - 1 - pid", LINE, "every grid tried"),
        (BALANCED, LINE, "every grid tried"),
        (BALANCED, Grid((5,)), "every grid tried"),
        (CHUNKED, LINE, "num_pids % num_xcds == 0"),
        (CHUNKED.replace("num_xcds", "8"), LINE, "num_pids % 8 == 0"),
        ("pid = pid ^ 1", LINE, "num_pids % 2 == 0"),
        ("pid = min(pid, 2147483647 // num_pids)", LINE, "every grid tried"),
        ("pid_m, pid_n = pid_n, pid_m", Grid((16, 16)), "num_pid_m == num_pid_n"),
        ("pid_x, pid_y = pid_y, pid_x", Grid((16, 16)), "num_pid_x == num_pid_y"),
        ("pid_m = pid_m ^ (pid_n & (num_pid_m - 1))", Grid((16, 16)), "num_pid_m & (num_pid_m - 1) == 0"),
        ("x = num_pid_x - 1 - x", Grid((4, 3, 2)), "every grid tried"),
        (GROUPED.replace("GROUP", "4"), Grid((35,), (7, 5)), "every grid tried"),
    ],
)
def test_domains_of_bijections(text, grid, domain):
    verdict = check(text, grid)
    assert verdict.bijective
    assert verdict.counterexample is None
    assert verdict.domain == domain
    assert verdict.distinct_tiles == verdict.n_workgroups == grid.num_pids
    assert (
        (verdict.passed == verdict.tested) == (domain == "every grid tried") == (verdict.lattice_counterexample is None)
    )


def test_a_verdict_is_proved_tested_or_refuted():
    """Where a candidate is judged at one grid alone, having run every workgroup proves it."""
    assert (check("pid = pid", LINE).status, check("pid = pid % 64", LINE).status) == (TESTED, REFUTED)
    odd = check("pid = pid if num_pids == 1024 else 0", LINE)
    assert (odd.domain, odd.status) == (THIS_GRID_ONLY, PROVED)


@pytest.mark.parametrize(
    ("text", "grid", "domain"),
    [
        (CHUNKED, 1001, "num_pids % num_xcds == 0"),  # a condition that the grid in hand breaks
        ("pid = num_pids", 1024, "nowhere"),
        ("for i in range(2147483647): pid = pid ^ 0", 1024, "nowhere"),  # too slow here, so tried nowhere else
    ],
)
def test_where_a_text_that_fails_here_holds_is_said(text, grid, domain):
    verdict = check(text, Grid((grid,)))
    assert (verdict.bijective, verdict.domain) == (False, domain)
    assert verdict.complete == ("for" not in text) and (verdict.passed == 0) == (domain == "nowhere")


@pytest.mark.parametrize("num_xcds", [1, 2, 3, 8, 304])
def test_the_count_in_hand_is_tried_too(num_xcds):
    assert check(BALANCED, Grid((912,)), num_xcds).domain == "every grid tried"


def test_a_collision_names_both_and_what_is_missing():
    verdict = check("pid = pid % 64", LINE)
    example = verdict.counterexample
    assert (example.code, example.pids, example.tile, example.missing) == ("collision", (64, 0), 0, 64)
    assert example.distinct_tiles == verdict.distinct_tiles == 64
    for fact in ("pid 64 and pid 0", "tile 0", "64..1023", "grid 1024", "8 XCDs", "64 of 1024"):
        assert fact in example.message


@pytest.mark.parametrize(
    ("text", "grid", "code", "pids"),
    [
        ("pid = pid + 1", LINE, "out-of-range", (1023,)),
        ("pid = pid - 1", LINE, "out-of-range", (0,)),
        ("pid_m, pid_n = pid // num_pid_n, pid % num_pid_n + 1", Grid((15,), (3, 5)), "out-of-range", (4,)),
        ("pid = pid * 4194304", LINE, "overflow", (512,)),
        ("for i in range(2147483647): pid = pid ^ 0", LINE, "step-limit", (0,)),
    ],
)
def test_codes_of_counterexamples(text, grid, code, pids):
    verdict = check(text, grid)
    assert (verdict.counterexample.code, verdict.counterexample.pids) == (code, pids)
    assert not verdict.bijective
    with pytest.raises(NotBijective) as caught:
        Swizzle.parse(text).permutation(grid, 8)
    assert str(caught.value) == verdict.counterexample.message
    if code == "out-of-range":
        assert f"outside 0..{(grid.tiles or grid.launch)[-1] - 1}; " in verdict.counterexample.message


def test_kernel_sizes_bring_their_own_lattice():
    launches = [(Grid((m * n,), (m, n)), {"GROUP": g}) for m, n in ((4, 4), (5, 7), (1, 9)) for g in (1, 4, 6)]
    grid = Grid((35,), (7, 5))
    verdict = check(GROUPED, grid, sizes={"GROUP": 4}, lattice=launches)
    assert (verdict.domain, verdict.tested) == ("every grid tried", 1 + 6 * len(launches))
    alone = check(GROUPED, grid, sizes={"GROUP": 4})
    assert (alone.domain, alone.tested) == ("this grid only", 6)  # other XCD counts are no other grids
    with pytest.raises(LanguageError, match="GROUP"):
        check(GROUPED, grid)


def test_a_slow_candidate_is_tried_on_fewer_grids_and_says_so():
    slow = "for i in range(5000): pid = pid ^ num_xcds ^ num_xcds"
    verdict, quick = check(slow, Grid((64,))), check("pid = pid", Grid((64,)))
    assert verdict.bijective
    assert verdict.tested < quick.tested
    assert (verdict.complete, verdict.domain) == (False, "this grid only")
    assert (quick.complete, quick.as_dict()["complete"], verdict.as_dict()["complete"]) == (True, True, False)


@pytest.mark.parametrize(
    ("text", "grid", "domain"),
    [
        ("pid = pid", 64, "this grid only"),
        (CHUNKED, 64, "this grid only"),
        (CHUNKED, 65, "no simple condition"),
        ("pid = num_pids + num_xcds", 64, "nowhere"),
    ],
)
def test_a_lattice_that_was_cut_names_no_condition(text, grid, domain, monkeypatch):
    whole = check(text, Grid((grid,)))
    for steps in range(1, 20_000, 487):
        monkeypatch.setattr(verify_module, "LATTICE_STEPS", steps)
        verdict = check(text, Grid((grid,)))
        if verdict.complete:
            assert verdict == whole
            continue
        assert verdict.tested < whole.tested
        assert verdict.tested % 6 in (0, 1)  # no grid with some of its six XCD counts only
        assert verdict.domain == (domain if verdict.passed or grid == 64 else "nowhere")


def test_a_grid_too_large_to_decide_gets_no_verdict(monkeypatch):
    monkeypatch.setattr("swizzle_sim.language.verdict.MAX_STEPS", 1_000_000)
    slow = "for i in range(3000): pid = pid ^ 0"
    for judge in (check, lambda *given: Swizzle.parse(slow).permutation(*given[1:], 8)):
        with pytest.raises(LanguageError, match="too large to decide") as caught:
            judge(slow, Grid((2048,)))
        assert (caught.value.code, caught.value.line) == ("limit", 1)


KEPT = ["identity", "pid_m = pid_m", "pid_n = pid_n\npid_m = pid_m", "a = pid_m\npid_m = pid_n\npid_m = a"]
MOVED = ["pid_m = pid_n\npid_n = pid_m", "pid_m = 0", "pid_m = pid_m + 0", "a = pid_m\nif a:\n    pid_m = a"]


@pytest.mark.parametrize("text", [*KEPT, *MOVED])
@pytest.mark.parametrize("grid", [Grid((6, 6)), Grid((300, 7))], ids=str)
def test_what_hands_its_coordinates_on_is_run_without_the_machine(text, grid, monkeypatch):
    program = Swizzle.parse(text).program
    assert program.keeps_launch_order == (text in KEPT)
    budgets = [vm.Budget(10**6), vm.Budget(10**6)]
    quick, why = vm.permutation_of(program, grid, 4, budget=budgets[0])
    monkeypatch.setattr(type(program), "keeps_launch_order", False)
    plain, why_plain = vm.permutation_of(program, grid, 4, budget=budgets[1])
    assert (quick.ids.tolist(), quick.steps, why) == (plain.ids.tolist(), plain.steps, why_plain)
    assert budgets[0] == budgets[1]


@pytest.mark.parametrize(
    ("ids", "lost", "code", "pids", "tile", "missing", "distinct"),
    [
        ([2, 1, 0, 2, 0], None, "collision", (3, 0), 2, 3, 3),
        ([0, 1, 1, 0], None, "collision", (2, 1), 1, 2, 2),
        ([2, -1, 0], vm.OutOfRange(1, "pid", 3, 3), "out-of-range", (1,), None, 1, 2),
        ([-1, 0, 0], vm.OutOfRange(0, "pid", -1, 3), "out-of-range", (0,), None, 1, 1),
    ],
)
def test_a_counter_example_names_the_first_of_each_tile_and_the_first_that_clashes(
    ids, lost, code, pids, tile, missing, distinct
):
    found = vm.counterexample_of(np.array(ids), lost, Grid((len(ids),)), 8)
    assert (found.code, found.pids, found.tile, found.missing, found.distinct_tiles) == (
        *(code, pids, tile, missing, distinct),
    )
    assert vm.counterexample_of(np.array([1, 2, 0]), None, Grid((3,)), 8) is None


@settings(max_examples=80, deadline=None)
@given(data=st.data(), num_pids=st.integers(2, 40))
def test_any_table_gets_the_verdict_that_counting_gives(data, num_pids):
    table = data.draw(st.lists(st.integers(-1, num_pids), min_size=num_pids, max_size=num_pids))
    lines = [f"if pid == {pid}: out = {tile}" for pid, tile in enumerate(table)]
    text = "\n".join(["out = 0", *lines, "pid = out"])
    run_verdict = check(text, Grid((num_pids,)))
    inside = {tile for tile in table if 0 <= tile < num_pids}
    assert run_verdict.bijective == (len(inside) == num_pids)
    assert run_verdict.distinct_tiles == len(inside)
    example = run_verdict.counterexample
    if example:
        assert example.missing == min(set(range(num_pids)) - inside)
    if example and example.code == "collision":
        assert {table[pid] for pid in example.pids} == {example.tile}
    elif example:
        assert not 0 <= table[example.pids[0]] < num_pids


def test_a_permutation_that_was_verified_is_not_computed_again(monkeypatch):
    swizzle, grid, runs, true = Swizzle.parse("pid = pid ^ 1"), Grid((6, 6)), [], vm.run
    monkeypatch.setattr(vm, "run", lambda *given: runs.append(given[1:4]) or true(*given))
    assert swizzle.verify(grid, 4, lattice=[]).bijective
    first = swizzle.permutation(grid, 4)
    assert len(runs) == 1
    first[:] = 0  # its owner's, and nobody else's
    assert swizzle.permutation(grid, 4).tolist() == [pid ^ 1 for pid in range(36)]
    for launch in ((grid, 5), (grid, 5, {"M": 1}), (Grid((36,)), 5)):
        swizzle.permutation(*launch)
    assert len(runs) == 4
    Swizzle.parse("pid = pid ^ 1").permutation(Grid((36,)), 5)  # another with the same text
    assert len(runs) == 5


def test_a_permutation_that_was_verified_counts_its_steps_again():
    swizzle, grid = Swizzle.parse("pid = pid_x ^ 1"), Grid((36,))
    for left in (36, 40):  # the second is not run
        budget = vm.Budget(left)
        swizzle._run(grid, 4, None, budget)
        assert budget.left == left - 36
    with pytest.raises(LanguageError, match="too large to decide"):
        swizzle._run(grid, 4, None, vm.Budget(35))


def test_sizes_that_are_not_read_may_be_anything():
    swizzle = Swizzle.parse("pid = pid ^ 1")
    assert swizzle.verify(Grid((36,)), 4, {"M": [1], 2: "N"}).bijective
    swizzle = Swizzle.parse("pid = pid + M - M")
    assert swizzle.permutation(Grid((36,)), 4, {"M": 1}).size == 36
    with pytest.raises(SizeError):  # and not what was computed for M = 1
        swizzle.permutation(Grid((36,)), 4, {"M": True})
