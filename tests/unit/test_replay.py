"""Is the lockstep replay the naive one, in every column, on every XCD and in every turn?"""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import built_traces, cases, claimed, gemm_trace, small_gpu
from xcd_model import Tensor, Trace, gpu, prepare, replay_lockstep, xcd_of
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
