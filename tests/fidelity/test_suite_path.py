"""Does a user's own path, from the compile to the replay, come near what an H200 ran from our bundles?"""

import importlib.util

import pytest

from swizzle_benchmarks.fidelity.suite_path import LAUNCHED, WITHIN, line_of, predict, rows

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the triton extra")


def test_the_rows_are_two_kernels_in_twelve_orders_each():
    found = rows()
    assert [sum(one.kernel == name for one in found) for name in ("conv_2d", "gemm")] == [12, 12]
    assert [one.kernel for one in found if one.order == LAUNCHED] == ["conv_2d", "gemm"]
    lost = {one.order for one in found if one.workgroups == 1}
    assert len(lost) == 10 and "row" not in lost  # all of conv_2d


@needs_triton
def test_gemm_reads_and_times_are_near_without_a_fact_of_the_profiler():
    wanted = [one for one in rows() if one.kernel == "gemm" and one.order in (LAUNCHED, "group_m(size=8)")]
    launched, grouped = predict(wanted)
    for one in (launched, grouped):
        assert one.workgroups == one.row.workgroups == 2
        assert abs(one.time_error) <= WITHIN and abs(one.read_error) <= WITHIN, line_of(one)
    assert grouped.read_bytes < launched.read_bytes and grouped.relative < launched.relative == 1.0
