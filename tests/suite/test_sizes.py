"""Are sizes that make no sense refused in the kernel's words, and do grids, figures and texts follow from the sizes?"""

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.waiting import waited, with_flags_unset
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array
from tests.capture.same_trace import assert_equal_traces, assert_same_trace, needs_triton
from tests.suite.small import NAMES, small
from xcd_model import gpu, workgroups_per_cu
from xcd_model.errors import SizeError


@pytest.mark.parametrize("name", NAMES)
def test_launch_is_the_kernels_grid_and_arrays(name):
    work = kernel(name, **small(name)[-1])
    assert work.launch.grid == ((work.programs,) if work.programs else work.grid.launch)
    assert work.launch.path.read_text(encoding="utf-8") == work.triton_source
    assert 0 <= work.flops <= work.issued_flops
    inputs = work.launch.make_inputs(0)
    for argument, array in work.launch.arrays.items():
        if array.role != "out":
            assert inputs[argument].shape == array.shape
            assert inputs[argument].dtype == np.dtype(array.dtype.replace("fp", "float"))
    assert all(isinstance(value, (Array, int, float)) for value in work.launch.arguments.values())


@pytest.mark.parametrize("name", NAMES)
def test_other_grids_are_the_grids_of_their_sizes(name):
    for sizes in (small(name)[-1], {}):
        grids = list(kernel(name, **sizes).at_grids())
        for grid, other in grids:
            assert kernel(name, **other).grid == grid
        assert any(grid.num_pids < 8 for grid, _ in grids)
        assert any(grid.num_pids % 8 for grid, _ in grids)


@pytest.mark.parametrize("name", NAMES)
def test_a_workgroup_fits_and_a_kernel_says_where_it_comes_from(name):
    work = kernel(name)
    assert work.name == name and work.sources and work.sharing.startswith(("Workgroup", "Rows"))
    assert 0 <= work.flops <= work.issued_flops and (work.flops or name == "transpose")
    assert f"def {work.launch.function}(" in work.triton_source
    assert kernel(name, **work.problem).problem == work.problem
    assert workgroups_per_cu(work.resources, gpu("mi300x")) >= 1
    assert work.resources.source == "compiled for gfx942 with Triton 3.9"
    assert work.resources.threads == 64 * work.launch.num_warps


def test_a_tile_nobody_compiled_is_scaled_from_one():
    work = kernel("stencil_2d", BLOCK_SIZE_M=64, BLOCK_SIZE_N=128)
    assert work.resources.vgprs == 2 * 72
    assert "in proportion to the tile 64x64" in work.resources.source
    moe = kernel("moe_gemm", BLOCK_M=128, BLOCK_N=256, BLOCK_K=64)  # a stage of its operands, not of their product
    assert moe.resources.lds_bytes == (128 + 256) * 64 * 2 and "WARPS" not in moe.problem
    wide = kernel("moe_gemm", BLOCK_M=128, WARPS=8, K_FAST=True)
    assert (wide.resources.threads, wide.launch.function) == (512, "moe_gemm_k_fast")
    assert wide.launch.arrays["b_ptr"].shape == (128, 1536, 2048)


def test_a_limit_and_what_is_beyond_it_print_different_numbers():
    with pytest.raises(SizeError, match=r"with 67,108,864 tensor instructions .* the limits are 1048576, 50,331,648"):
        kernel("gemm", BLOCK_M=16, BLOCK_N=16)


BAD = [
    ("softmax", {"N": 1 << 21}, "a workgroup holds a whole row"),
    ("softmax", {"M": 1 << 20}, "offsets are 32-bit"),
    ("softmax", {"M": 1 << 21, "N": 4}, "2097152 workgroups"),
    ("fused_elementwise", {"BLOCK_SIZE": 1000}, "BLOCK_SIZE = 1000: a power of two"),
    ("fused_elementwise", {"BLOCK_SIZE": 1 << 17}, "a power of two from 1 to 65536"),
    ("fused_elementwise", {"BLOCK_SIZE": 1}, "use a smaller problem or larger blocks"),
    ("transpose", {"BLOCK_SIZE_M": 4096, "BLOCK_SIZE_N": 512}, "a tile of 2097152 items"),
    ("spmv", {"NNZ_PER_ROW": 5000}, "a row of N = 4096 columns holds at most 4096 items"),
    ("spmv", {"M": 1 << 20}, "a gather is traced lane by lane"),
    ("gemm_streamk", {"BLOCK_SIZE_K": 8}, "BLOCK_SIZE_K = 8: a power of two from 16 to 1024, as tl.dot"),
    ("gemm_streamk", {"M": 256, "N": 256, "K": 64}, "1 tiles of 1 K steps are not a step for each workgroup"),
    ("gemm_streamk", {"PROGRAMS": 1 << 20}, "not a step for each workgroup; at most 131072"),
    ("attention", {"D": 512}, "D = 512: a power of two from 16 to 256"),
    ("attention", {"CAUSAL": 2}, "CAUSAL = 2: a switch is 0 or 1"),
    ("attention_gqa", {"H": 6, "HKV": 4}, "HKV divides H"),
    ("attention_decode", {"S": 8, "SPLITS": 16}, "a split has at least one key"),
    ("attention_persistent", {"HKV": 7}, "H = 32, HKV = 7"),
    ("attention_varlen", {"B": 1 << 12}, "Q or O has"),
    ("batched_gemm", {"BATCH": 1 << 20}, "268435456 workgroups"),
    ("gemm_cluster", {"CTAS": 3}, "CTAS = 3, BLOCK_M = 256: a cluster is a power of two"),
    ("gemm_cluster", {"CTAS": 8, "BLOCK_M": 64}, "CTAS = 8, BLOCK_M = 64"),
    ("gemm_jagged", {"LEAST": 101}, "LEAST = 101: hundredths of S"),
    ("gemm_jagged", {"GROUPS": 1 << 10}, "A has"),
    ("gemm_splitk", {"K": 128, "SPLITS": 3}, "SPLITS = 3, K = 128: a split has a BLOCK_K step, and there are 2"),
    ("grouped_gemm", {"TOPK": 9}, "a token goes to an expert at most once"),
    ("grouped_gemm", {"EXPERTS": 1 << 20}, "EXPERTS = 1048576"),
    ("grouped_gemm", {"TOKENS": 1 << 20}, "A has"),
    ("mla_decode", {"ROPE": 8}, "ROPE = 8"),
    ("mla_decode", {"S": 8, "SPLITS": 16}, "a split has at least one token"),
    ("mlp_megakernel", {"LOCAL": 101}, "LOCAL = 101: hundredths of the tiles"),
    ("mlp_megakernel", {"PROGRAMS": 7}, "PROGRAMS = 7, POOLS = 8: a queue without a program"),
    ("conv_2d", {"BLOCK_H": 1, "BLOCK_W": 8}, r"BLOCK_H \* BLOCK_W = 8"),
    ("conv_2d", {"R": 16}, "a filter side is at most 15"),
    ("conv_2d", {"N": 1 << 12}, "line touches"),
    ("stencil_3d", {"BLOCK_X": 1024, "BLOCK_Y": 32}, "a box has at most 16384 points"),
    ("gemm", {"M": 1 << 20, "N": 1 << 20}, "A has 8589934592 items; .*: use a smaller problem"),
    ("gemm", {"M": 0}, "M = 0"),
    ("gemm", {"N": True}, "N = True"),
    ("gemm", {"N": 2**31}, "N = 2147483648"),
]


@pytest.mark.parametrize(("name", "sizes", "says"), BAD)
def test_sizes_that_make_no_sense_are_refused(name, sizes, says):
    with pytest.raises(SizeError, match=f"^{name}: .*{says}"):
        kernel(name, **sizes)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_follow_the_seed(name):
    work = kernel(name, **small(name)[-1])
    first, again, other = work.make_inputs(7), work.make_inputs(7), work.make_inputs(8)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert any(not np.array_equal(first[key], other[key]) for key in first)


# ---- Do the access models of the suite touch the lines that the Triton kernels do? (Item by item in `make evidence`.)
@needs_triton
@pytest.mark.parametrize("name", sorted({*NAMES} - {"gemm_streamk"}))
def test_access_model_is_the_kernel(name):
    assert_same_trace(*(by_tile(kernel(name, **sizes)) for sizes in small(name)))


def by_tile(work):
    """A persistent kernel with as many programs as tiles."""
    return work if work.programs is None else kernel(work.name, **{**work.problem, "PROGRAMS": work.grid.num_pids})


@needs_triton
def test_streamk_access_model_is_the_kernel():
    """Interpreted workgroup by workgroup: it branches on locks that it also writes, which capture does not follow."""
    from swizzle_sim.capture.capture import capture_all

    works = [kernel("gemm_streamk", **sizes) for sizes in small("gemm_streamk")]
    for work, found in zip(works, capture_all([work.launch for work in works], full=True), strict=True):
        assert_equal_traces(work.build_trace(128), found.trace, str(work.problem))


# ---- Is the megakernel captured with a queue an XCD, are its flags unset on hardware, and is said what waiting costs?
SMALL = {"M": 128, "K": 32, "H": 192, "N": 64, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}  # 4 x (6 + 2) tiles


@needs_triton
def test_access_model_is_the_kernel_with_a_queue_an_xcd():
    sizes = {"M": 100, "K": 40, "H": 150, "N": 50, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "PROGRAMS": 8}
    assert_same_trace(*(by_tile(kernel("mlp_megakernel", **sizes, **queues)) for queues in ({}, {"LOCAL": 60})))


def test_on_hardware_flags_are_unset_before_each_launch():
    launch = kernel("mlp_megakernel", **SMALL, PROGRAMS=8).launch
    here, there = launch.make_inputs(0), with_flags_unset(launch).make_inputs(0)
    assert here["done_ptr"].all() and not there["done_ptr"].any()
    assert all((there[name] == here[name]).all() for name in here if name != "done_ptr")


def test_what_waiting_would_cost_is_said():
    scorer = Scorer(kernel("mlp_megakernel", M=1024, K=512, H=1024, N=512), gpu("mi300x"))
    by_row, by_stage = (
        waited(scorer, scorer.permutation(Swizzle.parse(family(spec)))) for spec in ("identity", "column")
    )
    assert by_row.tiles == by_stage.tiles == 8 * 4
    assert by_row.early > 0 and by_row.longest_us >= by_row.mean_us > 0
    assert "began before" in str(by_row)
    lockstep = Scorer(scorer.kernel, scorer.gpu, replay="lockstep")
    assert waited(lockstep, np.arange(scorer.kernel.grid.num_pids)) is None
    assert waited(Scorer(kernel("gemm", M=512, N=512, K=64), gpu("mi300x")), np.arange(4)) is None
