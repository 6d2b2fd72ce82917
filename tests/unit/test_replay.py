"""Is the lockstep replay the naive one, in every column, on every XCD and in every turn?"""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import built_traces, cases, claimed, gemm_trace, shared_traces, small_gpu, tiled_traces
from xcd_model import Tensor, Trace, TraceBuilder, gpu, prepare, replay_lockstep, xcd_of
from xcd_model.cache.packed import BY_LINE, BY_TILE
from xcd_model.errors import ReplayError, TraceError
from xcd_model.replay.traffic import COLUMNS, READ_MISSES, WRITE_MISSES

fills = importlib.import_module("xcd_model.replay.lockstep")
symmetry_module = importlib.import_module("xcd_model.fast.symmetry")
replay_module = importlib.import_module("xcd_model.replay.lockstep")  # the package has a function of that name


def test_oracle_has_the_same_columns():
    assert naive.COLUMNS == COLUMNS


@settings(max_examples=300, deadline=None)
@given(case=cases(), data=st.data())
def test_replay_is_the_naive_replay(case, data):
    trace, order, machine, occupancy = case
    stepping = st.builds(dict, programs=st.one_of(st.none(), st.integers(1, trace.n_workgroups)))
    launched = data.draw(st.one_of(stepping, claimed(trace.n_workgroups, machine.xcds)))
    caches = naive.Caches(machine)
    expected, by_tensor = naive.replay(trace, order, machine, occupancy, caches=caches, **launched)
    for symmetry in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(symmetry_module, "WORTHWHILE", 1.0)  # take classes even where they save nothing
            patch.setattr(fills, "QUEUE_LINES", data.draw(st.sampled_from([1, 64, 1 << 18])))  # windows of any length
            plan = prepare(trace, machine, symmetry=symmetry, **launched)
            got = replay_lockstep(plan, order, workgroups_per_cu=occupancy, threads=data.draw(st.integers(1, 2)))
        assert (got.turns, got.turns_per_bin) == (len(expected), 1)
        assert (got.remote_hits, got.flushed) == (caches.remote_hits, caches.flushed)
        np.testing.assert_array_equal(got.timeline, expected)
        np.testing.assert_array_equal(got.by_tensor, by_tensor)
        np.testing.assert_array_equal(got.cu_finish, naive.finish(trace, order, machine, occupancy, **launched))


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_traffic_is_consistent(case):
    trace, order, machine, occupancy = case
    got = replay_lockstep(prepare(trace, machine), order, workgroups_per_cu=occupancy)
    assert got.l2_hits + got.l2_misses == got.l2_requests
    assert 0 <= got.l2_hit_rate <= 1
    assert np.all(got.timeline >= 0)
    assert got.timeline[:, :, 0].sum() == trace.n_instructions
    rates = np.array(got.per_xcd_l2_hit_rate)
    requests = got.per_xcd[:, 1] + got.per_xcd[:, 2]
    assert np.isnan(rates).tolist() == (requests == 0).tolist()
    assert np.nansum(rates * requests) == pytest.approx(got.l2_hits)
    read = got.total(COLUMNS.index("read_misses")) - got.total(COLUMNS.index("mall_hits"))
    assert got.hbm_read_bytes == read * machine.l2.fetch_bytes
    assert got.hbm_write_bytes == got.total(COLUMNS.index("writebacks")) * machine.l2.write_request_bytes
    if machine.mall:
        assert got.total(COLUMNS.index("mall_requests")) == got.total(COLUMNS.index("read_misses"))
    else:
        assert np.isnan(got.mall_hit_rate)


@settings(max_examples=60, deadline=None)
@given(case=cases(), data=st.data())
def test_relabelling_xcds_moves_counts_and_keeps_totals(case, data):
    """With a grid that fills the XCDs evenly and no shared cache, an XCD's counts follow its workgroups."""
    trace, order, machine, occupancy = case
    xcds = max(d for d in range(1, machine.xcds + 1) if trace.n_workgroups % d == 0)
    offset = machine.dispatch_offset % xcds
    machine = dataclasses.replace(machine, xcds=xcds, dispatch="round_robin", dispatch_offset=offset, mall=None)
    rename = np.array(data.draw(st.permutations(range(xcds))))
    w = np.arange(trace.n_workgroups)
    plain = replay_lockstep(prepare(trace, machine), order, workgroups_per_cu=occupancy)
    renamed = replay_lockstep(
        prepare(trace, machine), order[w // xcds * xcds + rename[w % xcds]], workgroups_per_cu=occupancy
    )
    x = np.arange(xcds)
    source = (rename[(x - offset) % xcds] + offset) % xcds
    np.testing.assert_array_equal(renamed.per_xcd, plain.per_xcd[source])
    assert renamed.per_xcd.sum(axis=0).tolist() == plain.per_xcd.sum(axis=0).tolist()


@settings(max_examples=60, deadline=None)
@given(case=cases(), more=st.integers(1, 4))
def test_more_ways_never_lose_a_hit(case, more):
    trace, order, machine, occupancy = case
    machine = dataclasses.replace(machine, l2_partitions=None)  # a side that hits more lets the line's home grow old
    l2 = machine.l2
    wider = dataclasses.replace(l2, ways=l2.ways + more, size_bytes=l2.sets * (l2.ways + more) * l2.line_bytes)
    few, many = (
        replay_lockstep(prepare(trace, dataclasses.replace(machine, l2=c)), order, workgroups_per_cu=occupancy)
        for c in (l2, wider)
    )
    for column in (READ_MISSES, WRITE_MISSES):
        assert np.all(many.timeline[:, :, column] <= few.timeline[:, :, column])


@settings(max_examples=60, deadline=None)
@given(case=cases(), max_bins=st.sampled_from([2, 4, 8]))
def test_folding_the_timeline_keeps_totals_and_places(case, max_bins):
    trace, order, machine, occupancy = case
    plan = prepare(trace, machine)
    fine = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "MAX_BINS", max_bins)
        coarse = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
    assert coarse.turns == fine.turns
    assert len(coarse.timeline) <= max_bins
    n = coarse.turns_per_bin
    folded = np.add.reduceat(fine.timeline, np.arange(0, fine.turns, n), axis=0)
    np.testing.assert_array_equal(coarse.timeline, folded)


def test_tags_of_the_whole_memory_do_not_collide():
    """Lines at the top of a MI300X's memory: neighbours in a set that differ in high bits only."""
    machine = gpu("mi300x")
    top = machine.hbm.size_bytes // 128
    lines = [0, 2048, 2048 << 15, 2048 << 18, top - 2048, 0, 2048, 2048 << 15, 2048 << 18, top - 2048]
    one = np.zeros(1, np.int32)
    trace = Trace(
        line_bytes=128,
        tensors=(Tensor("all", 0, top, top * 128),),
        start=np.array([0, len(lines)]),
        base=np.array(lines),
        template=np.zeros(len(lines), np.int32),
        rel_start=np.array([0, 1]),
        rel=one,
        sectors=np.array([15], np.uint8),
        is_write=np.array([False]),
        tensor=one,
    )
    for symmetry in (False, True):
        assert (
            replay_lockstep(prepare(trace, machine, symmetry=symmetry), np.array([0]), workgroups_per_cu=1).l2_misses
            == 5
        )


TRACE = gemm_trace(64, 64, 64, 16, 16, 16)


def test_tags_that_overflow_are_refused():
    far = 1 << 31
    tensors = tuple(dataclasses.replace(t, base_line=t.base_line + far) for t in TRACE.tensors)
    moved = dataclasses.replace(TRACE, tensors=tensors, base=TRACE.base + far)
    with pytest.raises(TraceError, match="does not fit the tags of mi300x l2"):
        prepare(moved, small_gpu(l2=(1, 4), mall=None))


@settings(max_examples=30, deadline=None)
@given(trace=built_traces(), data=st.data())
def test_totals_do_not_depend_on_xcd_count_where_nothing_is_evicted(trace, data):
    """Requests follow the trace alone, and with room for all, misses are the distinct (XCD, line) pairs."""
    machine = small_gpu(xcds=data.draw(st.integers(1, 4)), l2=(16, 64), mall=None)
    order = np.array(data.draw(st.permutations(range(trace.n_workgroups))))
    got = replay_lockstep(prepare(trace, machine), order, workgroups_per_cu=1)
    assert (got.per_xcd[:, READ_MISSES] + got.per_xcd[:, WRITE_MISSES]).tolist() == naive.distinct_pieces(
        trace, order, machine
    )
    assert xcd_of(trace.n_workgroups, machine).max() < machine.xcds


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ({"line": 64, "read": 64}, r"l2\.line_bytes = 64.*built for 128"),
        ({"read": 128, "write": 16}, "request_bytes"),
        ({"read": 16, "write": 64}, "request_bytes"),
        ({"l2": {"write_back": False}}, "write_back"),
        ({"l2": {"write_allocate": False}}, "write_allocate"),
    ],
)
def test_what_the_model_cannot_hold_is_refused(machine, says):
    changed = machine.get("l2", {})
    one = small_gpu(**({} if changed else machine))
    with pytest.raises(ReplayError, match=says):
        prepare(TRACE, dataclasses.replace(one, l2=dataclasses.replace(one.l2, **changed)))
    with pytest.raises(ReplayError, match="request_bytes"):  # eight pieces a line
        prepare(gemm_trace(32, 32, 32, 16, 16, 16, line_bytes=256), small_gpu(line=256, read=128, write=32))
    with pytest.raises(ReplayError, match="workgroups_per_cu = 0"):
        replay_lockstep(prepare(TRACE, small_gpu()), np.arange(16), workgroups_per_cu=0)


# ---- Does the replay by symmetry give every count of the plain replay, and step aside where it is not exact?
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
