"""Do the access models of the paper's kernels touch what their elements need?"""

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel
from tests.naive_coalesce import shown, touched
from tests.suite.paper_sizes import CASES, case_id
from tests.suite.paper_touches import touches


@pytest.mark.parametrize("line_bytes", [64, 128])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_access_model_is_the_element_wise_toucher(case, line_bytes):
    name, sizes = case
    work = kernel(name, **sizes)
    trace = work.build_trace(line_bytes)
    assert trace.n_workgroups == work.grid.num_pids
    for w in range(trace.n_workgroups):
        expected = touches(name, work.problem, w)
        span = range(trace.start[w], trace.start[w + 1])
        assert [trace.tensors[trace.tensor[trace.template[i]]].name for i in span] == [e[0] for e in expected]
        assert [bool(trace.is_write[trace.template[i]]) for i in span] == [e[1] for e in expected]
        for i, (_, _, addresses, item_bytes) in zip(span, expected, strict=True):
            assert shown(trace, i) == touched(addresses, item_bytes, line_bytes)


# Workgroups, instructions and line touches at the sizes measured for the paper, by the arithmetic in each comment.
MEASURED = {
    "softmax": (32768, 2, 2 * 512),  # a row of 64 KiB in and out
    "layer_norm": (20480, 5, 5 * 320),  # a row of 40 KiB: twice in, with weights and shifts, and out
    "fused_elementwise": (16384, 4, 4 * 16),  # 2 KiB each
    "smith_waterman": (65536, 3, 2 + 32),  # 32 symbols each, 32 lines of scores
    "transpose": (1 << 20, 2, 32 + 32),  # half a line a row
}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_sizes_by_arithmetic(name):
    workgroups, instructions, touched_lines = MEASURED[name]
    trace = kernel(name).build_trace(128)
    assert trace.n_workgroups == workgroups
    assert np.all(np.diff(trace.start) == instructions)
    assert trace.n_touches == workgroups * touched_lines
    assert trace.is_write.size < 100


def test_measured_black_scholes_by_arithmetic():
    """32 lines each of s, v and prices; a shifted load has a 33rd line, unless that is outside the array."""
    trace = kernel("black_scholes").build_trace(128)
    assert trace.n_workgroups == 1 << 18
    assert trace.n_touches == (1 << 18) * (5 * 32 + 2) - 2


def test_measured_stencil_by_arithmetic():
    """Five loads and a store of 32 half lines; moved sideways, every other tile takes a second line a row."""
    trace = kernel("stencil_2d").build_trace(128)
    crossings = 2 * 256 * 32 * 128 - 2 * 256 * 32  # left and right, less those at the two edges
    clipped = 2 * 256  # the row above the first tile row and the one below the last
    assert trace.n_workgroups == 65536
    assert trace.n_touches == 65536 * 6 * 32 + crossings - clipped


def test_measured_fdtd_by_arithmetic():
    """A tile row is a line; one column to the side costs a line a row more, but at the edge of the grid."""
    trace = kernel("fdtd_2d").build_trace(128)
    assert np.all(np.diff(trace.start) == 14)
    assert trace.n_touches == 65536 * 14 * 32 + 2 * 255 * 256 * 32 - 2 * 256


def test_measured_streamk_by_arithmetic():
    """912 whole tiles, 112 shared by 304 workgroups: 48 of 48 steps and 256 of 47; C is stored once a tile."""
    work = kernel("gemm_streamk")
    trace = work.build_trace(128)
    name = np.array([t.name for t in trace.tensors])[trace.tensor[trace.template]]
    writes = trace.is_write[trace.template]
    steps = np.array([np.sum(name[trace.start[w] : trace.start[w + 1]] == "a") for w in range(304)])
    assert sorted(set(steps)) == [3 * 128 + 47, 3 * 128 + 48]
    assert np.sum(steps == 3 * 128 + 48) == 48
    assert np.sum(writes & (name == "c")) == 1024
    # every workgroup whose share begins within a tile stores one partial sum, and its tile's first reads it
    stored = np.sum(writes & (name == "partial"))
    assert stored == np.sum(~writes & (name == "partial")) == np.sum(writes & (name == "lock"))
    assert stored == 304 - sum(1 for p in range(304) if (p * 47 + min(p, 48)) % 128 == 0)


def test_spmv_structure_has_the_density_asked_for():
    work = kernel("spmv")
    inputs = work.make_inputs(0)
    items = inputs["indices"].size
    mean, spread = 4096 * 328, (4096 * 4096 * 0.08 * 0.92) ** 0.5
    assert abs(items - mean) < 5 * spread
    assert inputs["indptr"][0] == 0
    assert inputs["indptr"][-1] == items
    row = np.repeat(np.arange(4096), np.diff(inputs["indptr"]))
    place = row * 4096 + inputs["indices"].astype(np.int64)
    assert np.all(np.diff(place) > 0)  # ascending, none twice
    counts = np.bincount(inputs["indices"], minlength=4096)
    assert abs(counts.mean() - 328) < 1
    assert counts.std() == pytest.approx((4096 * 0.08 * 0.92) ** 0.5, rel=0.1)
    assert all(np.array_equal(inputs[name], work.make_inputs(1)[name]) for name in ("indptr", "indices"))
    assert not np.array_equal(inputs["values"], work.make_inputs(1)["values"])
