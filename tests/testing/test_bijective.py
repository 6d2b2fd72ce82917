"""Does one line in a test prove a swizzle, or show the smallest launch on which it is none?"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swizzle_sim.testing
from swizzle_sim import verify
from swizzle_sim.language import Grid, Swizzle
from swizzle_sim.testing import BijectionError, assert_bijective
from xcd_model import gpu
from xcd_model.errors import LanguageError, SizeError, SwizzleSimError, UnknownName

NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds"
PATIENT = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def naive(pid, num_pids, num_xcds):
    return pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds


def exact(pid, num_pids, num_xcds):
    xcd = pid % num_xcds
    return xcd * (num_pids // num_xcds) + min(xcd, num_pids % num_xcds) + pid // num_xcds


def exact_on_arrays(pid, num_pids, num_xcds):
    xcd = pid % num_xcds
    return xcd * (num_pids // num_xcds) + np.minimum(xcd, num_pids % num_xcds) + pid // num_xcds


def grouped(pid, num_pid_m, num_pid_n, rows=4):
    first = pid // (rows * num_pid_n) * rows
    height = min(num_pid_m - first, rows)
    return first + pid % (rows * num_pid_n) % height, pid % (rows * num_pid_n) // height


def failure(candidate, *args, **kwargs):
    with pytest.raises(AssertionError) as caught:
        assert_bijective(candidate, *args, **kwargs)
    assert isinstance(caught.value, BijectionError)
    return caught.value.outcome, str(caught.value)


@pytest.mark.parametrize(
    "candidate", [naive, NAIVE, "contiguous_naive", Swizzle.parse(NAIVE)], ids=["function", "text", "family", "swizzle"]
)
def test_the_naive_remap_fails_at_the_smallest_grid(candidate):
    outcome, message = failure(candidate)
    # two workgroups on eight XCDs: each XCD's share is 0, so both compute tile 0; one workgroup is right everywhere
    assert (outcome.point.grid, outcome.point.num_xcds) == (Grid((2,)), 8)
    assert outcome.counterexample.pids == (1, 0)
    for words in ("pid 1 and pid 0 both compute tile 0", "tile 1 is computed by nobody", "grid 2, 8 XCDs"):
        assert words in message
    assert "num_pids % num_xcds == 0" in message
    assert_bijective(candidate, where="num_pids % num_xcds == 0")
    assert_bijective(candidate, where=lambda grid, num_xcds: grid.num_pids % num_xcds == 0)
    assert_bijective(candidate, grids=[64, (8, 8), "96", Grid((24,))], xcds=8)
    assert failure(candidate, grids=[4096, 1003, 1001], xcds=[8])[0].point.grid == Grid((1001,))


@pytest.mark.parametrize(
    "candidate",
    [exact, exact_on_arrays, grouped, "contiguous", "contiguous+group_m(size=3)"],
    ids=["function", "of arrays", "of a grid", "family", "families"],
)
def test_exact_remaps_pass(candidate):
    assert_bijective(candidate)


@PATIENT
@given(st.lists(st.integers(-2, 12), min_size=1, max_size=12))
def test_the_counter_example_is_one(answers):
    grid, seen = Grid((len(answers),)), set(range(len(answers)))
    try:
        assert_bijective(lambda pid: answers[pid], grids=[grid])
    except BijectionError as error:
        found = error.outcome.counterexample
        assert found.distinct_tiles == len(seen & set(answers)) < len(answers)
        assert found.missing == min(seen - set(answers))
        if found.code == "collision":
            assert answers[found.pids[0]] == answers[found.pids[1]] == found.tile
            assert found.pids[0] != found.pids[1]
        else:
            assert answers[found.pids[0]] not in seen
    else:
        assert set(answers) == seen


def test_functions_name_what_they_take():
    assert_bijective(lambda pid_x, pid_y, num_pid_y: (pid_x, num_pid_y - 1 - pid_y))
    assert_bijective(lambda pid, grid: (pid // grid[1], pid % grid[1]), grids=[(3, 5), (4, 4)])
    assert_bijective(lambda x, y, z: (x, y, z))
    assert_bijective(lambda p, /, num_pids: num_pids - 1 - p, p="pid")
    assert_bijective(lambda pid, n: n - 1 - pid, n="num_pids")
    assert_bijective(grouped, rows=[1, 2, 5])
    outcome, message = failure(lambda pid_x, pid_y: (pid_y, pid_x))
    assert outcome.point.grid == Grid((1, 2))
    assert "num_pid_x == num_pid_y" in message
    assert "pid_x = 1, outside 0..0" in message


def test_a_function_that_raises_is_shown_with_the_workgroup():
    outcome, message = failure(lambda pid, num_pids: pid % (num_pids - 3))
    assert outcome.counterexample.code == "collision"
    outcome, message = failure(lambda pid, num_pids: pid % (num_pids - 3), grids=[3])
    assert outcome.counterexample.code == "raised"
    assert "pid 0" in message
    assert "ZeroDivisionError" in message


def test_arrays_and_single_calls_agree():
    calls = []

    def counted(pid, num_pids):
        calls.append(pid)
        return num_pids - 1 - pid

    assert_bijective(counted, grids=[5000])
    assert len(calls) < 30  # one on an array, a few to compare
    lying = lambda pid, num_pids: pid if isinstance(pid, int) else pid[::-1]  # noqa: E731
    assert_bijective(lying, grids=[5000])
    wrong = lambda pid: pid // 2 if isinstance(pid, int) else pid  # noqa: E731
    assert failure(wrong, grids=[5000])[0].counterexample.code == "collision"


def test_texts_are_held_to_32_bits_and_functions_to_pythons_integers():
    wide = "v = pid * 2147483647\npid = v // 2147483647"
    assert failure(wide, grids=[4])[0].counterexample.code == "overflow"
    assert_bijective(lambda pid: pid * 2147483647 // 2147483647, grids=[4])
    below = "v = 0 - pid\npid = v % num_pids"
    assert failure(below, grids=[5])[0].counterexample.code == "signed-division"
    assert_bijective(lambda pid, num_pids: -pid % num_pids, grids=[5])


def test_a_list_of_grids_is_tried_smallest_first():
    for candidate in (naive, NAIVE):
        outcome, message = failure(candidate, grids=range(1, 40), xcds=range(1, 17))
        assert (outcome.point.grid, outcome.point.num_xcds) == (Grid((2,)), 3)
        assert "both compute tile 0" in message
    assert_bijective(exact, grids=range(1, 40), xcds=range(1, 17))
    assert failure("pid = pid // 65 * 65", grids=range(1, 40))[0].point.grid.num_pids == 2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: assert_bijective("nosuch"), UnknownName, "family"),
        (lambda: assert_bijective("nosuch.txt"), LanguageError, "no such file"),
        (lambda: assert_bijective("pid = open('f')"), LanguageError, "open"),
        (lambda: assert_bijective("pid = pid + q - q"), SwizzleSimError, "q has no value"),
        (lambda: assert_bijective(NAIVE, K=3), UnknownName, "K"),
        (lambda: assert_bijective(naive, K=3), UnknownName, "K"),
        (lambda: assert_bijective(lambda pid, q: pid), SwizzleSimError, "q has no value"),
        (lambda: assert_bijective(lambda pid: pid / 1), LanguageError, "an answer is an integer"),
        (lambda: assert_bijective(lambda pid: (pid, 0, 0, 0)), LanguageError, "4 coordinates"),
        (lambda: assert_bijective(naive, grids=[0]), SizeError, "at least 1"),
        (lambda: assert_bijective(naive, grids=[1.5]), SizeError, "1.5"),
        (lambda: assert_bijective(naive, xcds=0), SizeError, "at least one"),
        (lambda: assert_bijective(naive, where="num_pids < 0"), SwizzleSimError, "leaves none"),
        (lambda: assert_bijective(naive, where="num_pidz == 1"), LanguageError, "num_pidz"),
        (lambda: assert_bijective("pid = pid + M - M", launch="cdiv(M, 0)"), SizeError, "division by zero"),
    ],
    ids=range(15),
)
def test_misuse_is_refused_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_integers_of_numpy_and_gpus_stand_for_their_counts():
    swizzle = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds"
    for xcds in (np.int64(8), [np.int64(8)], [gpu("mi300x")]):
        assert_bijective(swizzle, xcds=xcds, grids=np.array([64, 128]))
    assert Grid((np.int64(8),)) == Grid((8,)) and type(Grid((np.int64(8),)).launch[0]) is int
    assert_bijective("pid = pid_m * num_pid_n + pid_n", grids=np.array([[8, 16], [4, 4]]))
    blocks = Swizzle.parse("pid = pid // C * C + (C - 1 - pid % C)")
    assert verify(blocks, Grid((64,)), np.int64(8), {"C": np.int64(8)}).bijective
    for wrong in (8.0, True, "8", gpu("mi300x")):
        with pytest.raises(SizeError, match="a whole number of XCDs, at least one"):
            verify(Swizzle.parse(swizzle), Grid((64,)), wrong)


def test_the_public_names_are_these():
    assert swizzle_sim.testing.__all__ == sorted(swizzle_sim.testing.__all__)
    for name in swizzle_sim.testing.__all__:
        assert getattr(swizzle_sim.testing, name).__doc__, name
