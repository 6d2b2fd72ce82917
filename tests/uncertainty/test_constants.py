"""Has every assumed constant a range with a reason, and can every value in it be replayed?"""

import dataclasses

import numpy as np
import pytest

from swizzle_sim.uncertainty.constants import (
    NO_RANGE,
    Constant,
    constants_of,
    held_facts,
    latin_hypercube,
    latin_hypercube_settings,
    one_at_a_time,
)
from swizzle_sim.uncertainty.perturbed_scorer import low_bit_rows, perturbed_gpu, random_rows
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu, gpu_names
from xcd_model.spec.facts import Fact

SMALL = dataclasses.replace(kernel("gemm").resources, threads=256, vgprs=100, lds_bytes=20_000)


@pytest.mark.parametrize("name", gpu_names())
def test_nothing_assumed_is_silently_exact(name):
    """A new constant without a range fails here: give it one in ranges.toml, or the reason why it has none."""
    device = gpu(name)
    held = held_facts(device)
    assert [key for key, why in held.items() if why == NO_RANGE] == []
    varied = {one.key for one in constants_of(device, SMALL)}
    for key, fact in device.facts.items():
        if fact.status != "documented" and key not in held:
            assert key in varied or device.facts[key].value == 0, key


@pytest.mark.parametrize("name", gpu_names())
def test_every_range_holds_the_value_in_use_and_can_be_replayed(name):
    device = gpu(name)
    for constant in constants_of(device, SMALL):
        assert constant.reason
        if constant.low is not None:
            assert constant.low <= constant.value <= constant.high, constant
        else:
            assert constant.choices and constant.value not in constant.choices
        for end in constant.ends():
            other = perturbed_gpu(device, {constant.key: end})
            if constant.status != "run":
                assert other != device, constant
                assert other.l2.sets == device.l2.sets and other.l2.line_bytes == device.l2.line_bytes


def test_the_status_of_a_fact_decides_its_range():
    device = gpu("mi300x")
    facts = dict(device.facts)
    facts["hbm.latency_ns"] = Fact(value=347.0, status="assumed", source="a guess")
    facts["l2.index"] = Fact(value="channel-fold", status="documented", source="a manual")
    told = dataclasses.replace(device, facts=facts)
    before, after = ({one.key: one for one in constants_of(each, SMALL)} for each in (device, told))
    assert after["hbm.latency_ns"].high > before["hbm.latency_ns"].high
    assert "l2.index" in before and "l2.index" not in after


def test_a_fact_of_a_new_key_is_named_as_taken_exactly():
    device = gpu("mi300x")
    facts = {**device.facts, "l2.queue_depth": Fact(value=3, status="assumed", source="a guess")}
    assert held_facts(dataclasses.replace(device, facts=facts))["l2.queue_depth"] == NO_RANGE


def test_occupancy_varies_with_registers_only_where_that_changes_it():
    """512 registers a SIMD: 4 waves of 100 (104) fit 4 times, of 85 (88) 5 times, of 115 (120) 4 times."""
    found = {one.key: one for one in constants_of(gpu("mi300x"), dataclasses.replace(SMALL, lds_bytes=0))}
    assert (found["workgroups_per_cu"].value, found["workgroups_per_cu"].choices) == (4, (5,))
    once = dataclasses.replace(SMALL, lds_bytes=0, vgprs=400)  # 340 to 460 fit once as well
    assert "workgroups_per_cu" not in {one.key for one in constants_of(gpu("mi300x"), once)}


def test_the_matrix_rate_and_the_clock_move_what_belongs_to_them():
    device = gpu("mi300x")
    assert perturbed_gpu(device, {"peak_tflops": 0.5}).peak_tflops["fp16"] == device.peak_tflops["fp16"] / 2
    slow = perturbed_gpu(device, {"clock_mhz": 1365.0})
    assert (slow.clock_mhz, slow.sustained_clock_mhz) == (1365.0, 1365.0)
    assert slow.peak_tflops["fp16"] == pytest.approx(0.65 * device.peak_tflops["fp16"])
    assert perturbed_gpu(device, {}) == device
    small = perturbed_gpu(device, {"l2.ways": 12})
    assert small.l2.size_bytes == device.l2.size_bytes * 12 // 16


def test_drawn_hashes_and_those_of_low_bits_differ_by_seed_and_lose_no_line():
    cache = gpu("mi300x").l2
    for draw in (random_rows, low_bit_rows):
        assert draw(cache, 1) == draw(cache, 1) != draw(cache, 2)
    assert [row // cache.line_bytes % cache.sets for row in random_rows(cache, 1)] == [1 << bit for bit in range(11)]
    rows = low_bit_rows(cache, 1)
    assert rows[:4] == (1 << 8, 1 << 9, 1 << 10, 1 << 11 | 1 << 13) and len(rows) == 11
    other = perturbed_gpu(gpu("mi300x"), {"l2.index": "low-bits 1"}).l2  # the cache refuses rows that lose a line
    assert (other.index, other.index_rows) == ("xor", rows)


def test_the_hypercube_takes_every_part_of_every_range_once():
    points = latin_hypercube(9, 5, seed=3)
    assert points.shape == (9, 5) and points.min() >= 0 and points.max() < 1
    assert (np.sort((points * 9).astype(int), axis=0) == np.arange(9)[:, None]).all()
    assert np.array_equal(points, latin_hypercube(9, 5, seed=3))
    assert not np.array_equal(points, latin_hypercube(9, 5, seed=4))


def test_draws_cover_both_ends_and_every_choice():
    width = Constant(key="a", status="assumed", value=10.0, low=5.0, high=15.0, reason="-")
    ways = Constant(key="b", status="assumed", value=16, low=12.0, high=16.0, reason="-")
    index = Constant(key="c", status="assumed", value="x", choices=("y", "z"), reason="-")
    every = [width, ways, index]
    assert list(one_at_a_time(every)) == [
        ("a", {"a": 5.0}),
        ("a", {"a": 15.0}),
        ("b", {"b": 12}),
        ("c", {"c": "y"}),
        ("c", {"c": "z"}),
    ]
    drawn = latin_hypercube_settings(every, 12, seed=0)
    assert all(5 <= one["a"] < 15 and isinstance(one["b"], int) and 12 <= one["b"] <= 16 for one in drawn)
    assert [sum(one["c"] == choice for one in drawn) for choice in "xyz"] == [4, 4, 4]
    assert drawn == latin_hypercube_settings(every, 12, seed=0) != latin_hypercube_settings(every, 12, seed=1)
