"""Are the maps of AMD's libraries exact, the halves apart, and the scores what they say?"""

import math
from dataclasses import replace

import numpy as np
import pytest

from swizzle_benchmarks.validation.amd import maps, replays, scores, tables, workloads
from swizzle_sim.language import Grid, Swizzle, family
from xcd_model import gpu

GRIDS = ((7, 5), (16, 12), (33, 24), (40, 19), (1, 13))
WGM_16_BACKWARDS = """
w0 = pid % num_pid_n
w1 = pid // num_pid_n
block = w0 // 16
serial = w1 + (w0 - block * 16) * num_pid_m
height = min(16, num_pid_n - block * 16)
pid_m = serial // height
pid_n = block * 16 + serial % height
"""


@pytest.mark.parametrize(
    "order", [maps.Tensile(*one) for one in ((1,), (5,), (-3,), (4, 8, -1), (8, 8, 0), (1, 4, 32))]
)
@pytest.mark.parametrize("grid", GRIDS)
def test_every_order_of_tensile_is_a_bijection(order, grid):
    assert sorted(maps.tensile(order, *grid)) == list(range(grid[0] * grid[1]))


@pytest.mark.parametrize(("n0", "n1"), GRIDS)
def test_orders_of_tensile_are_those_of_the_language(n0, n1):
    grid = Grid((n0 * n1,), (n1, n0))
    for size in (2, 4, 16):
        ours = Swizzle.parse(family(f"group_m(size={size})")).permutation(grid, 8)
        assert np.array_equal(maps.tensile(maps.Tensile(size), n0, n1), ours)
    ours = Swizzle.parse(WGM_16_BACKWARDS).permutation(grid, 8)
    assert np.array_equal(maps.tensile(maps.Tensile(-16), n0, n1), ours)


def test_a_remap_in_whole_rounds_is_contiguous():
    grid = Grid((384,), (16, 24))
    ours = Swizzle.parse(family("contiguous+group_m(size=4)")).permutation(grid, 8)
    assert np.array_equal(maps.tensile(maps.Tensile(4, 8, 0), 24, 16), ours)


@pytest.mark.parametrize("group", [0, 4])
@pytest.mark.parametrize(("m", "n"), GRIDS)
def test_the_order_of_flydsl_is_a_bijection(group, m, n):
    assert sorted(maps.flydsl(group, m, n)) == list(range(m * n))


def test_no_size_is_in_both_halves():
    of = {}
    for one in tables.tuned():
        of.setdefault((one.gemm.types, one.gemm.size), set()).add(one.gemm.chooses)
    assert all(len(halves) == 1 for halves in of.values())
    assert 0.4 < np.mean([one.gemm.chooses for one in tables.tuned()]) < 0.6


def test_kernels_of_a_time_stagger_by_the_other_dimension():
    line = next(one for one in tables.tuned_lines() if one["stagger_u"] != "0")
    for date, mapping, found in (
        ("2023-12-16", 0, 0),
        ("2023-12-17", 0, 1),
        ("2024-10-24", 1, 0),
        ("2026-02-05", 1, 1),
    ):
        gemm = tables.gemm_of(line | {"commit_date": date, "stagger_mapping": str(mapping)})
        assert gemm.stagger_mapping == found


def test_the_adaptive_split_is_that_of_the_source():
    assert (workloads.local_tiles(8192), workloads.local_tiles(12288)) == (1024, 8 * 236)


def test_the_lockstep_replay_has_the_counted_rate_of_the_persistent_gemm():
    """Counted 79.5 %; what the timed replay has is in the page."""
    item = next(one for one in replays.sweep_items() if one.name == "8192")
    line = next(one for one in replays.replayed(item, gpu("mi300x")) if one["order"] == "8")
    assert line["lockstep_hit_pct"] == pytest.approx(79.5, abs=2)
    kept = scores.replayed()["sweep", "8192", "8"]
    assert {name: float(kept[name]) for name in ("timed_hit_pct", "timed_us")} == pytest.approx(
        {name: line[name] for name in ("timed_hit_pct", "timed_us")}
    )


def test_ties_are_half_and_one_permutation_is_no_pair():
    orders = [(0.0, 1.0, "a"), (0.1, 1.0, "b"), (0.2, 0.5, "b"), (0.3, 2.0, "c")]
    found = scores.pairs({"x": orders, "y": orders}, apart=0.05)
    assert (found.right, found.counted) == (2 * (0.5 + 0 + 1 + 1 + 1), 10)
    assert scores.regret({"x": orders}) == pytest.approx(math.expm1(0.2))


def test_an_auc_is_of_pairs_by_weight():
    up, weight = scores.auc(np.array([1.0, 3.0]), np.array([1.0, 2.0]), np.array([1, 1]), np.array([2, 0]))
    assert (up, weight) == (1 + 2, 4)


def test_a_statistic_of_rows_that_are_alike_has_no_interval():
    one = scores.bootstrapped(["a", "a", "b"], lambda weight: float(weight.sum() > 0))
    assert (one.value, one.low, one.high, one.rows) == (1.0, 1.0, 1.0, 3)


def test_two_tunings_of_a_gemm_agree_where_their_winners_do():
    rows = [row for row in scores.tuned_rows(scores.replayed()) if row.one.gemm.chooses]
    first = next(row for row in rows if len(row.lines) == 2)
    same = replace(first, one=replace(first.one, file="another"))
    other = replace(same, winner=next(one for one in first.lines if one != first.winner))
    assert scores.tuned_twice([first, same])[0].value == 1
    found, chance = scores.tuned_twice([first, other])
    assert (found.value, found.rows, chance) == (0, 1, 0.5)
    assert scores.tuned_twice([first, first])[0].rows == 0  # of one file
