"""Channels tried on the MI300X: which address bits reach them, and the table of what they give."""

import numpy as np
import pytest

from benchmarks.fidelity import channels
from benchmarks.fidelity.folds import with_function
from tests.fidelity.test_folds import sets_of
from xcd_model import gpu

MI300X = gpu("mi300x")
CHOICES = channels.channels(MI300X)
FOLDED = ("128 B, folded", "256 B, folded")


@pytest.mark.parametrize("name", CHOICES)
def test_a_stretch_of_lines_as_long_as_there_are_sets_fills_each_once(name):
    masks = channels.drawn(MI300X, CHOICES[name], seed=1)
    assert with_function(MI300X, masks).l2.line_rows()  # set and tag give the line
    for first in (0, 5 << 18, 77 << 18):
        assert sorted(sets_of(first + np.arange(0, 2048 * 128, 128), masks)) == list(range(2048))


@pytest.mark.parametrize("name", CHOICES)
def test_rows_a_large_power_of_two_apart_find_every_channel_only_where_upper_bits_reach_it(name):
    rows = np.arange(0, 1 << 34, 1 << 20)
    channel = sets_of(rows, CHOICES[name])
    assert len(set(channel)) == (16 if name in FOLDED else 1)


def test_a_fold_of_lines_is_the_channel_of_the_mi355x():
    assert set(CHOICES["128 B, folded"]) <= set(gpu("mi355x").l2.index_rows)


def test_draws_differ_within_a_channel_alone():
    one, other = (channels.drawn(MI300X, CHOICES["256 B"], seed) for seed in (0, 1))
    assert one[:4] == other[:4] and not set(one[4:]) & set(other[4:])


def test_launches_are_of_seconds_and_of_the_mi300x():
    found = channels.rows()
    assert {row.gpu for row in found} == {"mi300x"} and len(found) == 25
    assert {row.kernel for row in found} == {"stencil_2d", "transpose", "fdtd_2d", "layer_norm", "attention_dense"}


def error_by_function(job):
    """Stands in for a replay: what a row and the lowest drawn bits of a function make, so that no two are the same."""
    row, device = job
    masks = device.l2.index_rows
    return row.measured / 10 + (0 if masks == MI300X.l2.index_rows else sum(mask >> 18 & 1 for mask in masks[4:]))


def test_the_table_has_means_and_spreads_beside_what_was_counted(monkeypatch):
    named = {row.id.rpartition("persistent ")[2]: row for row in channels.rows()}
    tried = [named["qb_major:l2_hit_pct"], named["bt_hkv_minor:l2_hit_pct"]]
    monkeypatch.setattr(channels, "rows", lambda: tried)
    monkeypatch.setattr(channels, "error_of", error_by_function)
    lines = channels.by_order().splitlines()
    drawn = [[mask >> 18 & 1 for mask in channels.drawn(MI300X, CHOICES["256 B"], seed)[4:]] for seed in range(4)]
    more = [sum(bits) for bits in drawn]
    assert np.std(more) > 0.5
    for line, row in zip(lines[2:], tried, strict=False):
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        assert cells[:3] == [row.kernel, row.order, f"{row.measured:.1f}"]
        assert cells[3] == f"{1.1 * row.measured:.1f}"
        assert cells[5] == f"{1.1 * row.measured + np.mean(more):.0f} ± {np.std(more):.0f}"
    means = [cell.strip() for cell in lines[4].split("|")][4:-1]
    assert means[0] == f"{(5.4 + 8.1) / 2:.1f}" and means[2] == f"{(5.4 + 8.1) / 2 + np.mean(more):.1f}"
