"""Does the replay by symmetry give every count of the plain replay, and step aside where it is not exact?"""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machines import cases, gemm_trace, shared_traces, small_gpu, tiled_traces
from xcd_model import TraceBuilder, gpu, prepare, replay_lockstep
from xcd_model.cache.packed import BY_LINE, BY_TILE
from xcd_model.trace.trace import Tensor, Trace

symmetry = importlib.import_module("xcd_model.fast.symmetry")


def both(trace, order, machine, occupancy=1):
    plans = [prepare(trace, machine, symmetry=s) for s in (False, True)]
    return plans[1].simulated_fraction, [replay_lockstep(p, order, workgroups_per_cu=occupancy) for p in plans]


def orders(n):
    draw = np.random.default_rng(n)
    return [np.arange(n), np.arange(n)[::-1].copy(), draw.permutation(n)]


@pytest.mark.parametrize("size", [2048, 2000])
def test_gemm_on_a_whole_mi300x(size):
    trace = gemm_trace(size, size, size, 256, 256, 64)
    for order in orders(trace.n_workgroups):
        fraction, (plain, quick) = both(trace, order, gpu("mi300x"))
        np.testing.assert_array_equal(quick.timeline, plain.timeline)
        if size == 2048:
            assert fraction <= 1 / 8


@pytest.mark.parametrize("traces", [tiled_traces, shared_traces])
@settings(max_examples=300, deadline=None)
@given(data=st.data(), worthwhile=st.sampled_from([0.5, 1.0]))
def test_any_tiles_on_any_machine(traces, data, worthwhile):
    trace, order, machine, occupancy = data.draw(cases(traces=traces))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry, "WORTHWHILE", worthwhile)  # 1: take classes even where they save nothing
        _, (plain, quick) = both(trace, order, machine, occupancy)
    np.testing.assert_array_equal(quick.timeline, plain.timeline)


@pytest.mark.parametrize(("traces", "modes"), [(tiled_traces, {BY_TILE}), (shared_traces, {BY_TILE, BY_LINE})])
def test_the_random_tiles_do_exercise_symmetry(traces, modes):
    """Guards the test above: a strategy that always fell back would prove nothing."""
    machine = small_gpu(l1=(4, 4), l2=(16, 2), mall=(32, 2))
    seen = set()

    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(trace=traces())
    def collect(trace):
        plan = prepare(trace, machine)
        seen.add((plan.machine.l1_mode, plan.simulated_fraction))

    collect()
    assert {mode for mode, _ in seen} == modes
    assert min(fraction for _, fraction in seen) <= 0.25
    assert max(fraction for _, fraction in seen) == 1


def rows(n, cols, **step):
    """Workgroup w reads row w of x, in line-aligned rows of ``cols`` fp16."""
    build = TraceBuilder(n_workgroups=n, line_bytes=128)
    x = build.array("x", rows=n, cols=cols, item_bytes=2)
    build.step(build.read(x, row=np.arange(n), col=0, rows=1, cols=cols))
    return build, x


def test_tiles_that_share_some_lines_need_every_line_in_the_l1():
    build, x = rows(4, 1024)
    build.step(build.read(x, row=0, col=64, rows=1, cols=1024))  # one line in: 15 lines shared with row 0
    with_l1, without = small_gpu(l2=(16, 2), l1=(4, 4), mall=None), small_gpu(l2=(16, 2), mall=None)
    assert prepare(build.trace(), with_l1).simulated_fraction == 1.0
    assert prepare(build.trace(), without).simulated_fraction == 2 / 16  # line 0 of each row, and the other fifteen


def test_lines_read_in_other_sectors_or_written_are_the_same_lines():
    """Two workgroups read half of each line of a row, then write it: still one kind of set."""
    build, x = rows(4, 1024)
    build.step(build.write(x, row=np.arange(4), col=0, rows=1, cols=1024))
    machine = small_gpu(l2=(16, 2), l1=(4, 4), mall=None)
    plan = prepare(build.trace(), machine)
    assert (plan.machine.l1_mode, plan.simulated_fraction) == (BY_TILE, 4 / 16)  # an L2 set feeds one of four L1 sets
    fraction, (plain, quick) = both(build.trace(), np.arange(4), machine)
    assert fraction == 4 / 16
    np.testing.assert_array_equal(quick.timeline, plain.timeline)


def test_sets_whose_lines_come_back_in_other_tiles_are_told_apart():
    """Lines 0 and 8 of set 0 are read in turn, those of set 1 are not: alike in each tile, not as lines."""
    lines = [[0, 1], [8, 9], [0, 9], [8, 1]]
    trace = Trace(
        line_bytes=128,
        tensors=(Tensor("t", 0, 16, 2048),),
        start=np.array([0, 4]),
        base=np.zeros(4, np.int64),
        template=np.arange(4, dtype=np.int32),
        rel_start=np.arange(5) * 2,
        rel=np.array(lines, np.int32).reshape(-1),
        sectors=np.full(8, 15, np.uint8),
        is_write=np.zeros(4, bool),
        tensor=np.zeros(4, np.int32),
    )
    fraction, (plain, quick) = both(trace, np.arange(1), small_gpu(l2=(8, 1), mall=None))
    assert fraction == 3 / 8  # those two, and the empty ones
    np.testing.assert_array_equal(quick.timeline, plain.timeline)


def test_sets_that_differ_only_in_dirty_pieces_are_told_apart():
    """Half of the last line is written: its set writes back one piece, the others two."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=2, cols=512, item_bytes=2)
    build.step(build.write(x, row=np.arange(2), col=0, rows=1, cols=480))
    trace, machine = build.trace(), small_gpu(l2=(8, 2), mall=None)
    fraction, (plain, quick) = both(trace, np.arange(2), machine)
    assert fraction == 2 / 8
    np.testing.assert_array_equal(quick.timeline, plain.timeline)
    assert plain.hbm_write_bytes == 2 * 960
