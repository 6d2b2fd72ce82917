"""Does energy follow the counts, and does its range hold?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import small_gpu
from xcd_model import Energy, IssueModel, Time, Traffic, compute_fs, energy, gpu, limited_by_power, roofline
from xcd_model.errors import ReplayError, SpecError
from xcd_model.replay.traffic import (
    COLUMNS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_REQUESTS,
    WRITEBACKS,
)
from xcd_model.spec.facts import Range
from xcd_model.spec.gpu import EnergyRates

MI300X = gpu("mi300x")
COUNTED = (READ_REQUESTS, WRITE_REQUESTS, READ_MISSES, WRITEBACKS, MALL_REQUESTS)


def traffic(counts):
    timeline = np.array(counts, np.int64).reshape(1, -1, len(COLUMNS))
    return Traffic(timeline=timeline, turns_per_bin=1, turns=1, fetch_bytes=128, write_request_bytes=64)


def spend(counts, machine=MI300X, flops=0.0, time_us=0.0) -> Energy:
    return energy(traffic(counts), machine, flops=flops, dtype="fp16", time_us=time_us)


def one(column, n=1):
    return [n if c == column else 0 for c in range(len(COLUMNS))]


@st.composite
def replayed(draw):
    """Counts of two XCDs that a replay could give: no more fills than misses, no more hits than fills."""
    rows = []
    for _ in range(2):
        row = draw(st.lists(st.integers(0, 10**9), min_size=len(COLUMNS), max_size=len(COLUMNS)))
        row[MALL_REQUESTS] = row[READ_MISSES]
        row[MALL_HITS] = min(row[MALL_HITS], row[MALL_REQUESTS])
        rows.append(row)
    return np.array(rows)


AMOUNTS = st.floats(0, 1e15)


def test_no_traffic_costs_only_static_power():
    got = spend(one(0, 0), time_us=1e6)
    rate = MI300X.energy.static_w
    assert (got.low_joules, got.joules, got.high_joules) == pytest.approx((rate.low, rate.value, rate.high))
    assert got.parts == pytest.approx(
        dict.fromkeys(("compute", "l2", "fabric", "mall", "hbm"), 0) | {"static": got.joules}
    )
    assert spend(one(0, 0)).high_joules == 0


def test_each_part_is_bytes_times_rate():
    rates = MI300X.energy
    counts = [0, 1000, 100, 50, 100, 200, 50, 20, 0, 0]
    got = spend(counts, flops=1e6, time_us=3.0).parts
    written = 200 * 64
    assert got == pytest.approx(
        {
            "compute": 1e6 * rates.flop_pj["fp16"].value * 1e-12,
            "l2": (1000 * 128 + 100 * 64) * rates.l2_pj_per_byte.value * 1e-12,
            "fabric": (50 * 128 + written) * rates.fabric_pj_per_byte.value * 1e-12,
            "mall": (50 * 128 + written) * rates.mall_pj_per_byte.value * 1e-12,
            "hbm": (30 * 128 + written) * rates.hbm_pj_per_byte.value * 1e-12,
            "static": 3e-6 * rates.static_w.value,
        }
    )


@given(counts=replayed(), flops=AMOUNTS, time_us=AMOUNTS)
def test_the_range_holds_the_middle_and_the_parts_sum_to_it(counts, flops, time_us):
    got = spend(counts, flops=flops, time_us=time_us)
    assert 0 <= got.low_joules <= got.joules <= got.high_joules
    assert sum(got.parts.values()) == pytest.approx(got.joules)


@given(counts=replayed(), column=st.sampled_from(COUNTED), more=st.integers(1, 10**9), xcd=st.integers(0, 1))
def test_energy_rises_with_each_count(counts, column, more, xcd):
    before, after = counts.copy(), counts.copy()
    after[xcd, column] += more
    assert_rises(spend(before), spend(after))


@given(counts=replayed())
def test_a_hit_in_the_infinity_cache_saves_energy(counts):
    without = counts.copy()
    without[:, MALL_HITS] = 0
    assert spend(counts).joules <= spend(without).joules


@given(counts=replayed(), flops=AMOUNTS, time_us=AMOUNTS, more=st.floats(0, 1e15))
def test_energy_rises_with_operations_and_time(counts, flops, time_us, more):
    base = spend(counts, flops=flops, time_us=time_us)
    assert_rises(base, spend(counts, flops=flops + more, time_us=time_us))
    assert_rises(base, spend(counts, flops=flops, time_us=time_us + more))


def assert_rises(before, after):
    assert before.low_joules <= after.low_joules
    assert before.joules <= after.joules
    assert before.high_joules <= after.high_joules


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "fp4"}, "mi300x has no energy rate for fp4; it has bf16"),
        ({"flops": -1.0}, "flops = -1.0 must be a finite number"),
        ({"time_us": float("nan")}, "time_us = nan must be a finite number"),
        ({"gpu": dataclasses.replace(MI300X, energy=None)}, r"has no energy rates; add a table \[energy\]"),
    ],
)
def test_bad_input_is_refused(change, message):
    call = {"gpu": MI300X, "flops": 1.0, "dtype": "fp16", "time_us": 1.0} | change
    with pytest.raises(ReplayError, match=message):
        energy(traffic(one(0)), **call)


def test_a_range_is_in_order():
    assert Range(low=1.0, value=2.0, high=3.0).scaled(2) == Range(low=2.0, value=4.0, high=6.0)
    for bad in ((2.0, 1.0, 3.0), (1.0, 4.0, 3.0), (0, 1.0, 2.0), (1.0, 2.0, float("inf"))):
        with pytest.raises(SpecError):
            Range(low=bad[0], value=bad[1], high=bad[2])


def capped(**change):
    """An MI300X of easy rates: 1 W drawn in any case, 11 W at most, 1000 pJ for whatever is done."""
    thousand, one_watt = Range(low=1e3, value=1e3, high=1e3), Range(low=1.0, value=1.0, high=1.0)
    rates = {"l2_pj_per_byte": thousand, "hbm_pj_per_byte": thousand, "static_w": one_watt}
    rates |= {"power_w": Range(low=9.0, value=11.0, high=12.0), "flop_pj": {"fp16": thousand}} | change
    return dataclasses.replace(MI300X, clock_mhz=2000.0, sustained_clock_mhz=1500.0, energy=EnergyRates(**rates))


def limited(total_us, compute_us, *, flops=0.0, counts=None, machine=None, dtype="fp16"):
    time = Time(total_us, {"compute": compute_us, "l2": 1.0})
    return limited_by_power(time, traffic(counts or one(0, 0)), machine or capped(), flops=flops, dtype=dtype)


def test_power_by_hand():
    """10 W for what is done: 1e5 operations of 1000 pJ are 100 uJ, 10 us."""
    got = limited(5.0, 1.0, flops=1e5)
    assert (got.total_us, got.by_resource_us["power"], got.limiter) == (10.0, 10.0, "power")
    read = limited(5.0, 1.0, counts=one(READ_REQUESTS, 1000))  # 128 B each, at the L2
    assert read.total_us == pytest.approx(12.8)
    filled = limited(5.0, 1.0, counts=one(READ_MISSES, 1000))  # at the HBM
    assert filled.total_us == pytest.approx(12.8)


def test_with_power_left_the_time_is_the_replays():
    got = limited(10.0, 8.0)
    assert (got.total_us, got.by_resource_us["compute"], got.by_resource_us["power"]) == (10.0, 8.0, 0.0)
    # where no limit is stated there is none
    assert limited(5.0, 4.0, flops=1e9, machine=gpu("mi300a")) == Time(5.0, {"compute": 4.0, "l2": 1.0})
    assert "power" not in limited(5.0, 4.0, flops=1e9, dtype="fp64").by_resource_us
    with pytest.raises(SpecError, match=r"power_w.low = 1.0 must be more than static_w.high = 1.0"):
        capped(power_w=Range(low=1.0, value=11.0, high=12.0))


@given(total=st.floats(1, 1e6), share=st.floats(0, 1), flops=AMOUNTS)
def test_power_never_makes_a_time_shorter_than_its_energy_or_its_memory(total, share, flops):
    got = limited(total, share * total, flops=flops)
    assert got.total_us >= got.by_resource_us["power"]
    assert got.total_us >= total
    assert limited(total, share * total, flops=2 * flops).total_us >= got.total_us


def test_a_gpu_without_fabric_and_infinity_cache_spends_nothing_there():
    got = energy(traffic(one(READ_MISSES, 10)), gpu("h200"), flops=0.0, dtype="fp16", time_us=1.0)
    assert set(got.parts) == {"compute", "l2", "hbm", "static"}
    counts = [0, 10, 0, 10, 0, 10, 0, 0, 0, 0]
    assert spend(counts, dataclasses.replace(MI300X, mall=None)).parts["mall"] == 0
    assert got.low_joules < got.joules < got.high_joules


# ---- Is the roofline the formula one gets by hand?
GPU = dataclasses.replace(
    small_gpu(xcds=2, cus=4),
    clock_mhz=1000.0,
    sustained_clock_mhz=1000.0,
    fabric_bytes_per_cycle=64,
    peak_tflops={"fp16": 8.0},
)
# 8 TFLOPS over 8 CUs: 1e6 flop a microsecond a CU; L2 2048 B/cycle; fabric 64 B/cycle; MALL 11 900, HBM 4100 GB/s
LATENCY_US = 2 * GPU.hbm.latency_ns / 1e3


def windows(*bins, turns_per_bin=1):
    """Traffic of bins; each bin is a list of an XCD's counts by name."""
    table = [[[xcd.get(name, 0) for name in COLUMNS] for xcd in bin_] for bin_ in bins]
    return Traffic(np.array(table, np.int64), turns_per_bin, len(bins) * turns_per_bin, 128, 64)


def time(t, machine=GPU, flops=1e6, window=1):
    return roofline(t, machine, IssueModel(window, compute_fs(machine, flops_per_instruction=flops, dtype="fp16")))


def test_compute_bound():
    """Three turns of 4 CUs with 1e6 flop each: 1 us a turn; the other XCD idles along."""
    got = time(windows(*[[{"instructions": 4}, {"instructions": 2}]] * 3))
    assert got.limiter == "compute"
    assert got.by_resource_us["compute"] == pytest.approx(3)
    assert got.total_us == pytest.approx(3 + LATENCY_US)
    assert got.latency_us == LATENCY_US


# 4 SIMDs of 25 lanes at 1 GHz: 1e5 lane instructions a microsecond a CU
VECTOR_GPU = dataclasses.replace(GPU, limits=dataclasses.replace(GPU.limits, simds_per_cu=4, lanes_per_simd=25))


@pytest.mark.parametrize(
    ("vector_ops", "workgroups", "us"),
    [(0, 1, 1), (5e4, 1, 1.5), (2e5, 1, 3), (0, 2, 1), (5e4, 2, 1), (2e5, 2, 2)],
)
def test_one_workgroup_does_one_after_the_other_and_two_share_the_units(vector_ops, workgroups, us):
    work = {"flops_per_instruction": 1e6, "dtype": "fp16", "vector_ops_per_instruction": vector_ops}
    assert compute_fs(VECTOR_GPU, **work, workgroups_per_cu=workgroups) == us * 1e9
    one = windows([{"instructions": 1}, {}])
    got = roofline(one, VECTOR_GPU, IssueModel(1, compute_fs(VECTOR_GPU, **work, workgroups_per_cu=workgroups)))
    assert got.by_resource_us["compute"] == pytest.approx(us)


@pytest.mark.parametrize("workgroups", [1, 2, 5])
def test_units_that_do_not_work_side_by_side_take_turns_however_many_workgroups_there_are(workgroups):
    takes_turns = dataclasses.replace(
        VECTOR_GPU, limits=dataclasses.replace(VECTOR_GPU.limits, matrix_beside_vector=False)
    )
    work = {"flops_per_instruction": 1e6, "dtype": "fp16", "vector_ops_per_instruction": 5e4}
    assert compute_fs(takes_turns, **work, workgroups_per_cu=workgroups) == 1.5e9
    unknown = dataclasses.replace(GPU, limits=dataclasses.replace(GPU.limits, lanes_per_simd=None))
    assert compute_fs(unknown, **work, workgroups_per_cu=workgroups) == 1e9  # vector work is free there


# fills of 128 B, writes of 64 B; what the Infinity Cache holds is free for the HBM, the busiest XCD bounds the fabric
HELD = {"read_misses": 20000, "mall_requests": 20000}


@pytest.mark.parametrize(
    ("xcds", "change", "limiter", "us"),
    [
        (
            [HELD | {"read_requests": 10000, "mall_hits": 4000, "writebacks": 2000}] * 2,
            *({"fabric_bytes_per_cycle": 4096}, "hbm", (32000 * 128 + 4000 * 64) / 4.1e6),
        ),
        (
            [HELD | {"mall_hits": 20000, "writebacks": 500}] * 2,
            *({"fabric_bytes_per_cycle": 65536}, "mall", (40000 * 128 + 1000 * 64) / 11.9e6),
        ),
        (
            [{"read_misses": 1000, "writebacks": 100}, {"read_misses": 10}],
            *({"mall": None}, "fabric", (1000 * 128 + 100 * 64) / 64e3),
        ),
        ([{"read_requests": 1600, "write_requests": 3200}, {}], {}, "l2", (1600 * 128 + 3200 * 64) / 2048e3),
    ],
)
def test_what_is_busiest_limits(xcds, change, limiter, us):
    got = time(windows(xcds), dataclasses.replace(GPU, **change))
    assert got.limiter == limiter and got.by_resource_us[limiter] == pytest.approx(us)
    assert got.total_us == got.by_resource_us[limiter] + LATENCY_US
    assert "mall" not in change or got.by_resource_us["mall"] == 0


def test_windows_overlap_what_is_in_flight_and_no_more():
    """A turn of compute, a turn of memory: apart they add up, in one window the slower hides the other."""
    compute, memory = [{"instructions": 4}, {}], [{"read_misses": 1000}, {}]
    bare = dataclasses.replace(GPU, mall=None)
    apart, together = (time(windows(compute, memory), bare, window=w) for w in (1, 2))
    assert apart.total_us == pytest.approx(1 + 2 + LATENCY_US)
    assert together.total_us == pytest.approx(2 + LATENCY_US)


BUSY, ONE = [{"instructions": 4}, {}], [{"instructions": 1}, {}]


@pytest.mark.parametrize(
    ("found", "window", "us"),
    [
        (windows(ONE), 1, 1),  # one busy CU is as slow as all of them
        (windows([{"instructions": 8}, {}]), 1, 2),  # two workgroups a CU
        (windows(*[BUSY] * 5), 2, 5),
        (windows(*[[{"instructions": 16}, {}]] * 3, turns_per_bin=4), 2, 12),  # a window is at least a bin
        (dataclasses.replace(windows(BUSY, ONE, turns_per_bin=4), turns=5), 8, 5),  # and the last may be short
        (windows(BUSY, BUSY, *[[{}, {"instructions": 1}]] * 2), 4, 2),  # a turn in which an XCD idles costs it nothing
    ],
)
def test_what_a_window_computes_is_that_of_its_turns(found, window, us):
    assert time(found, window=window).by_resource_us["compute"] == pytest.approx(us)


counts = st.integers(0, 10**6)


@given(
    column=st.sampled_from(COLUMNS[:-1]),  # more Infinity Cache hits make it faster
    base=st.lists(st.tuples(*[counts] * 5), min_size=1, max_size=6),
    more=st.integers(0, 10**6),
    window=st.integers(1, 4),
)
def test_more_of_anything_is_never_faster(column, base, more, window):
    bins = []
    for instructions, requests, misses, held, writebacks in base:
        xcd = {"instructions": instructions, "read_requests": requests, "writebacks": writebacks}
        bins.append([xcd | {"read_misses": misses, "mall_requests": misses, "mall_hits": min(held, misses)}, {}])
    before = time(windows(*bins), window=window)
    bins[0][0] = bins[0][0] | {column: bins[0][0].get(column, 0) + more}
    after = time(windows(*bins), window=window)
    assert after.total_us >= before.total_us * (1 - 1e-12)
    assert sum(after.by_resource_us.values()) + after.latency_us == pytest.approx(after.total_us)


def test_a_dtype_without_a_rate_is_refused():
    with pytest.raises(ReplayError, match="no peak rate for fp32; it has fp16"):
        compute_fs(GPU, flops_per_instruction=1, dtype="fp32")
