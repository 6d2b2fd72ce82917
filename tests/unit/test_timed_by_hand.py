"""Does the timed replay give the times and counts that one works out by hand?"""

import dataclasses

import numpy as np
import pytest

from tests.machines import small_gpu
from xcd_model import IssueModel, TraceBuilder, prepare, replay_timed
from xcd_model.replay.traffic import COLUMNS, INSTRUCTIONS, READ_MISSES, WRITEBACKS

NS = 10**6  # femtoseconds

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


def hand(
    build, machine, *, occupancy=1, compute_ns=0, in_flight=1, step=0, remap_ns=0, remap_wait_ns=0, step_ns=0,
    after_products=False, bin_ns=1000,
):  # fmt: skip
    trace = build.trace()
    return replay_timed(
        prepare(trace, machine),
        np.arange(trace.n_workgroups),
        workgroups_per_cu=occupancy,
        issue=IssueModel(
            in_flight,
            compute_ns * NS,
            step=step,
            remap_fs=remap_ns * NS,
            remap_wait_fs=remap_wait_ns * NS,
            step_fs=step_ns * NS,
            after_products=after_products,
        ),
        bin_fs=bin_ns * NS,
    )


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


@pytest.mark.parametrize(
    ("in_flight", "step", "ns"),
    [
        (4, 0, 1011 + 8 + 1011),  # four at once, then one when the first is there and one when the second is
        (4, 2, 2 * (8 + 1011) + 1019),  # a step of two when the step before has come
        (6, 2, 1011 + 8 + 1011 + 8),  # two steps ahead: the third waits for the first
        (3, 1, 3 * 1011 + 8),  # two at once, 8 ns apart, and each time one when the one before the last is there
    ],
)
def test_a_step_waits_for_the_data_of_the_steps_before(in_flight, step, ns):
    build = row_reader([(k, 1) for k in range(6)])
    found = hand(build, hand_gpu(), in_flight=in_flight, step=step).time_fs
    assert found == ns * NS


def with_limits(**limits):
    machine = hand_gpu()
    return dataclasses.replace(machine, limits=dataclasses.replace(machine.limits, **limits))


def test_copies_of_a_step_take_their_time_besides():
    """Two steps of one load, 1011 + 25 ns each; without steps nothing is copied."""
    build, machine = row_reader([(0, 1), (1, 1)]), with_limits(copy_ns=25.0)
    assert hand(build, machine, in_flight=2, step=1).time_fs == 2 * 1036 * NS
    assert hand(build, machine, in_flight=2).time_fs == (1011 + 8) * NS


@pytest.mark.parametrize(
    ("after_products", "in_flight", "step_ns", "ns"),
    [
        (True, 2, 0, 2 * (1019 + 100)),  # a step's second load is 8 ns behind its first: both are there, and 2 * 50 ns
        (False, 4, 0, 2 * 1019 + 100),  # the second step's loads go out when the first one's data is there
        (False, 4, 30, 30 + 1019 + 30 + 1019 + 100 - 30),  # 30 ns later each, but for the first
        (True, 2, 30, 2 * (1019 + 100) + 30),
    ],
)
def test_a_step_computes_when_all_of_it_is_there_and_its_loads_may_wait_for_that(
    after_products, in_flight, step_ns, ns
):
    build = row_reader([(k, 1) for k in range(4)])
    pace = {"compute_ns": 50, "in_flight": in_flight, "step": 2, "step_ns": step_ns, "after_products": after_products}
    assert hand(build, hand_gpu(), **pace).time_fs == ns * NS


@pytest.mark.parametrize(
    ("occupancy", "waits", "ns"),
    [(1, 0, 2 * (25 + 1011)), (2, 0, 2 * 25 + 1011), (1, 60, 2 * (60 + 1011)), (2, 30, 50 + 1011)],
)
def test_a_cu_remaps_one_workgroup_after_the_other(occupancy, waits, ns):
    """Two workgroups that read a line each, one after the other or the second remapped while the first one waits.

    None begins before its own remap is through, which takes a wave as long as it waits for itself.
    """
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=2, cols=64, item_bytes=2)
    build.step(build.read(x, row=np.arange(2), col=0, rows=1, cols=64))
    found = hand(build, hand_gpu(), occupancy=occupancy, remap_ns=25, remap_wait_ns=waits)
    assert found.time_fs == ns * NS


def test_a_cu_takes_in_so_many_bytes_a_clock():
    """The first load of four lines misses and the second hits: 512 B each at 2 B a clock of 1 ns, then the latency."""
    build = row_reader([(0, 4), (0, 4)])
    assert hand(build, with_limits(fill_bytes_per_cycle=2.0)).time_fs == (256 + 1000 + 256 + 10) * NS
    assert hand(build, with_limits(fill_bytes_per_cycle=128.0)).time_fs == (1044 + 4 + 10) * NS


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


def test_a_cu_does_not_wait_for_a_load_while_another_workgroup_can_compute():
    """0 computes at 1011, 1 at 1511. Then 0 fetches a line (1511 + 1011); 1 hits one (2011 + 11) and goes first."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=1, cols=64 * 3, item_bytes=2)
    build.step(build.read(x, row=0, col=64 * np.arange(2), rows=1, cols=64))
    build.step(build.read(x, row=0, col=np.array([128, 0]), rows=1, cols=64))
    assert hand(build, hand_gpu(cus=1), occupancy=2, compute_ns=500).time_fs == (2022 + 500 + 500) * NS


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
        3112  9 write     3112..3114  own 7   3114..3116  3116..3124  3114     3119  written in HBM by 3124, the end
    """
    build = TraceBuilder(n_workgroups=10, line_bytes=128)
    shared = build.array("shared", rows=1, cols=64, item_bytes=2)
    own = build.array("own", rows=10, cols=64, item_bytes=2)
    build.step(build.read(shared, row=0, col=0, rows=1, cols=64))
    build.step(build.write(own, row=np.arange(10), col=0, rows=1, cols=64))
    got = hand(build, hand_gpu(xcds=2, l2=(1, 2)), occupancy=2, compute_ns=5)
    assert got.time_fs == 3124 * NS
    assert got.bin_fs == 1000 * NS
    assert got.per_xcd.tolist() == [[10, 5, 10, 3, 5, 10, 0, 0, 0, 0]] * 2
    assert got.timeline[:, :, INSTRUCTIONS].tolist() == [[2, 2], [4, 4], [3, 3], [1, 1]]
    assert got.timeline[:, :, READ_MISSES].tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]
    assert got.timeline[:, :, WRITEBACKS].tolist() == [[0, 0], [2, 2], [4, 4], [4, 4]]  # two flushed at the end
