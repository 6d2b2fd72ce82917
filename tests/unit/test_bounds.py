"""Does no replay beat the bound, and is the argument behind it right on grids small enough to try everything?"""

import importlib
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import cases, gemm_trace, small_gpu
from xcd_model import TraceBuilder, assigned_misses, gpu, hit_rate_bound, prepare, replay_lockstep

bounds = importlib.import_module("xcd_model.analysis.bounds")


def check(trace, order, machine, occupancy):
    plan = prepare(trace, machine)
    got = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
    bound = hit_rate_bound(plan)
    per_xcd = got.per_xcd[:, 3] + got.per_xcd[:, 4]
    compulsory = assigned_misses(trace, order, machine)
    assert compulsory.tolist() == naive.distinct_pieces(trace, order, machine)
    assert np.all(compulsory <= per_xcd)
    assert bound.l2_misses <= compulsory.sum()
    assert got.l2_hit_rate <= bound.l2_hit_rate
    return bound, got


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_no_replay_beats_the_bound(case):
    check(*case)


@settings(max_examples=100, deadline=None)
@given(
    tiles=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3)),
    cut=st.tuples(*[st.integers(0, 20)] * 3),
    block=st.sampled_from([(16, 16, 16), (32, 64, 64), (64, 64, 32)]),
    xcds=st.integers(1, 9),
    seed=st.integers(0, 999),
)
def test_no_gemm_beats_the_bound(tiles, cut, block, xcds, seed):
    sizes = [max(1, t * b - c) for t, b, c in zip(tiles, block, cut, strict=True)]
    trace = gemm_trace(*sizes, *block)
    machine = small_gpu(xcds=xcds, cus=2, l2=(16, 8), mall=None)
    order = np.random.default_rng(seed).permutation(trace.n_workgroups)
    check(trace, order, machine, 1)


# tiles m x n, of 64 x 64 with k = 64: A panels of 64 lines, B panels of 64, C tiles of 64
@pytest.mark.parametrize(("tiles_m", "tiles_n"), [(1, 1), (1, 5), (5, 1), (2, 2), (2, 3), (3, 3), (3, 4), (2, 6)])
@pytest.mark.parametrize("block_m", [64, 128])
def test_fewest_lines_is_below_the_best_of_all_subsets(tiles_m, tiles_n, block_m):
    trace = gemm_trace(tiles_m * block_m, tiles_n * 64, 64, block_m, 64, 64)
    panels = [p for t in range(3) if (p := bounds._panels(trace, t)) is not None]
    assert len(panels) == 3
    touched = [naive.pieces_of_workgroup(trace, w, trace.line_bytes) for w in range(trace.n_workgroups)]
    for n in range(1, trace.n_workgroups + 1):
        best = min(len(set().union(*subset)) for subset in combinations(touched, n))
        # Also the best: in grids this small the two-panel argument is tight.
        assert bounds._fewest_lines(panels, n) == best


def test_a_whole_dealing_of_a_tiny_grid():
    """All 720 orders of 2 x 3 tiles on two XCDs: none has fewer compulsory misses, and one has as many."""
    trace, machine = gemm_trace(128, 192, 64, 64, 64, 64), small_gpu(xcds=2, l2=(64, 16), mall=None)
    bound = hit_rate_bound(prepare(trace, machine))
    misses = {int(assigned_misses(trace, np.array(order), machine).sum()) for order in permutations(range(6))}
    assert min(misses) == bound.l2_misses == 2 * (64 + 3 * 64 + 3 * 64)


def panel_trace(draw, n):
    """Each of three tensors cuts the workgroups into classes of its own, drawn at random, of different weights."""
    build = TraceBuilder(n_workgroups=n, line_bytes=128)
    for name in "abc":
        classes = draw.integers(0, draw.integers(1, n + 1), n)
        lines = draw.integers(1, 4, n)[classes]  # a class's number of lines, at least one
        x = build.array(name, rows=n, cols=64 * 4, item_bytes=2)
        build.step(build.read(x, row=classes, col=0, rows=1, cols=64 * lines))
    return build.trace()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8))
def test_three_random_partitions_against_all_subsets(seed, n):
    trace = panel_trace(np.random.default_rng(seed), n)
    panels = [p for t in range(3) if (p := bounds._panels(trace, t)) is not None]
    assert len(panels) == 3
    touched = [naive.pieces_of_workgroup(trace, w, trace.line_bytes) for w in range(n)]
    for size in range(1, n + 1):
        best = min(len(set().union(*subset)) for subset in combinations(touched, size))
        assert bounds._fewest_lines(panels, size) <= best


def test_a_tensor_that_overlaps_adds_its_lines_to_what_each_xcd_needs():
    """All workgroups read w; neighbours share a line of x, which is no panel: two XCDs need w twice and x once."""
    build = TraceBuilder(n_workgroups=8, line_bytes=128)
    w, x = build.array("w", rows=1, cols=640, item_bytes=2), build.array("x", rows=1, cols=64 * 9, item_bytes=2)
    build.step(build.read(w, row=0, col=0, rows=1, cols=640))
    build.step(build.read(x, row=0, col=64 * np.arange(8), rows=1, cols=128))
    bound, _ = check(build.trace(), np.arange(8), small_gpu(xcds=2), 1)
    assert bound.l2_misses == 2 * 10 + 9


def test_nothing_shared_makes_the_bound_exact():
    """A copy: every order misses each line once, so bound and replay agree."""
    build = TraceBuilder(n_workgroups=12, line_bytes=128)
    x, y = (build.array(name, rows=12, cols=256, item_bytes=2) for name in "xy")
    rows = {"row": np.arange(12), "col": 0, "rows": 1, "cols": 256}
    build.step(build.read(x, **rows), build.write(y, **rows))
    bound, got = check(build.trace(), np.arange(12), small_gpu(), 1)
    assert bound.l2_hit_rate == got.l2_hit_rate == pytest.approx(1 / 3)


def test_gemm_on_mi300x_leaves_room_below_one():
    """8 x 8 tiles: 8 of them need 2 + 4 panels of 256 x 512 fp16 (2048 lines) and 8 tiles of C at least."""
    trace = gemm_trace(2048, 2048, 512, 256, 256, 64)
    bound, _ = check(trace, np.arange(64), gpu("mi300x"), 1)
    assert bound.l2_misses == 8 * (6 * 2048 + 8 * 1024)
