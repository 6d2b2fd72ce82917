"""Passes over what each workgroup reads of its own: the trace, and the hit rate that an MI355X counted."""

import pytest

from swizzle_benchmarks.validation.rows import all_rows
from swizzle_benchmarks.validation.variants import predict
from swizzle_benchmarks.validation.workloads import copies
from tests import naive
from xcd_model import gpu


def test_each_workgroup_reads_its_own_row_in_pieces_as_often_as_there_are_passes():
    trace = copies.passes_trace({"WORKGROUPS": 3, "BYTES": 32 * 1024, "PASSES": 2}, 128)
    pieces = 32 * 1024 // copies.PIECE_BYTES
    assert (trace.n_workgroups, trace.n_instructions) == (3, 3 * 2 * pieces)
    mine = range(trace.start[1], trace.start[2])
    lines = [line for instruction in mine for line, _ in naive.touches(trace, instruction)[0]]
    assert sorted(set(lines)) == list(range(256, 512)) and lines[: len(lines) // 2] == lines[len(lines) // 2 :]


def test_passes_over_64_kb_find_all_but_the_first_in_the_l2():
    row = next(row for row in all_rows() if "passes-64k" in row.id)
    assert predict(row, "timed", gpu("mi355x"))["l2_hit_pct"] == pytest.approx(100 * 15 / 16, abs=0.01)
    assert row.measured == pytest.approx(93.74, abs=0.01)
