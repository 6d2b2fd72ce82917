"""Are clusters dispatched whole, is one fetch theirs, and is an order refused that tears them apart?"""

import dataclasses
import importlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.strategies.ceiling import ceiling
from swizzle_sim.workload.kernels import kernel
from tests import naive, naive_clusters
from tests.machines import cases, claimed, gemm_trace, small_gpu
from tests.unit.test_timed import NS, paces, rated_cases
from xcd_model import (
    Claims,
    Clusters,
    IssueModel,
    TraceBuilder,
    Waits,
    gpu,
    hit_rate_bound,
    prepare,
    replay_lockstep,
    replay_timed,
)
from xcd_model.analysis.schedule import schedule_of
from xcd_model.dispatch import slots_in_step
from xcd_model.errors import Deadlock, ReplayError, SearchError, SizeError, TornCluster, UnknownName
from xcd_model.trace.clusters import spread
from xcd_model.trace.waits import check_waits, waited_fs

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


def rows(lengths, tensors="xy", lines=2):
    """Programs of so many steps; a step reads two lines of x and two of y, or as told, each its own."""
    build, items = TraceBuilder(n_workgroups=len(lengths), line_bytes=128), 64 * lines
    arrays = [build.array(name, rows=len(lengths), cols=items * max(lengths), item_bytes=2) for name in tensors]
    for i in range(max(lengths)):
        cols = np.where(np.array(lengths) > i, items, 0)
        for array in arrays:
            build.step(build.read(array, row=np.arange(len(lengths)), col=items * i, rows=1, cols=cols))
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


# ---- Do programs that claim tiles get each tile once, and the ones that the counters have left when they are free?
SMALL = {"M": 512, "N": 640, "K": 64, "BLOCK_M": 64, "BLOCK_N": 64, "PROGRAMS": 24}


def work(lengths):
    """A trace whose workgroup w reads ``lengths[w]`` lines of its own, one an instruction."""
    return rows(lengths, "X", 1)


def spans_of(trace, order, machine, **launched):
    """(begin, end, slot) of each hardware id in a timed replay in which only instructions take time."""
    spans = np.full((len(order), 5), -1, np.int64)
    issue = IssueModel(in_flight=1, compute_fs=10**12)
    replay_timed(prepare(trace, machine, **launched), order, workgroups_per_cu=1, issue=issue, spans=spans)
    return spans


def test_whoever_is_free_first_takes_the_next_tile():
    """Four programs: 1 ends tiles after 2, 4 and 6, then begins a long one; 2 ends one after 7, takes the last."""
    trace, machine = work([20, 2, 7, 12, 2, 2, 12, 1]), small_gpu(xcds=2, cus=2)
    launched = {"programs": 4, "claims": Claims(pools=1, local=8)}
    assert spans_of(trace, np.arange(8), machine, **launched)[:, 2].tolist() == [0, 1, 2, 3, 1, 1, 1, 2]
    assert spans_of(trace, np.arange(8), machine, programs=4)[:, 2].tolist() == [0, 1, 2, 3] * 2


def test_in_lockstep_the_next_is_the_first_free_in_dispatch_order():
    """By hand, in turns: programs 0 to 3 take tiles 0 to 3, of 4, 1, 2, 1 instructions.

    After turn 0 programs 1 and 3 are free: tiles 4 and 5, of one. After turn 1 programs 1, 2 and 3: tiles 6, 7 and 8.
    """
    trace, machine = work([4, 1, 2, 1, 1, 1, 1, 1, 1]), small_gpu(xcds=2, cus=2)
    plan = prepare(trace, machine, programs=4, claims=Claims(pools=1, local=9))
    found = schedule_of(plan, np.arange(9), workgroups_per_cu=1)
    assert found.begin.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    assert found.xcd.tolist() == [0, 1, 0, 1, 1, 1, 1, 0, 1]


def test_a_pool_feeds_its_own_programs_and_then_all_claim_from_the_rest():
    """Two pools of tiles 0, 2, 4 and 1, 3, 5; XCD 0's tiles are long, so XCD 1 takes what is for all, 6 to 9."""
    trace, machine = work([9, 1, 9, 1, 9, 1, 1, 1, 1, 1]), small_gpu(xcds=2, cus=1)
    launched = {"programs": 2, "claims": Claims(pools=2, local=6)}
    assert spans_of(trace, np.arange(10), machine, **launched)[:, 2].tolist() == [0, 1, 0, 1, 0, 1, 1, 1, 1, 1]
    alone = {"programs": 2, "claims": Claims(pools=2, local=10)}
    assert spans_of(trace, np.arange(10), machine, **alone)[:, 2].tolist() == [0, 1] * 5


def test_a_program_whose_pool_is_empty_steals_from_the_next_pools_in_turn():
    """Three pools, 0 3 6, 1 4 7 and 2 5 8, a program each; program 1 is done first, asks pool 2, later pool 0.

    With tiles 6, 7 and 8 for all, program 2 asks pool 0, and the others what is for all once no pool has any.
    """
    trace, machine = work([8, 1, 6, 9, 1, 7, 9, 1, 6]), small_gpu(xcds=3, cus=1)
    all_, some = ({"programs": 3, "claims": Claims(pools=3, local=n, steals=True)} for n in (9, 6))
    assert spans_of(trace, np.arange(9), machine, **all_)[:, 2].tolist() == [0, 1, 2, 0, 1, 1, 1, 1, 2]
    assert spans_of(trace, np.arange(9), machine, **some)[:, 2].tolist() == [0, 1, 2, 2, 1, 1, 0, 1, 1]


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_each_tile_is_claimed_once_and_no_replay_beats_the_bound(case, data):
    trace, order, machine, occupancy = case
    launched = data.draw(claimed(trace.n_workgroups, machine.xcds))
    plan = prepare(trace, machine, **launched)
    bound, numbers = hit_rate_bound(plan), plan.machine._replace(slots=machine.cus_per_xcd * occupancy)
    follows = slots_in_step(trace.start, numbers, order).follows
    works = np.diff(trace.start)[order] > 0
    assert Counter(follows[follows >= 0].tolist()) == Counter(np.flatnonzero(works).tolist())
    issued = [i for turn in naive.turns(trace, order, machine, occupancy, **launched) for _, _, i in turn]
    assert sorted(issued) == list(range(trace.n_instructions))
    timed = replay_timed(plan, order, workgroups_per_cu=occupancy, issue=IssueModel(in_flight=2, compute_fs=7))
    for got in (replay_lockstep(plan, order, workgroups_per_cu=occupancy), timed):
        assert got.per_xcd[:, 0].sum() == trace.n_instructions
        assert got.l2_hit_rate <= bound.l2_hit_rate


def test_what_makes_no_claims_is_refused():
    trace, machine = work([1, 1, 1]), small_gpu(xcds=2, cus=1)
    with pytest.raises(ReplayError, match="pools = 0, local = 3"):
        Claims(pools=0, local=3)
    with pytest.raises(ReplayError, match="give programs too"):
        prepare(trace, machine, claims=Claims(pools=1, local=3))
    with pytest.raises(ReplayError, match="programs = 1: each of 2 pools needs a program"):
        prepare(trace, machine, programs=1, claims=Claims(pools=2, local=3))
    for sizes, says in (
        ({"LOCAL": 101}, "LOCAL = 101"),
        ({"STEAL": 2}, "STEAL = 2"),
        ({"PROGRAMS": 7}, "a pool without a program"),
    ):
        with pytest.raises(SizeError, match=says):
            kernel("gemm_dynamic", **sizes)


def test_bounds_of_an_order_say_no_more_than_is_known():
    found = Scorer(kernel("gemm_dynamic", **SMALL, POOLS=8, LOCAL=100), gpu("mi300x"), replay="lockstep")
    assert found.assigned_bound(np.arange(80)) == found.bound.l2_hit_rate
    with pytest.raises(SearchError, match="claim tiles"):
        ceiling(found.kernel, gpu("mi300x"), replay="lockstep", formulas=2, evaluations=2, seed=0)


# ---- Is an order refused exactly where a tile comes before one that it waits for, and does no other hang?
def awaited_by(waits, workgroup):
    """Workgroups that one waits for."""
    group = waits.awaits[workgroup]
    return [] if group < 0 else [other for other in range(waits.sets.size) if waits.sets[other] == group]


def hangs(order, waits, programs, pools, local, draw):
    """Whether programs that claim in turn, and run in any order, come to a point where all of them wait."""
    queues = [list(range(pool, local, pools)) for pool in range(pools)]
    rest, done, holds = list(range(local, len(order))), set(), {}
    while True:
        for program in range(programs):
            queue = queues[program % pools] or rest
            if program not in holds and queue:
                holds[program] = order[queue.pop(0)]
        if not holds:
            return False
        ready = [program for program, tile in holds.items() if set(awaited_by(waits, tile)) <= done]
        if not ready:
            return True
        done.add(holds.pop(draw(st.sampled_from(ready))))


@st.composite
def staged(draw):
    """Workgroups of one or more groups that set flags or wait for a group, no group for itself."""
    n, groups = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    sets = np.array(draw(st.lists(st.integers(-1, groups - 1), min_size=n, max_size=n)))
    awaits = np.array([-1 if one >= 0 else draw(st.integers(-1, groups - 1)) for one in sets])
    return np.array(draw(st.permutations(range(n)))), Waits(sets=sets, awaits=awaits)


@settings(max_examples=200, deadline=None)
@given(case=staged(), data=st.data())
def test_an_order_is_refused_where_a_tile_comes_before_one_it_waits_for_and_no_other_hangs(case, data):
    order, waits = case
    place = {tile: t for t, tile in enumerate(order.tolist())}
    early = [tile for tile in place if any(place[other] > place[tile] for other in awaited_by(waits, tile))]
    if early:
        first = min(early, key=place.get)
        with pytest.raises(Deadlock, match=rf"^id {place[first]} \(tile {first}\) waits for the later id"):
            check_waits(order, waits)
        return
    check_waits(order, waits)
    pools = data.draw(st.integers(1, 4))
    local = data.draw(st.integers(0, order.size))
    programs = data.draw(st.integers(min(pools, local) or 1, order.size))
    assert not hangs(order.tolist(), waits, programs, pools, local, data.draw)


def test_how_long_each_would_have_waited_by_hand():
    """Ids 0 and 1 set the flags of group 0 at 5 and 9; id 2 begins at 4 and waits for 5, id 3 at 9 for none."""
    waits = Waits(sets=np.array([-1, 0, -1, 0]), awaits=np.array([0, -1, 0, -1]))
    order = np.array([1, 3, 0, 2])
    spans = np.array([[0, 5, 0, 0, 0], [2, 9, 0, 0, 0], [4, 12, 0, 0, 0], [9, 11, 0, 0, 0]])
    assert waited_fs(spans, order, waits).tolist() == [0, 0, 5, 0]


def test_a_candidate_that_may_hang_has_no_score_and_the_verdict_says_why():
    scorer = Scorer(kernel("mlp_megakernel", M=1024, K=64, H=1024, N=512), gpu("mi300x"), replay="lockstep")
    refused = scorer.verify(Swizzle.parse(family("snake")))
    assert (refused.bijective, refused.status, refused.counterexample.code) == (False, "refuted", "deadlock")
    with pytest.raises(Deadlock, match="put it after that"):
        scorer.score(Swizzle.parse(family("snake")))
    here = scorer.verify(Swizzle.parse(family("contiguous")))  # an XCD has whole rows of tiles, elsewhere parts
    assert here.bijective and here.domain == "this grid only" and here.lattice_counterexample.code == "deadlock"
    everywhere = scorer.verify(Swizzle.parse(family("column")))
    assert everywhere.bijective and everywhere.domain != "this grid only" and everywhere.passed == everywhere.tested
    assert scorer.verify(Swizzle.parse(family("identity"))).passed > 1
