"""Does energy follow the counts, and does its range hold?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcd_model import Energy, Time, Traffic, energy, gpu, limited_by_power
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
