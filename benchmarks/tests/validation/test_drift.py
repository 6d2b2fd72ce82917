"""Do the figures of drift mean what they say?"""

import csv

import numpy as np
import pytest

from swizzle_benchmarks.lab.gpc_drift import by_gpc, of_pairs
from swizzle_benchmarks.lab.skew import skew_of
from swizzle_benchmarks.validation.rows import DATA


def times(begin, took, points=33):
    return np.asarray(begin)[:, None] + np.outer(took, np.linspace(0, 1, points)).astype(int)


def test_equal_workgroups_do_not_drift():
    found = skew_of(times([0, 0, 32000, 32000], [32000] * 4), np.array([0, 1, 0, 1]))
    assert (found.workgroups, found.at_once, found.duration_us) == (4, 2, 32.0)
    assert found.spread_pct == found.first_wave_pct == found.of_sms_pct == found.apart_pct == 0


def test_a_slow_sm_is_told_from_a_slow_workgroup():
    by_sm = skew_of(times([0, 0, 32000, 96000], [32000, 96000, 32000, 96000]), np.array([0, 1, 0, 1]))
    assert by_sm.spread_pct == by_sm.of_sms_pct == pytest.approx(50)
    by_turn = skew_of(times([0, 0, 32000, 96000], [32000, 96000, 96000, 32000]), np.array([0, 1, 0, 1]))
    assert by_turn.spread_pct == pytest.approx(50) and by_turn.of_sms_pct == 0 and by_turn.first_wave_pct == 50


def test_two_that_run_half_a_workgroup_apart():
    begin = np.array([0, 0, 16000, 16000])
    found = skew_of(times(begin, [32000] * 4), np.arange(4))
    assert found.at_once == 4 and found.apart_pct == pytest.approx(50, abs=1)


def test_what_an_h200_showed():
    """One workgroup an SM stays in step; of two, one runs half a workgroup ahead."""
    with (DATA / "drift" / "h200.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    alone = [line for line in lines if line["at_once"] == "132"]
    pairs = [line for line in lines if line["at_once"] == "264" and line["workgroups"] != "264"]
    assert (len(lines), len(alone), len(pairs)) == (11, 3, 7)
    assert max(float(line["first_wave_pct"]) for line in alone) < 0.5
    assert max(float(line["apart_pct"]) for line in alone) < 11
    assert min(float(line["apart_pct"]) for line in pairs) > 35


def test_a_slow_gpc_is_told_from_its_sms():
    """By hand: 16 SMs, two of each of eight GPCs, three turns of 1000 ns; those of the last GPC take 90 ns longer."""
    sm = np.repeat(np.arange(16), 4)
    turn = np.where(sm // 2 % 8 == 7, 1090, 1000)
    begin = np.tile(np.arange(4), 16) * turn
    found = by_gpc(np.stack([begin, begin + 1000, sm, 0 * sm], axis=1), 1)
    assert (found["turns"], found["turn_us"]) == (3, 1.0)
    assert found["gpc_7"] == pytest.approx(7.88, abs=0.01) and found["gpc_0"] == pytest.approx(-1.12, abs=0.01)
    assert found["within_pct"] == 0 and found["between_pct"] == found["spread_pct"] == pytest.approx(2.98, abs=0.01)


def test_how_two_workgroups_of_an_sm_stand():
    """By hand: the older of the first two takes 80 ns, the other 100; then each begins half-way of the other."""
    begin = np.array([0, 0, 80, 100, 150, 200, 250, 300])
    end = np.array([80, 100, 150, 200, 250, 300, 350, 400])
    found = of_pairs(np.stack([begin, end, 0 * begin, 0 * begin], axis=1))
    assert found["first_wave_older_over_younger"] == 0.8
    assert [found[f"neighbour_is_at_p{p}_pct"] for p in (25, 50, 75)] == [50, 50, 50]


def test_what_three_runs_on_h200s_showed():
    """SMs of a GPC agree, GPCs do not; a workgroup begins when its neighbour is half-way."""
    with (DATA / "drift" / "h200_gpcs.csv").open(encoding="utf-8") as file:
        ordered = [line for line in csv.DictReader(file) if line["order"] != "scatter"]
    assert all(float(line["between_pct"]) > 1.4 * float(line["within_pct"]) for line in ordered)
    with (DATA / "drift" / "h200_pairs.csv").open(encoding="utf-8") as file:
        places = [
            int(line["neighbour_is_at_p50_pct"]) for line in csv.DictReader(file) if line["neighbour_is_at_p50_pct"]
        ]
    assert len(places) > 15 and all(49 <= place <= 52 for place in places)
