"""Are launches after the first what the naive caches say, in counts and time, and does a round come to rest?"""

import collections
import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive, naive_timed
from tests.machines import cases, shapes, small_gpu
from xcd_model import IssueModel, TraceBuilder, Traffic, prepare, replay_lockstep, replay_timed
from xcd_model.cache.packed import has_room, index_of
from xcd_model.errors import ReplayError
from xcd_model.replay.plan import cold_caches, replay_launches
from xcd_model.replay.traffic import (
    COLUMNS,
    L1_HITS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
)


@settings(max_examples=60, deadline=None)
@given(case=cases(), symmetry=st.booleans())
def test_every_launch_is_the_naive_one(case, symmetry):
    trace, order, machine, occupancy = case
    plan, oracle = prepare(trace, machine, symmetry=symmetry), naive.Caches(machine)
    caches = cold_caches(plan)
    for _ in range(3):
        expected, by_tensor = naive.replay(trace, order, machine, occupancy, caches=oracle)
        got = replay_lockstep(plan, order, workgroups_per_cu=occupancy, caches=caches)
        np.testing.assert_array_equal(got.timeline, expected)
        np.testing.assert_array_equal(got.by_tensor, by_tensor)


@settings(max_examples=40, deadline=None)
@given(case=cases(), in_flight=st.integers(1, 3))
def test_every_timed_launch_is_the_naive_one(case, in_flight):
    trace, order, machine, occupancy = case
    plan, oracle = prepare(trace, machine), naive.Caches(machine)
    caches = cold_caches(plan)
    for _ in range(3):
        expected = naive_timed.replay(
            trace, order, machine, occupancy, in_flight=in_flight, compute_fs=10**6, caches=oracle
        )
        got = replay_timed(plan, order, workgroups_per_cu=occupancy, issue=IssueModel(in_flight, 10**6), caches=caches)
        assert got.time_fs == expected.time_fs
        np.testing.assert_array_equal(got.timeline, expected.table(got.bin_fs))


def copy(n_rows, source, target):
    """Row w of one array to row w of the other, both in one address space whichever way."""
    build = TraceBuilder(n_workgroups=n_rows, line_bytes=128)
    arrays = [build.array(name, rows=n_rows, cols=512, item_bytes=2) for name in "xy"]
    at = {"row": np.arange(n_rows), "col": 0, "rows": 1, "cols": 512}
    build.step(build.read(arrays[source], **at), build.write(arrays[target], **at))
    return build.trace()


def test_a_ping_pong_finds_in_the_infinity_cache_what_it_read_before():
    """By hand: 8 rows of 8 lines. The Infinity Cache holds all that is read, from the second round on."""
    machine = small_gpu(l2=(8, 2), mall=(64, 4), kept=False)
    mall = dataclasses.replace(machine.mall, kept_between_launches=True)
    machine = dataclasses.replace(machine, mall=mall)
    plans = [prepare(copy(8, *way), machine, symmetry=False) for way in ((0, 1), (1, 0))]
    once = partial(_lockstep, np.arange(8))
    first = replay_launches(plans, once, 1)
    later = replay_launches(plans, once, 10)
    assert [t.mall_hit_rate for t in first] == [0, 0]
    assert [t.mall_hit_rate for t in later] == [1, 1]
    assert [(t.launch, t.steady) for t in later] == [(3, True)] * 2
    assert [t.total(READ_MISSES) for t in later] == [64, 64]


def _lockstep(order, plan, caches):
    return replay_lockstep(plan, order, workgroups_per_cu=1, caches=caches)


@pytest.mark.parametrize(
    ("column", "by", "says"),
    [
        (WRITE_MISSES, 0, (2, True)),
        (WRITE_MISSES, 1, (2, True)),  # a tenth of its own, a thousandth of the requests
        (WRITE_MISSES, 2, (25, False)),
        (L1_HITS, 1, (2, True)),
        (None, 1, (25, False)),  # the time, which is a share of nothing else
    ],
)
def test_counts_small_beside_the_requests_need_not_come_to_rest(column, by, says):
    plan = prepare(copy(4, 0, 1), small_gpu(l2=(16, 2), mall=None), symmetry=False)
    launched = itertools.count()

    def once(plan, caches):
        timeline, up = np.zeros((1, 1, len(COLUMNS)), np.int64), by * (next(launched) % 2)
        timeline[0, 0, [READ_REQUESTS, WRITE_REQUESTS, WRITE_MISSES, L1_HITS]] = (600, 400, 10, 10)
        if column is not None:
            timeline[0, 0, column] += up
        time_fs = 500 + (up if column is None else 0)
        return Traffic(timeline, turns_per_bin=0, turns=0, fetch_bytes=128, write_request_bytes=64, time_fs=time_fs)

    (found,) = replay_launches([plan], once, 25)
    assert (found.launch, found.steady) == says


def test_rounds_and_caches_that_make_no_sense_are_refused():
    there, back = (
        prepare(copy(2, *way), small_gpu(l2=(8, 2), mall=(8, 2)), symmetry=False) for way in ((0, 1), (1, 0))
    )
    with pytest.raises(ReplayError, match="all plans that are to share them"):  # of bits, to a launch that reads more
        replay_lockstep(back, np.arange(2), workgroups_per_cu=1, caches=cold_caches(there))
    machine = small_gpu(l2=(16, 2), mall=None)
    plan, other = prepare(copy(4, 0, 1), machine), prepare(copy(8, 0, 1), machine, symmetry=False)
    once = partial(_lockstep, np.arange(4))
    for plans, launches, says in (
        ([], 1, "0 kernels"),
        ([plan], 0, "launches = 0"),
        ([prepare(copy(4, 0, 1), machine, symmetry=False), other], 1, "share their tensors"),
        ([plan, plan], 1, "symmetry=False"),
    ):
        with pytest.raises(ReplayError, match=says):
            replay_launches(plans, once, launches)
    with pytest.raises(ReplayError, match="not those of"):
        replay_lockstep(
            plan, np.arange(4), workgroups_per_cu=1, caches=cold_caches(prepare(copy(4, 0, 1), small_gpu()))
        )


# ---- Is there room where no set is asked for more lines than it has, and is what is read then counted right?
@settings(max_examples=300, deadline=None)
@given(shape=shapes(9), gaps=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), min_size=1, max_size=3))
def test_there_is_room_if_no_set_is_asked_for_more_lines_than_it_has_ways(shape, gaps):
    cache = small_gpu(l2=shape).l2
    spans, at = [], 0
    for gap, length in gaps:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    lines = [line for first, end in spans for line in range(first, end)]
    asked = collections.Counter(naive.set_of(line, cache) for line in lines)
    assert has_room(index_of(cache, at), cache.ways, spans) == (max(asked.values()) <= cache.ways)


@pytest.mark.parametrize(("ways", "room"), [(4, True), (3, False)])
def test_what_fills_it_to_the_last_way_has_room(ways, room):
    """Two tensors of 16 lines in 8 sets, one of them read: two ways; both: four."""
    machine = small_gpu(l2=(8, 2), mall=(8, ways), kept=True)
    machine = dataclasses.replace(machine, l2=dataclasses.replace(machine.l2, kept_between_launches=False))
    there, back = (prepare(copy(2, *way), machine, symmetry=False) for way in ((0, 1), (1, 0)))
    assert there.mall_has_room and back.mall_has_room
    assert bool(cold_caches(there, back).mall_keeps) is room
    later = replay_launches([there, back], partial(_lockstep, np.arange(2)), 10)
    assert [t.mall_hit_rate == 1 for t in later] == [room, room]


def test_what_was_read_once_is_there_and_what_was_stored_is_not():
    """By hand: rows 0, 0, 1, 0 of x, and y, which is only stored to, over an L2 of one set."""
    build = TraceBuilder(n_workgroups=4, line_bytes=128)
    x, y = (build.array(name, rows=2, cols=64, item_bytes=2) for name in "xy")
    at = {"col": 0, "rows": 1, "cols": 64}
    build.step(build.read(x, row=[0, 0, 1, 0], **at), build.write(y, row=[0, 1, 0, 1], **at))
    plan = prepare(build.trace(), small_gpu(xcds=1, cus=1, l2=(1, 1), mall=(1, 2)))
    assert plan.mall_has_room and plan.loaded == {(0, 2)}
    for replay in (replay_lockstep, partial(replay_timed, issue=IssueModel(1, 10**6))):
        counts = replay(plan, np.arange(4), workgroups_per_cu=1)
        assert (counts.total(MALL_REQUESTS), counts.total(MALL_HITS)) == (4, 2)
