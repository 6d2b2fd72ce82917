"""Are clusters dispatched whole, is one fetch theirs, and is an order refused that tears them apart?"""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive, naive_clusters
from tests.machines import gemm_trace, small_gpu
from tests.unit.test_timed import NS, paces, rated_cases
from xcd_model import Clusters, IssueModel, TraceBuilder, gpu, hit_rate_bound, prepare, replay_lockstep, replay_timed
from xcd_model.analysis.schedule import schedule_of
from xcd_model.errors import ReplayError, TornCluster, UnknownName
from xcd_model.trace.clusters import spread

symmetry_module = importlib.import_module("xcd_model.fast.symmetry")


def with_clusters(machine, most=8):
    return dataclasses.replace(machine, limits=dataclasses.replace(machine.limits, workgroups_per_cluster=most))


@st.composite
def clustered_cases(draw):
    """`rated_cases` on XCDs with room for a cluster, its size and some tensors that it shares."""
    trace, order, machine, occupancy = draw(rated_cases())
    machine = with_clusters(dataclasses.replace(machine, cus_per_xcd=draw(st.integers(2, 5))))
    names = [tensor.name for tensor in trace.tensors]
    shared = tuple(draw(st.lists(st.sampled_from(names), unique=True)))
    clusters = Clusters(size=draw(st.integers(2, machine.cus_per_xcd)), common=shared, multicast=draw(st.booleans()))
    return trace, order, machine, occupancy, clusters


@settings(max_examples=40, deadline=None)
@given(case=clustered_cases())
def test_workgroups_send_what_is_theirs_of_a_program(case):
    trace, *_, clusters = case
    got = spread(trace, clusters)
    for program in range(trace.n_workgroups):
        expected = naive_clusters.workgroups_of_program(
            trace, program, clusters.size, clusters.common, clusters.multicast
        )
        for place, sends in enumerate(expected):
            w = program * clusters.size + place
            found = [
                (*naive.touches(got, i), int(got.tensor[got.template[i]]), naive_clusters.together(got, i))
                for i in range(int(got.start[w]), int(got.start[w + 1]))
            ]
            assert found == sends


@settings(max_examples=40, deadline=None)
@given(case=clustered_cases())
def test_parts_of_a_load_pass_an_l1_as_often_as_the_whole_rounded_up(case):
    trace, *_, clusters = case
    got = spread(trace, clusters)
    for program in range(trace.n_workgroups):
        whole = np.zeros(len(trace.tensors))
        first, end = trace.start[program : program + 2]
        np.add.at(whole, trace.tensor[trace.template[first:end]], trace.waves[trace.template[first:end], 3])
        parts = np.zeros(len(trace.tensors))
        first, end = got.start[program * clusters.size], got.start[(program + 1) * clusters.size]
        np.add.at(parts, got.tensor[got.template[first:end]], got.waves[got.template[first:end], 3])
        assert (parts >= whole).all() and ((parts > 0) == (whole > 0)).all()
        each = end - first  # a part is rounded up by less than one; what is not cut is each workgroup's
        assert (parts <= clusters.size * whole + each).all()


@settings(max_examples=50, deadline=None)
@given(case=clustered_cases(), pace=paces, data=st.data())
def test_both_replays_are_the_naive_ones(case, pace, data):
    trace, order, machine, occupancy, clusters = case
    workgroups, n = spread(trace, clusters), clusters.size
    hardware = naive_clusters.expanded(order.tolist(), n)
    expected, by_tensor = naive_clusters.replay(workgroups, hardware, machine, occupancy, n)
    timed = naive_clusters.replay_timed(workgroups, hardware, machine, occupancy, n, **pace)
    for symmetry in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(symmetry_module, "WORTHWHILE", 1.0)
            plan = prepare(trace, machine, clusters=clusters, symmetry=symmetry)
        given_order = data.draw(st.sampled_from([order, hardware]))
        got = replay_lockstep(plan, given_order, workgroups_per_cu=occupancy)
        assert (got.turns, got.turns_per_bin) == (len(expected), 1)
        np.testing.assert_array_equal(got.timeline, expected)
        np.testing.assert_array_equal(got.by_tensor, by_tensor)
        assert got.l2_misses >= hit_rate_bound(plan).l2_misses
        got = replay_timed(plan, given_order, workgroups_per_cu=occupancy, issue=IssueModel(**pace), bin_fs=300 * NS)
        assert (got.time_fs, got.activation_fs) == (timed.time_fs, timed.opening_fs)
        np.testing.assert_array_equal(got.timeline, timed.table(got.bin_fs))
        np.testing.assert_array_equal(got.by_tensor, timed.by_tensor())
        np.testing.assert_array_equal(got.cu_finish, timed.finish())


def rows(lengths):
    """Programs of so many steps; a step reads two lines of x and two of y, each its own."""
    build = TraceBuilder(n_workgroups=len(lengths), line_bytes=128)
    x, y = (build.array(name, rows=len(lengths), cols=128 * max(lengths), item_bytes=2) for name in "xy")
    for i in range(max(lengths)):
        at = {"row": np.arange(len(lengths)), "col": 128 * i, "rows": 1}
        cols = np.where(np.array(lengths) > i, 128, 0)
        build.step(build.read(x, **at, cols=cols))
        build.step(build.read(y, **at, cols=cols))
    return build.trace()


def test_a_cluster_begins_when_all_its_places_are_free():
    """By hand: 5 CUs, clusters of 2, so CU 4 is left over; two begin in turn 0, the short one makes way first."""
    trace, machine = rows([3, 1, 1, 2]), with_clusters(small_gpu(xcds=1, cus=5))
    plan = prepare(trace, machine, clusters=Clusters(size=2))
    found = schedule_of(plan, np.arange(8), workgroups_per_cu=1)
    assert found.begin.tolist() == [0, 0, 0, 0, 2, 2, 4, 4]
    assert found.end.tolist() == [6, 6, 2, 2, 4, 4, 8, 8]
    by_cluster = schedule_of(plan, np.arange(4), workgroups_per_cu=1)
    assert (by_cluster.begin.tolist(), by_cluster.end.tolist()) == ([0, 0, 2, 4], [6, 2, 4, 8])
    assert by_cluster.xcd.tolist() == [0] * 4 and np.bincount(by_cluster.owner).tolist() == [12, 4, 4, 8]
    spans = np.full((8, 5), -1, np.int64)
    replay_timed(plan, np.arange(4), workgroups_per_cu=1, issue=IssueModel(1, 10**12), spans=spans)
    assert spans[:, 2].tolist() == [0, 1, 2, 3, 2, 3, 2, 3]
    assert spans[4, 0] == spans[5, 0] == max(spans[2, 1], spans[3, 1])


def test_a_cu_computes_no_further_than_now_while_a_cluster_waits_to_begin():
    """Three a CU, 500 ns from a cluster to the next: what a hit brings meanwhile comes before a miss of longer ago."""
    columns = [[0, 0, 26, 26], [0, 0], [0, 0, 0, 0], [0, 0], [0] * 6, [0, 0], [0, 0, 10, 0, 2]]  # of each program
    machine = with_clusters(small_gpu(xcds=1, cus=2))
    machine = dataclasses.replace(machine, limits=dataclasses.replace(machine.limits, workgroup_gap_ns=500.0))
    build = TraceBuilder(n_workgroups=len(columns), line_bytes=128)
    x = build.array("x", rows=len(columns), cols=64 * 64, item_bytes=2)
    for i in range(max(map(len, columns))):
        at = [(64 * own[i], 128) if i < len(own) else (0, 0) for own in columns]
        col, cols = np.array(at).T
        build.step(build.read(x, row=np.arange(len(columns)), col=col, rows=1, cols=cols))
    trace, clusters, pace = build.trace(), Clusters(size=2), {"in_flight": 1, "compute_fs": NS}
    order = list(range(2 * len(columns)))
    expected = naive_clusters.replay_timed(spread(trace, clusters), order, machine, 3, 2, **pace)
    plan = prepare(trace, machine, clusters=clusters)
    got = replay_timed(plan, np.arange(len(columns)), workgroups_per_cu=3, issue=IssueModel(**pace), bin_fs=10 * NS)
    assert got.time_fs == expected.time_fs
    np.testing.assert_array_equal(got.timeline, expected.table(got.bin_fs))
    np.testing.assert_array_equal(got.cu_finish, expected.finish())


def test_one_fetch_serves_the_cluster_and_those_that_come_early_wait():
    """x is shared: each workgroup asks for one of its two lines, has both when the slower line is there."""
    trace, machine = rows([1]), with_clusters(small_gpu(xcds=1, cus=2))
    issue = IssueModel(1, NS)
    alone = replay_timed(
        prepare(trace, machine, clusters=Clusters(size=2)), np.arange(1), workgroups_per_cu=1, issue=issue
    )
    shared = prepare(trace, machine, clusters=Clusters(size=2, common=("x",)))
    got = replay_timed(shared, np.arange(1), workgroups_per_cu=1, issue=issue)
    assert got.l2_requests == alone.l2_requests == trace.n_touches
    assert got.time_fs > alone.time_fs  # the first part waits for the second, which the port serves after it


def test_a_shared_panel_is_asked_for_once_a_cluster():
    """GEMM in tiles of 256 x 128 by two workgroups: as many requests as one workgroup, fewer than two of 128 x 128."""
    machine = with_clusters(gpu("mi300x"))
    tall, flat = gemm_trace(2048, 2048, 512, 256, 128, 64), gemm_trace(2048, 2048, 512, 128, 128, 64)
    requests = {
        name: replay_lockstep(plan, np.arange(n), workgroups_per_cu=1).l2_requests
        for name, plan, n in (
            ("cluster", prepare(tall, machine, clusters=Clusters(size=2, common=("B",))), 128),
            ("program", prepare(tall, machine), 128),
            ("no multicast", prepare(tall, machine, clusters=Clusters(size=2, common=("B",), multicast=False)), 128),
            ("workgroups", prepare(flat, machine), 256),
        )
    }
    assert requests["cluster"] == requests["program"]
    assert requests["no multicast"] == requests["workgroups"]
    steps, panel = 8, 64 * 2  # lines of B's panel a step
    assert requests["workgroups"] - requests["cluster"] == 128 * steps * panel


def test_orders_that_tear_a_cluster_apart_are_refused():
    trace, machine = rows([1] * 4), with_clusters(small_gpu(xcds=2, cus=2))
    plan = prepare(trace, machine, clusters=Clusters(size=2))
    kept = [2, 3, 6, 7, 0, 1, 4, 5]
    whole = replay_lockstep(plan, np.array(kept), workgroups_per_cu=1)
    assert (
        whole.timeline.tobytes()
        == replay_lockstep(plan, np.array([1, 3, 0, 2]), workgroups_per_cu=1).timeline.tobytes()
    )
    for torn, says in (
        ([0, 2, 1, 3, 4, 5, 6, 7], "workgroups 0..1 are dispatched as one cluster of 2 and would compute 0, 2"),
        ([0, 1, 3, 2, 4, 5, 6, 7], "workgroups 2..3 .* would compute 3, 2"),
        ([7, 0, 1, 2, 3, 4, 5, 6], "would compute 7, 0, .*: remap pid // 2 and keep pid % 2"),
    ):
        for replay, how in (
            (replay_lockstep, {}),
            (replay_timed, {"issue": IssueModel(1, 0)}),
            (schedule_of, {}),
        ):
            with pytest.raises(TornCluster, match=says):
                replay(plan, np.array(torn), workgroups_per_cu=1, **how)
    with pytest.raises(ReplayError, match="workgroup 0 twice"):
        replay_lockstep(plan, np.zeros(4, int), workgroups_per_cu=1)


def test_what_a_gpu_does_not_dispatch_is_refused():
    trace = rows([1] * 4)
    with pytest.raises(ReplayError, match="at least 2 workgroups"):
        Clusters(size=1)
    with pytest.raises(ReplayError, match="mi300x has no clusters"):
        prepare(trace, gpu("mi300x"), clusters=Clusters(size=2))
    with pytest.raises(ReplayError, match="at most 8 workgroups, on 2 CUs"):
        prepare(trace, with_clusters(small_gpu(cus=2)), clusters=Clusters(size=4))
    with pytest.raises(ReplayError, match="persistent programs are not modelled"):
        prepare(trace, with_clusters(small_gpu()), programs=2, clusters=Clusters(size=2))
    with pytest.raises(UnknownName, match="tensor is called 'z'"):
        prepare(trace, with_clusters(small_gpu()), clusters=Clusters(size=2, common=("z",)))
