"""Do the figures of drift mean what they say?"""

import csv

import numpy as np
import pytest

from swizzle_benchmarks.fidelity.rows import DATA
from swizzle_benchmarks.lab.skew import skew_of


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
