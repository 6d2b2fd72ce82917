"""Index functions tried on the MI355X, and ways of replacement beside what it counted."""

import numpy as np
import pytest

from benchmarks.fidelity import copies, folds, replacement
from benchmarks.fidelity.variants import predict
from tests import naive
from xcd_model import gpu

MI355X = gpu("mi355x")


def sets_of(addresses, masks):
    """Set of each address under masks of address bits, one bit of the set after the other."""
    return sum((np.bitwise_count(addresses & mask).astype(np.int64) & 1) << bit for bit, mask in enumerate(masks))


def lines_of_one_xcd(kilobytes):
    """Addresses of the lines that the 32 workgroups of XCD 3 read: each of all 256 has so many kilobytes of its own."""
    workgroup, inside = np.arange(3, 256, 8)[:, None], np.arange(0, kilobytes * 1024, 128)[None, :]
    return (workgroup * kilobytes * 1024 + inside).ravel()


def test_the_function_in_use_is_one_of_those_tried():
    assert set(folds.functions(MI355X)["channel of 128 B, set"]) == set(MI355X.l2.index_rows)


@pytest.mark.parametrize("name", [name for name, masks in folds.functions(MI355X).items() if len(masks) == 11])
def test_only_two_functions_spread_four_megabytes_evenly_over_the_sets(name):
    """4 MB fit 2048 sets of 16 ways only where each set is asked for 16 lines."""
    masks = folds.functions(MI355X)[name]
    filled = np.bincount(sets_of(lines_of_one_xcd(128), masks), minlength=2048)
    even = filled.max() == MI355X.l2.ways
    assert even == (name in ("channel of 128 B, set", "channel of 256 B, set"))


def test_rows_are_two_passes_and_the_gemms_that_are_not_large():
    ids = [row.id for row in folds.rows()]
    assert ids[:2] == ["published/passes-64k:l2_hit_pct", "published/passes-128k:l2_hit_pct"]
    assert len(ids) == 62 and all(name.startswith("shapes/") for name in ids[2:])


def test_masks_given_to_a_gpu_are_what_it_finds_sets_by():
    masks = folds.functions(MI355X)["set, by 11"]
    assert folds.with_function(MI355X, masks).l2.index_rows == tuple(masks)


@pytest.mark.parametrize(("lines", "kept"), [(16, 93.75), (24, 0.0), (64, 0.0)])
def test_lru_keeps_all_of_what_fits_and_nothing_of_more(lines, kept):
    assert replacement.hit_pct(lines, replacement.lru, 0) == kept


def test_a_draw_among_ways_not_used_of_late_is_nearest_to_what_was_counted():
    ways = (replacement.lru, replacement.drawn, replacement.first_unused, replacement.drawn_unused)
    means = [np.mean([replacement.hit_pct(24, way, seed) for seed in range(10)]) for way in ways]
    assert np.argmin(np.abs(np.array(means) - replacement.counted()[24])) == 3


def test_counted_rates_are_of_rows_but_for_one_that_has_none():
    rates = replacement.counted()
    assert [lines for lines, rate in rates.items() if rate is None] == [32]
    assert rates[16] == pytest.approx(93.74, abs=0.01)


def test_steps_of_a_gemm_are_those_of_k_over_all_tiles():
    row = next(row for row in folds.all_rows() if row.id == "published/persist-3840:l2_hit_pct")
    assert folds.steps(row) == 15 * 16 * 8192 // 64


def test_a_row_that_nothing_is_predicted_of_is_refused(monkeypatch):
    monkeypatch.setattr(folds, "predict", lambda row, variant, device: {})
    with pytest.raises(LookupError, match="passes-64k"):
        folds.error_of((folds.rows()[0], MI355X))


def test_each_workgroup_reads_its_own_row_in_pieces_as_often_as_there_are_passes():
    trace = copies.passes_trace({"WORKGROUPS": 3, "BYTES": 32 * 1024, "PASSES": 2}, 128)
    pieces = 32 * 1024 // copies.PIECE_BYTES
    assert (trace.n_workgroups, trace.n_instructions) == (3, 3 * 2 * pieces)
    mine = range(trace.start[1], trace.start[2])
    lines = [line for instruction in mine for line, _ in naive.touches(trace, instruction)[0]]
    assert sorted(set(lines)) == list(range(256, 512)) and lines[: len(lines) // 2] == lines[len(lines) // 2 :]


def test_passes_over_64_kb_find_all_but_the_first_in_the_l2():
    row = next(row for row in folds.rows() if "passes-64k" in row.id)
    assert predict(row, "timed", MI355X)["l2_hit_pct"] == pytest.approx(100 * 15 / 16, abs=0.01)
    assert row.measured == pytest.approx(93.74, abs=0.01)
