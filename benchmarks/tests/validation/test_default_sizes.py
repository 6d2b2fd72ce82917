"""Do the suite's kernels touch at their default sizes, those of the paper among them, what arithmetic says?"""

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel

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
