"""Is a loop walked backwards, and a load streamed, as a slow replay of the same says, in every count and in time?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.workload.kernels import kernel
from tests import naive, naive_timed
from tests.machines import cases, small_gpu, tiled_traces
from tests.unit.test_timed import paces, rated_cases
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_lockstep, replay_timed
from xcd_model.errors import TraceError, UnknownName
from xcd_model.replay.knobs import instructions_walked, with_knobs


@st.composite
def knobs(draw, trace):
    """A trace with a loop in each workgroup, who walks it backwards, and streamed tensors."""
    trip = np.full(trace.n_instructions, -1, np.int32)
    for start, end in zip(trace.start[:-1].tolist(), trace.start[1:].tolist(), strict=True):
        first = draw(st.integers(start, end))
        last = draw(st.integers(first, end))
        each = draw(st.integers(1, 3))
        trip[first:last] = np.arange(last - first) // each
    backwards = np.array(draw(st.lists(st.booleans(), min_size=trace.n_workgroups, max_size=trace.n_workgroups)))
    streamed = draw(st.sets(st.integers(0, len(trace.tensors) - 1)))
    return dataclasses.replace(trace, trip=trip), backwards, sorted(streamed)


def by_hand(trace, backwards):
    """The trace with the instructions of each workgroup in the order of the slow walk."""
    order = [i for w in range(trace.n_workgroups) for i in naive.walked(trace, w, bool(backwards[w]))]
    return dataclasses.replace(trace, base=trace.base[order], template=trace.template[order], trip=trace.trip[order])


@settings(max_examples=60, deadline=None)
@given(case=st.one_of(cases(), cases(traces=tiled_traces)), data=st.data())
def test_lockstep_with_knobs_is_the_naive_replay(case, data):
    trace, order, machine, occupancy = case
    trace, backwards, streamed = data.draw(knobs(trace))
    names = [trace.tensors[i].name for i in streamed]
    caches = naive.Caches(machine)
    caches.streamed = streamed
    timeline, by_tensor = naive.replay(by_hand(trace, backwards), order, machine, occupancy, caches=caches)
    for symmetry in (False, True):
        plan = with_knobs(prepare(trace, machine, symmetry=symmetry), backwards=backwards, streamed=names)
        got = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
        np.testing.assert_array_equal(got.by_tensor, by_tensor)
        np.testing.assert_array_equal(got.per_xcd, np.sum(timeline, axis=0))


@settings(max_examples=60, deadline=None)
@given(case=st.one_of(rated_cases(), rated_cases(traces=tiled_traces)), pace=paces, data=st.data())
def test_timed_with_knobs_is_the_naive_replay(case, pace, data):
    trace, order, machine, occupancy = case
    trace, backwards, streamed = data.draw(knobs(trace))
    names = [trace.tensors[i].name for i in streamed]
    caches = naive.Caches(machine)
    caches.streamed = streamed
    slow = naive_timed.replay(by_hand(trace, backwards), order, machine, occupancy, **pace, caches=caches)
    for symmetry in (False, True):
        plan = with_knobs(prepare(trace, machine, symmetry=symmetry), backwards=backwards, streamed=names)
        got = replay_timed(plan, order, workgroups_per_cu=occupancy, issue=IssueModel(**pace))
        assert (got.time_fs, got.activation_fs) == (slow.time_fs, slow.opening_fs)
        np.testing.assert_array_equal(got.per_xcd, slow.totals())
        np.testing.assert_array_equal(got.by_tensor, slow.by_tensor())


@pytest.mark.parametrize("name", ["attention", "gemm"])
def test_a_kernel_of_the_suite_turns_its_loop_and_nothing_else(name):
    sizes = {"attention": {"S": 512, "H": 1}, "gemm": {"M": 512, "N": 512, "K": 256}}[name]
    trace = kernel(name, **sizes).build_trace(128)
    order = instructions_walked(trace, np.ones(trace.n_workgroups, bool))
    for start, end in zip(trace.start[:-1], trace.start[1:], strict=True):
        mine, trips = order[start:end], trace.trip[start:end]
        turned = trace.trip[mine]
        assert sorted(mine) == list(range(start, end))
        np.testing.assert_array_equal(turned >= 0, trips >= 0)
        np.testing.assert_array_equal(turned[turned >= 0], trips[trips >= 0][::-1])
    assert trace.trip.max() == {"attention": 7, "gemm": 3}[name]


def test_a_sawtooth_finds_what_the_last_one_left():
    """One CU, eight workgroups in turn over the same 1024 lines, an L2 of 512: a cycle hits none, a sawtooth half."""
    build = TraceBuilder(n_workgroups=8, line_bytes=128)
    x = build.array("x", rows=1, cols=128 * 1024, item_bytes=1)
    build.step(build.read(x, row=np.zeros((8, 1), int), col=np.tile(np.arange(1024) * 128, (8, 1)), rows=1, cols=128))
    machine = dataclasses.replace(small_gpu(xcds=1, cus=1, l2=(1, 512), mall=None), l1=None)
    plan = prepare(build.trace(), machine)

    def misses(backwards, streamed=()):
        knobbed = with_knobs(plan, backwards=backwards, streamed=streamed)
        return replay_lockstep(knobbed, np.arange(8), workgroups_per_cu=1).l2_misses

    assert misses(None) == 8 * 1024
    assert misses(np.arange(8) % 2 == 1) == 1024 + 7 * 512
    assert misses(None, ["x"]) == 1024 + 7 * 512  # the first 511 lines stay, and the last one of all


def test_what_cannot_be_is_refused():
    trace = kernel("gemm", M=512, N=512, K=256).build_trace(128)
    plan = prepare(trace, gpu("mi300x"))
    with pytest.raises(UnknownName, match="no tensor is called 'X'"):
        with_knobs(plan, streamed=["X"])
    with pytest.raises(TraceError, match="one truth for each"):
        instructions_walked(trace, np.ones(3, bool))
    captured = dataclasses.replace(trace, trip=np.zeros(0, np.int32))
    with pytest.raises(TraceError, match="trips of a loop: its direction cannot be changed"):
        instructions_walked(captured, np.ones(trace.n_workgroups, bool))
    with pytest.raises(TraceError, match="trip has 3 entries"):
        dataclasses.replace(trace, trip=np.zeros(3, np.int32))
