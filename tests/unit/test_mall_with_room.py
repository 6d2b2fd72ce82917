"""Is there room for all that is read where no set is asked for more lines than it has, and is it then counted right?"""

import collections
import dataclasses
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import shapes, small_gpu
from tests.unit.test_launches import _lockstep, copy
from xcd_model import IssueModel, TraceBuilder, prepare, replay_lockstep, replay_timed
from xcd_model.cache.packed import has_room, index_of
from xcd_model.errors import ReplayError
from xcd_model.replay.plan import cold_caches, replay_launches
from xcd_model.replay.traffic import MALL_HITS, MALL_REQUESTS


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


def test_caches_of_bits_are_refused_to_a_launch_that_reads_more():
    machine = small_gpu(l2=(8, 2), mall=(8, 2))
    there, back = (prepare(copy(2, *way), machine, symmetry=False) for way in ((0, 1), (1, 0)))
    with pytest.raises(ReplayError, match="all plans that are to share them"):
        replay_lockstep(back, np.arange(2), workgroups_per_cu=1, caches=cold_caches(there))
