"""Is the timed replay the naive one, in every count, on every XCD, in every bin, and in time to the femtosecond?"""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.suite.gemm import gemm
from tests import naive, naive_timed
from tests.machines import cases, gemm_trace, small_gpu, tiled_traces
from xcd_model.bounds import assigned_misses, hit_rate_bound
from xcd_model.builder import TraceBuilder
from xcd_model.errors import ReplayError
from xcd_model.gpu import gpu
from xcd_model.plan import prepare
from xcd_model.replay import replay
from xcd_model.timed import Pace, replay_timed
from xcd_model.traffic import (
    COLUMNS,
    INSTRUCTIONS,
    L1_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
)

symmetry_module = importlib.import_module("xcd_model.symmetry")
NS = 10**6  # femtoseconds
NOT_MALL_HITS = [c for c, name in enumerate(COLUMNS) if name != "mall_hits"]


@st.composite
def rated_cases(draw, traces=None):
    """`cases`, with rates and latencies from idle to jammed, often equal so that events tie."""
    trace, order, machine, occupancy = draw(cases(traces=traces))
    clock = draw(st.sampled_from([1.0, 1000.0, 1234.5, 2100.0]))
    latency = [draw(st.sampled_from([0.5, 1.0, 83.4, 400.0])) for _ in range(3)]
    gbps = [draw(st.sampled_from([0.3, 8.0, 500.0, 4100.0, 1e9])) for _ in range(2)]
    port = draw(st.sampled_from([1, 3, 128, 2048]))
    l2 = dataclasses.replace(machine.l2, read_bytes_per_cycle=port, latency_ns=latency[0])
    mall = machine.mall and dataclasses.replace(machine.mall, bandwidth_gbps=gbps[0], latency_ns=latency[1])
    hbm = dataclasses.replace(machine.hbm, bandwidth_gbps=gbps[1], peak_bandwidth_gbps=gbps[1], latency_ns=latency[2])
    rates = {"clock_mhz": clock, "sustained_clock_mhz": clock, "fabric_bytes_per_cycle": draw(st.integers(1, 1024))}
    return trace, order, dataclasses.replace(machine, l2=l2, mall=mall, hbm=hbm, **rates), occupancy


paces = st.builds(
    dict,
    in_flight=st.integers(1, 4),
    compute_fs=st.sampled_from([0, 0, 1, NS // 2, 7 * NS, 900 * NS]),
    jitter_fs=st.sampled_from([0, 0, 1, 33 * NS, 2000 * NS]),
    seed=st.integers(0, 2**32 - 1),
)


def timed(case, pace, *, symmetry=True, programs=None, **options):
    trace, order, machine, occupancy = case
    plan = prepare(trace, machine, programs=programs, symmetry=symmetry)
    return replay_timed(plan, order, workgroups_per_cu=occupancy, pace=Pace(**pace), **options)


@pytest.mark.parametrize("symmetry", [False, True])
@settings(max_examples=300, deadline=None)
@given(case=rated_cases(), pace=paces, bin_fs=st.sampled_from([7 * NS, 300 * NS, 10**9]), data=st.data())
def test_timed_replay_is_the_naive_one(symmetry, case, pace, bin_fs, data):
    programs = data.draw(st.one_of(st.none(), st.integers(1, case[0].n_workgroups)))
    expected = naive_timed.replay(*case, **pace, programs=programs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry_module, "WORTHWHILE", 1.0)  # take classes even where they save nothing
        got = timed(case, pace, symmetry=symmetry, programs=programs, bin_fs=bin_fs)
    assert got.time_fs == expected.time_fs
    np.testing.assert_array_equal(got.per_xcd, expected.totals())
    np.testing.assert_array_equal(got.timeline, expected.table(got.bin_fs))
    np.testing.assert_array_equal(got.by_tensor, expected.by_tensor())


@settings(max_examples=150, deadline=None)
@given(case=rated_cases(traces=tiled_traces), pace=paces)
def test_symmetry_changes_neither_counts_nor_time(case, pace):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry_module, "WORTHWHILE", 1.0)
        plain, quick = (timed(case, pace, symmetry=s, bin_fs=100 * NS) for s in (False, True))
    assert (quick.time_fs, quick.bin_fs) == (plain.time_fs, plain.bin_fs)
    np.testing.assert_array_equal(quick.timeline, plain.timeline)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_gemm_on_a_whole_mi300x_by_symmetry(in_flight):
    trace = gemm_trace(2048, 2048, 1024, 256, 256, 64)
    order = np.random.default_rng(0).permutation(trace.n_workgroups)
    pace = {"in_flight": in_flight, "compute_fs": 900 * NS, "jitter_fs": 200 * NS, "seed": 3}
    plain, quick = (timed((trace, order, gpu("mi300x"), 1), pace, symmetry=s) for s in (False, True))
    assert quick.simulated_fraction <= 1 / 8
    assert quick.time_fs == plain.time_fs
    np.testing.assert_array_equal(quick.timeline, plain.timeline)


@settings(max_examples=80, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_traffic_is_consistent(case, pace):
    trace, order, machine, occupancy = case
    got, lockstep = timed(case, pace), replay(prepare(trace, machine), order, workgroups_per_cu=occupancy)
    assert np.all(got.timeline >= 0)
    assert got.l2_hits + got.l2_misses == got.l2_requests
    asked = [INSTRUCTIONS, WRITE_REQUESTS, L1_REQUESTS if machine.l1 else READ_REQUESTS]
    assert np.all(got.per_xcd[:, asked] == lockstep.per_xcd[:, asked])  # what an XCD is asked does not depend on when
    misses = got.per_xcd[:, READ_MISSES] + got.per_xcd[:, WRITE_MISSES]
    assert np.all(misses >= assigned_misses(trace, order, machine))
    assert got.l2_misses >= hit_rate_bound(prepare(trace, machine)).l2_misses


@settings(max_examples=40, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_with_room_for_every_line_misses_are_compulsory(case, pace):
    trace, order, machine, occupancy = case
    roomy = dataclasses.replace(machine.l2, ways=256, size_bytes=machine.l2.sets * 256 * machine.l2.line_bytes)
    got = timed((trace, order, dataclasses.replace(machine, l2=roomy), occupancy), pace)
    misses = got.per_xcd[:, READ_MISSES] + got.per_xcd[:, WRITE_MISSES]
    assert misses.tolist() == naive.distinct_lines(trace, order, machine)


@settings(max_examples=40, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_same_seed_same_bytes(case, pace):
    first, second = (timed(case, pace) for _ in range(2))
    assert (first.time_fs, first.bin_fs) == (second.time_fs, second.bin_fs)
    assert first.timeline.tobytes() == second.timeline.tobytes()


@settings(max_examples=60, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_time_is_at_least_the_work_of_each_resource(case, pace):
    """What a read waits for must have been served; stores that leave an L2 are not waited for, so fills only."""
    trace, _, machine, _ = case
    got, rate = timed(case, pace), naive_timed.rates_of(machine)
    instructions, reads, writes, fills, _, _, _, held, _, _ = got.per_xcd.T
    assert np.all(reads * rate["l2_read"] + writes * rate["l2_write"] <= got.time_fs)
    assert np.all(instructions * pace["compute_fs"] <= got.time_fs * machine.cus_per_xcd)
    assert np.diff(trace.start).max() * pace["compute_fs"] <= got.time_fs
    if fills.any():
        nearest = min(rate["hbm_latency"], rate["mall_latency"]) if machine.mall else rate["hbm_latency"]
        assert fills.max() * rate["fabric"] + nearest <= got.time_fs
        assert fills.sum() * rate["mall"] + nearest <= got.time_fs
    if from_hbm := (fills - held).sum():
        assert from_hbm * rate["hbm"] + rate["hbm_latency"] <= got.time_fs


@settings(max_examples=60, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_time_is_at_most_everything_one_after_the_other(case, pace):
    """The last thing done waited for a chain of services and trips, and no service or trip is twice in a chain."""
    got, rate = timed(case, pace), naive_timed.rates_of(case[2])
    instructions, reads, writes, fills, _, writebacks, _, held, asked, _ = got.per_xcd.sum(axis=0).tolist()
    trip = max(rate["l1_latency"], rate["l2_latency"], rate["mall_latency"], rate["hbm_latency"])
    most = instructions * (pace["compute_fs"] + pace["jitter_fs"] + trip)
    most += asked * rate["l1"] + reads * rate["l2_read"] + writes * rate["l2_write"]
    most += fills * (rate["fabric"] + rate["mall"]) + (fills - held) * rate["hbm"]
    most += writebacks * (rate["fabric_wb"] + rate["mall_wb"] + rate["hbm_wb"])
    assert got.time_fs <= most


@settings(max_examples=60, deadline=None)
@given(case=rated_cases(), pace=paces)
def test_one_slot_an_xcd_runs_in_program_order(case, pace):
    """Nothing can overtake, so each L2 sees what it sees in lockstep, whatever the pace."""
    trace, order, machine, _ = case
    machine = dataclasses.replace(machine, cus_per_xcd=1)
    got = timed((trace, order, machine, 1), pace)
    lockstep = replay(prepare(trace, machine), order, workgroups_per_cu=1)
    np.testing.assert_array_equal(got.per_xcd[:, NOT_MALL_HITS], lockstep.per_xcd[:, NOT_MALL_HITS])


@settings(max_examples=80, deadline=None)
@given(case=rated_cases(), pace=paces, data=st.data())
def test_one_slot_alone_is_never_faster_on_a_worse_machine(case, pace, data):
    """True for one slot on one XCD only: with more, a delay may reorder requests and save time."""
    trace, order, machine, _ = case
    machine = dataclasses.replace(machine, xcds=1, cus_per_xcd=1, dispatch_offset=0)
    slow = data.draw(st.sampled_from([1, 2, 5]))
    worse = dataclasses.replace(
        machine,
        l2=dataclasses.replace(machine.l2, latency_ns=machine.l2.latency_ns * slow),
        hbm=dataclasses.replace(machine.hbm, bandwidth_gbps=machine.hbm.bandwidth_gbps / slow),
        fabric_bytes_per_cycle=-(-machine.fabric_bytes_per_cycle // slow),
    )
    base = pace | {"jitter_fs": 0}
    before = timed((trace, order, machine, 1), base)
    for other_machine, change in [
        (worse, {}),
        (machine, {"compute_fs": pace["compute_fs"] * slow}),
        (machine, {"in_flight": max(1, pace["in_flight"] - slow)}),
        (machine, {"jitter_fs": pace["jitter_fs"]}),
    ]:
        after = timed((trace, order, other_machine, 1), base | change)
        assert after.time_fs >= before.time_fs
        np.testing.assert_array_equal(after.per_xcd, before.per_xcd)


@settings(max_examples=40, deadline=None)
@given(case=rated_cases(), pace=paces, bin_fs=st.sampled_from([1, 3, 1000]))
def test_a_timeline_that_is_full_folds_and_keeps_totals_and_places(case, pace, bin_fs):
    wide, fine = timed(case, pace, bin_fs=2**61), timed(case, pace, bin_fs=bin_fs)
    np.testing.assert_array_equal(fine.per_xcd, wide.per_xcd)
    assert (len(wide.timeline), fine.time_fs) == (1, wide.time_fs)
    assert fine.bin_fs in {bin_fs << doublings for doublings in range(61)}
    expected = naive_timed.replay(*case, **pace)
    np.testing.assert_array_equal(fine.timeline, expected.table(fine.bin_fs))


# By hand. 1 ns a cycle. A 128 B line: 1 ns on the L2 read port, 2 ns of fabric, 4 of Infinity Cache, 8 of HBM.
# A 64 B write request: 1 ns of L2 write port, and written back 1 ns of fabric, 2 of Infinity Cache, 4 of HBM.
# The trip: 10 ns from the L2, 100 from the Infinity Cache, 1000 from HBM.


def hand_gpu(*, xcds=1, cus=1, l2=(1, 16), mall=None):
    machine = small_gpu(xcds=xcds, cus=cus, l2=l2, mall=mall)
    l2_cache = dataclasses.replace(machine.l2, read_bytes_per_cycle=128, latency_ns=10.0)
    return dataclasses.replace(
        machine,
        clock_mhz=1000.0,
        sustained_clock_mhz=1000.0,
        fabric_bytes_per_cycle=64,
        l2=l2_cache,
        mall=machine.mall and dataclasses.replace(machine.mall, bandwidth_gbps=32.0, latency_ns=100.0),
        hbm=dataclasses.replace(machine.hbm, bandwidth_gbps=16.0, peak_bandwidth_gbps=16.0, latency_ns=1000.0),
    )


def hand(build, machine, *, occupancy=1, compute_ns=0, in_flight=1, bin_ns=1000):
    trace = build.trace()
    pace = {"in_flight": in_flight, "compute_fs": compute_ns * NS}
    return timed((trace, np.arange(trace.n_workgroups), machine, occupancy), pace, bin_fs=bin_ns * NS)


def row_reader(lines):
    """One workgroup that reads the given spans (first line, lines) of one row, one instruction each."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=64 * 16, item_bytes=2)
    for first, n in lines:
        build.step(build.read(x, row=0, col=64 * first, rows=1, cols=64 * n))
    return build


# A miss of n lines alone takes n + 2n + 8n + 1000 ns, a hit n + 10.
@pytest.mark.parametrize(
    ("lines", "in_flight", "ns"),
    [
        ([(0, 1)], 1, 1011),
        ([(0, 1), (0, 1)], 1, 1011 + 11),
        ([(0, 2), (2, 2), (0, 4)], 1, 1022 + 1022 + 14),
        ([(0, 1), (1, 1)], 2, 8 + 1011),  # side by side: the second waits for HBM only
        ([(0, 1), (0, 1)], 2, 1011),  # the second hits a line that is still on its way
        ([(0, 1), (1, 1), (2, 1)], 2, 1011 + 1011),  # the third issues when the first is done
        ([(0, 1), (1, 1), (2, 1)], 3, 8 + 8 + 1011),
        ([(0, 2), (1, 2)], 2, 22 + 8 + 1000),  # half hit on its way, half missed
    ],
)
def test_one_workgroup_by_hand(lines, in_flight, ns):
    assert hand(row_reader(lines), hand_gpu(), in_flight=in_flight).time_fs == ns * NS


@pytest.mark.parametrize(("in_flight", "ns"), [(1, 2 * 1511), (2, 1511 + 500), (4, 1511 + 500)])
def test_compute_follows_its_load_and_the_compute_before(in_flight, ns):
    """Two loads and 500 ns of compute each: one after the other, or the second load under the first's compute."""
    assert hand(row_reader([(0, 1), (1, 1)]), hand_gpu(), in_flight=in_flight, compute_ns=500).time_fs == ns * NS


def test_a_line_that_another_xcd_fetched_comes_from_the_infinity_cache():
    """XCD 0: 1 + 2 + 4 + 8 + 1000. XCD 1: L2 and fabric at the same time, Infinity Cache at 7..11, and 100."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=1, cols=64, item_bytes=2)
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))
    got = hand(build, hand_gpu(xcds=2, mall=(1, 4)))
    assert got.time_fs == 1015 * NS
    assert got.per_xcd[:, COLUMNS.index("mall_hits")].tolist() == [0, 1]
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))  # XCD 1 reads again at 111, XCD 0 at 1015: 11 ns
    assert hand(build, hand_gpu(xcds=2, mall=(1, 4))).time_fs == 1026 * NS


def test_a_hit_on_a_line_on_its_way_waits_for_it():
    """Workgroup 0 fetches line 0 (1011); workgroup 1, on the other CU, hits it and fetches line 1 only then."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=1, cols=128, item_bytes=2)
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))
    build.step(build.read(x, row=0, col=64 * np.arange(2), rows=1, cols=64))
    assert hand(build, hand_gpu(cus=2)).time_fs == (1011 + 1 + 1011) * NS  # behind workgroup 0's second read, 1 ns


def test_a_store_is_not_waited_for_and_its_line_is_there_to_read():
    """A store of two requests takes 2 ns, the load after it hits: 1 + 10."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=64, item_bytes=2)
    build.step(build.write(x, row=0, col=0, rows=1, cols=64))
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))
    got = hand(build, hand_gpu())
    assert got.time_fs == 13 * NS
    assert got.per_xcd.tolist() == [[2, 1, 2, 0, 1, 2, 0, 0, 0, 0]]


def test_two_workgroups_share_a_cu_or_do_not():
    """Both load at once (1011, 1019); with 500 ns of compute on one CU the second waits for the first's."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=2, cols=64, item_bytes=2)
    build.step(build.read(x, row=np.arange(2), col=0, rows=1, cols=64))
    assert hand(build, hand_gpu(cus=1), occupancy=2, compute_ns=500).time_fs == (1011 + 500 + 500) * NS
    assert hand(build, hand_gpu(cus=2), occupancy=1, compute_ns=500).time_fs == (1019 + 500) * NS


def test_ten_workgroups_by_hand():
    """Each reads the shared line S, then writes a line of its own; 5 ns of compute each; two slots on the CU of an XCD.

    The L2 holds two lines. Even workgroups are on XCD 0, odd ones on XCD 1. All in ns; "2 hbm" is two pieces written
    back, that is 2 of fabric and 8 of HBM.

        t     wg          L2 port     leaves  fabric      HBM         arrives  done
        0     0 read S    0..1                1..3        3..11       1011     1016
        0     1 read S    0..1                1..3        11..19      1019     1024
        0     2 read S    1..2                                        1011     1021  hits the line on its way
        0     3 read S    1..2                                        1019     1029
        1016  0 write     1016..1018                                  1018     1026  the CU is taken until 1021
        1021  2 write     1021..1023  S                               1023     1031
        1024  1 write     1024..1026                                  1026     1034
        1026  4 read S    1026..1027  own 0   1027..1031  1031..1047  2047     2052  a line in, two pieces out
        1029  3 write     1029..1031  S                               1031     1039
        1031  6 read S    1031..1032                                  2047     2057
        1034  5 read S    1034..1035  own 1   1035..1039  1047..1063  2063     2068
        1039  7 read S    1039..1040                                  2063     2073
        2052  4 write     2052..2054  own 2   2054..2056  2056..2064  2054     2062
        2057  6 write     2057..2059  S                               2059     2067
        2062  8 read S    2062..2063  own 4   2063..2067  2067..2083  3083     3088
        2068  5 write     2068..2070  own 3   2070..2072  2083..2091  2070     2078
        2073  7 write     2073..2075  S                               2075     2083
        2078  9 read S    2078..2079  own 5   2079..2083  2091..2107  3107     3112
        3088  8 write     3088..3090  own 6   3090..3092  3092..3100  3090     3095
        3112  9 write     3112..3114  own 7   3114..3116  3116..3124  3114     3119  HBM's 3124 is not waited for
    """
    build = TraceBuilder(n_workgroups=10, line_bytes=128)
    shared = build.array("shared", rows=1, cols=64, item_bytes=2)
    own = build.array("own", rows=10, cols=64, item_bytes=2)
    build.step(build.read(shared, row=0, col=0, rows=1, cols=64))
    build.step(build.write(own, row=np.arange(10), col=0, rows=1, cols=64))
    got = hand(build, hand_gpu(xcds=2, l2=(1, 2)), occupancy=2, compute_ns=5)
    assert got.time_fs == 3119 * NS
    assert got.bin_fs == 1000 * NS
    assert got.per_xcd.tolist() == [[10, 5, 10, 3, 5, 10, 0, 0, 0, 0]] * 2
    assert got.timeline[:, :, INSTRUCTIONS].tolist() == [[2, 2], [4, 4], [3, 3], [1, 1]]
    assert got.timeline[:, :, READ_MISSES].tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]
    assert got.timeline[:, :, WRITEBACKS].tolist() == [[0, 0], [2, 2], [4, 4], [4, 4]]  # two flushed at the end


def test_seeds_drift_apart_and_jitter_needs_one():
    trace = gemm_trace(128, 128, 256, 16, 16, 32)
    case = (trace, np.arange(trace.n_workgroups), small_gpu(xcds=2, cus=4, l2=(16, 4)), 2)
    pace = {"in_flight": 2, "compute_fs": 50 * NS}
    times = {timed(case, pace | {"jitter_fs": 300 * NS, "seed": seed}).time_fs for seed in range(5)}
    assert len(times) == 5
    assert len({timed(case, pace | {"seed": seed}).time_fs for seed in range(5)}) == 1


def test_the_random_cases_do_drift():
    """Guards the comparison: cases in which workgroups never overtake each other would prove little."""
    differs = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(case=rated_cases(), pace=paces)
    def collect(case, pace):
        trace, order, machine, occupancy = case
        lockstep = replay(prepare(trace, machine), order, workgroups_per_cu=occupancy)
        differs.append(timed(case, pace).per_xcd.tolist() != lockstep.per_xcd.tolist())

    collect()
    assert sum(differs) >= len(differs) / 5


PLAN = prepare(gemm_trace(64, 64, 64, 16, 16, 16), small_gpu())


@pytest.mark.parametrize(
    "wrong",
    [{"in_flight": 0}, {"in_flight": 1025}, {"compute_fs": -1}, {"jitter_fs": -1}, {"seed": -1}, {"seed": 2**63}],
)
def test_a_pace_that_cannot_be_is_refused(wrong):
    pace = Pace(**({"in_flight": 1, "compute_fs": 0} | wrong))
    with pytest.raises(ReplayError, match=next(iter(wrong))):
        replay_timed(PLAN, np.arange(16), workgroups_per_cu=1, pace=pace)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"order": np.zeros(16, int)}, "twice"),
        ({"order": np.arange(15)}, "16 workgroups"),
        ({"workgroups_per_cu": 0}, "workgroups_per_cu = 0"),
        ({"bin_fs": 0}, "bin_fs = 0"),
    ],
)
def test_a_wrong_order_occupancy_or_bin_is_refused(wrong, says):
    right = {"order": np.arange(16), "workgroups_per_cu": 1, "pace": Pace(in_flight=1, compute_fs=0)}
    with pytest.raises(ReplayError, match=says):
        replay_timed(PLAN, **(right | wrong))


def test_times_that_could_leave_64_bits_are_refused():
    workload = gemm(M=8192, N=8192, K=8192)
    plan = prepare(workload.build_trace(128), gpu("mi300x"))
    with pytest.raises(ReplayError, match="64 bits"):
        replay_timed(plan, np.arange(1024), workgroups_per_cu=1, pace=Pace(4, 2**50))
