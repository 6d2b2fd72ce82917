"""Do the access models of the suite touch what their elements need?"""

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel
from tests.naive_coalesce import shown, touched
from tests.suite.sizes import CASES, case_id
from tests.suite.touches import touches


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


# Workgroups, tensor instructions and line touches of the default sizes, by the arithmetic in each comment.
DEFAULTS = {
    # 32 x 32 tiles, 128 steps of two loads, one store
    "gemm": (1024, 1024 * 257, 1024 * (128 * (256 + 64 * 4) + 256 * 4)),
    # a row of 64 KiB in and out
    "softmax": (32768, 32768 * 2, 32768 * 2 * 512),
    # a row of 40 KiB: twice in, with weights and shifts, and out
    "layer_norm": (20480, 20480 * 5, 20480 * 5 * 320),
    # 2 KiB each
    "fused_elementwise": (16384, 16384 * 4, 16384 * 4 * 16),
    # 32 lines each of s, v and prices; a shifted load has a 33rd line, unless that is outside the array
    "black_scholes": (1 << 18, 5 << 18, (1 << 18) * (5 * 32 + 2) - 2),
    # 32 symbols each, 32 lines of scores
    "smith_waterman": (65536, 65536 * 3, 65536 * (2 + 32)),
    # half a line a row
    "transpose": (1 << 20, 2 << 20, (1 << 20) * (32 + 32)),
    # five loads and a store of 32 half lines; moved sideways, every other tile takes a second line a row, but at the
    # two edges; the row above the first tile row and the one below the last are clipped
    "stencil_2d": (65536, 65536 * 6, 65536 * 6 * 32 + 2 * 256 * 32 * 128 - 2 * 256 * 32 - 2 * 256),
    # a tile row is a line; one column to the side costs a line a row more, but at the edge of the grid
    "fdtd_2d": (65536, 65536 * 14, 65536 * 14 * 32 + 2 * 255 * 256 * 32 - 2 * 256),
    # 32 query blocks of 128 heads; Q, 64 blocks of 64 keys of K and V, O; a row is 2 lines
    "attention": (32 * 128, 32 * 128 * (2 + 2 * 64), 32 * 128 * (2 * 128 * 2 + 2 * 4096 * 2)),
    "attention_gqa": (32 * 64, 32 * 64 * (2 + 2 * 64), 32 * 64 * (2 * 128 * 2 + 2 * 4096 * 2)),
    # 16 query blocks of 32 heads; block i reads 4 (i + 1) tiles of 64 keys of K and of V; a row is 2 lines
    "attention_persistent": (
        512,
        32 * sum(2 + 8 * i for i in range(1, 17)),
        32 * sum(1024 + 1024 * i for i in range(1, 17)),
    ),
    # 2048 keys a split in 32 steps; Q is 2 lines, the partial sum 4, its weight 1
    "attention_decode": (4096, 4096 * (3 + 2 * 32), 4096 * (2 + 2 * 2048 * 2 + 4 + 1)),
    # 2048 tokens a split in 64 steps, 9 lines each; 16 queries of 9 lines, sums of 16, weights 64 bytes apart
    "mla_decode": (512, 512 * (4 + 2 * 64), 512 * (2048 * 9 + 16 * (9 + 16) + 8)),
    # 16 x 16 tiles of 32 products; 32 steps of 128 lines each; C is 256
    "batched_gemm": (8192, 8192 * (1 + 2 * 32), 8192 * (32 * 256 + 256)),
    # 4 x 64 tiles in 4 splits of 112 steps; 64 lines of A and 64 x 2 of B a step, 64 rows of 4 lines of the product
    "gemm_splitk": (1024, 1024 * (1 + 2 * 112), 1024 * (112 * 192 + 256)),
    # 64 rows of 64 tiles of H, 32 steps and 2 stores each, and of 16 of Y, 128 steps, a poll and a store; 128 rows of
    # one line and 64 of 2 a step, 256 lines a tile stored, a flag or 64 of them, 2 lines
    "mlp_megakernel": (
        64 * 80,
        64 * (64 * (2 * 32 + 2) + 16 * (2 * 128 + 2)),
        64 * (64 * (32 * 256 + 256 + 1) + 16 * (128 * 256 + 256 + 2)),
    ),
    # 4 x 64 x 64 boxes; for the lines see below
    "stencil_3d": (4 * 64 * 64, 4 * 64 * 64 * 28, None),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_sizes_by_arithmetic(name):
    workgroups, instructions, touched_lines = DEFAULTS[name]
    trace = kernel(name).build_trace(128)
    assert (trace.n_workgroups, trace.n_instructions) == (workgroups, instructions)
    assert touched_lines is None or trace.n_touches == touched_lines


def test_default_stencil_by_arithmetic():
    """27 reads of 16 rows of two lines, a third line where moved sideways; at the border rows or lines are missing."""
    trace = kernel("stencil_3d").build_trace(128)
    rows = 3 * 256 - 2  # rows along y that the three shifts of all boxes read; as many planes along z
    lines = 3 * 4 * 2 + 2 * 3  # of a row along x
    assert trace.n_touches == rows * rows * lines + 256 * 256 * 8


def test_causal_attention_reads_half_the_keys():
    full, causal = (kernel("attention", H=2, S=1024, CAUSAL=c) for c in (0, 1))
    assert causal.grid == full.grid
    assert causal.flops == pytest.approx(full.flops / 2, rel=0.01)
    # query block i of 128 reads 2 (i + 1) of 16 key blocks
    assert causal.build_trace(128).n_instructions == 2 * sum(2 + 2 * 2 * (i + 1) for i in range(8))
    assert causal.issued_flops == full.issued_flops * (2 * sum(range(1, 9))) / (8 * 16)


def test_router_loads_are_uneven_and_complete():
    from swizzle_benchmarks.suite.grouped_gemm import grouped_gemm

    work = kernel("grouped_gemm")
    offsets = grouped_gemm.at(work.problem).offsets
    load = np.diff(offsets)
    assert offsets[-1] == 8192
    assert np.all(np.diff(load) < 0)
    assert 2 < load[0] / load[-1] < 3
    columns = work.make_inputs(0)
    pairs = zip(columns["first_row"], columns["end_row"], strict=True)
    rows = np.concatenate([np.arange(a, min(a + 128, b)) for a, b in pairs])
    np.testing.assert_array_equal(rows, np.arange(8192))
    assert work.issued_flops > work.flops


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
