"""Do the access models of attention and the other kernels beyond the paper touch what their elements need?"""

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel
from tests.naive_coalesce import shown, touched
from tests.suite.beyond_sizes import CASES, SIZES, case_id
from tests.suite.beyond_touches import touches
from xcd_model.errors import SizeError


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


@pytest.mark.parametrize("name", SIZES)
def test_other_grids_are_the_grids_of_their_sizes(name):
    grids = list(kernel(name).at_grids())
    for grid, sizes in grids:
        assert kernel(name, **sizes).grid == grid
    assert {grid.num_pids % 8 for grid, _ in grids} > {0, 1}
    assert any(grid.num_pids < 8 for grid, _ in grids)


@pytest.mark.parametrize("name", SIZES)
def test_kernel_says_where_it_comes_from(name):
    work = kernel(name)
    assert work.name == name and work.sources and work.sharing.startswith(("Workgroup", "Rows"))
    assert 0 < work.flops <= work.issued_flops
    assert "Triton 3.9" in work.resources.source
    assert f"def {work.launch.function}(" in work.triton_source
    assert kernel(name, **work.problem).problem == work.problem


@pytest.mark.parametrize(
    ("name", "sizes", "says"),
    [
        ("attention", {"BLOCK_M": 48}, "BLOCK_M = 48: a power of two from 16"),
        ("attention", {"BLOCK_N": 8}, "BLOCK_N = 8"),
        ("attention", {"D": 96}, "D = 96"),
        ("attention", {"D": 512}, "D = 512: a power of two from 16 to 256"),
        ("attention", {"CAUSAL": 2}, "CAUSAL = 2: a switch is 0 or 1"),
        ("attention", {"S": 0}, "S = 0"),
        ("attention", {"S": 1 << 20}, "attention: .* use a smaller problem or larger blocks"),
        ("attention_gqa", {"H": 6, "HKV": 4}, "HKV divides H"),
        ("attention_gqa", {"H": 4, "HKV": 8}, "HKV divides H"),
        ("attention_decode", {"S": 8, "SPLITS": 16}, "a split has at least one key"),
        ("attention_decode", {"HKV": 7}, "HKV divides H"),
        ("attention_decode", {"BLOCK_N": 3}, "BLOCK_N = 3"),
        ("attention_persistent", {"HKV": 7}, "attention_persistent: H = 32, HKV = 7"),
        ("attention_varlen", {"HKV": 7}, "HKV divides H"),
        ("attention_varlen", {"BLOCK_N": 48}, "BLOCK_N = 48"),
        ("attention_varlen", {"B": 1 << 12}, "Q or O has"),
        ("batched_gemm", {"BLOCK_K": 2048}, "BLOCK_K = 2048"),
        ("batched_gemm", {"BATCH": 1 << 20}, "batched_gemm: 268435456 workgroups"),
        ("gemm_cluster", {"CTAS": 3}, "CTAS = 3, BLOCK_M = 256: a cluster is a power of two"),
        ("gemm_cluster", {"CTAS": 1}, "CTAS = 1"),
        ("gemm_cluster", {"CTAS": 8, "BLOCK_M": 64}, "CTAS = 8, BLOCK_M = 64"),
        ("gemm_jagged", {"LEAST": 101}, "LEAST = 101: hundredths of S"),
        ("gemm_jagged", {"GROUPS": 1 << 10}, "A has"),
        ("gemm_splitk", {"K": 128, "SPLITS": 3}, "SPLITS = 3, K = 128: a split has a BLOCK_K step, and there are 2"),
        ("gemm_splitk", {"BLOCK_N": 96}, "BLOCK_N = 96"),
        ("gemm_splitk", {"SPLITS": 1 << 10, "K": 1 << 16, "BLOCK_K": 64}, "the partial products has 2147483648 items"),
        ("grouped_gemm", {"TOPK": 9}, "a token goes to an expert at most once"),
        ("grouped_gemm", {"EXPERTS": 1 << 20}, "EXPERTS = 1048576"),
        ("grouped_gemm", {"TOKENS": 1 << 20}, "A has"),
        ("mla_decode", {"ROPE": 8}, "ROPE = 8"),
        ("mla_decode", {"S": 8, "SPLITS": 16}, "a split has at least one token"),
        ("mlp_megakernel", {"LOCAL": 101}, "LOCAL = 101: hundredths of the tiles"),
        ("mlp_megakernel", {"PROGRAMS": 7}, "PROGRAMS = 7, POOLS = 8: a queue without a program"),
        ("mlp_megakernel", {"BLOCK_K": 8}, "BLOCK_K = 8"),
        ("mlp_megakernel", {"H": 1 << 19}, "H has 4294967296 items"),
        ("conv_2d", {"BLOCK_H": 1, "BLOCK_W": 8}, r"BLOCK_H \* BLOCK_W = 8"),
        ("conv_2d", {"BLOCK_H": 3}, "BLOCK_H = 3"),
        ("conv_2d", {"R": 16}, "a filter side is at most 15"),
        ("conv_2d", {"N": 1 << 12}, "conv_2d: .* line touches"),
        ("stencil_3d", {"BLOCK_X": 1024, "BLOCK_Y": 32}, "a box has at most 16384 points"),
        ("stencil_3d", {"NX": 2048, "NY": 2048, "NZ": 2048}, "X has 8589934592 items"),
        ("stencil_3d", {"BLOCK_Z": 3}, "BLOCK_Z = 3"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(name, sizes, says):
    with pytest.raises(SizeError, match=says):
        kernel(name, **sizes)
