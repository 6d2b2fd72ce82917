"""Are the sectors of kernels captured from their CUDA or HIP source those that a profiler counted on an H100?"""

import pandas as pd
import pytest

from swizzle_benchmarks.validation.rows import DATA


@pytest.mark.parametrize("quantity", ["load_sectors", "store_sectors"])
def test_sectors_are_the_profilers(quantity):
    rows = pd.read_csv(DATA / "h100_cuda_sources.csv").query("quantity == @quantity")
    assert len(rows) == 8
    assert ((rows.predicted / rows.measured - 1).abs() <= 0.01).all()


def test_an_order_that_is_predicted_far_ahead_is_no_slower():
    rows = pd.read_csv(DATA / "h100_cuda_sources.csv").query("quantity == 'time_us'").set_index(["function", "order"])
    launched = rows.loc[("sgemm_global_mem_coalesce<32>", "launch")]
    ahead = rows.loc[("sgemm_global_mem_coalesce<32>", "row")]
    assert ahead.predicted < 0.9 * launched.predicted
    assert ahead.measured < launched.measured
