"""Are sizes that make no sense refused in the kernel's words, and do grids, figures and texts follow from the sizes?"""

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel, kernel_names
from swizzle_sim.workload.launch import Array
from tests.capture.same_trace import needs_triton
from tests.suite.paper_sizes import CASES, SIZES, case_id
from tests.suite.paper_touches import KERNELS
from xcd_model import gpu, workgroups_per_cu
from xcd_model.errors import SizeError

# Grid and launches measured for the paper.
MEASURED = {
    "softmax": ((32768,), 1),
    "layer_norm": ((20480,), 1),
    "fused_elementwise": ((16384,), 1),
    "transpose": ((1024, 1024), 1),
    "stencil_2d": ((256, 256), 1),
    "spmv": ((4096,), 1),
    "gemm_streamk": ((304,), 1),
    "fdtd_2d": ((256, 256), 1500),
    "smith_waterman": ((256, 256), 1),
    "black_scholes": ((262144,), 1),
}


@pytest.mark.parametrize("name", MEASURED)
def test_defaults_are_the_measured_sizes(name):
    work = kernel(name)
    assert (work.grid.launch, work.launches) == MEASURED[name]
    assert name in kernel_names()


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_launch_is_the_kernels_grid_and_arrays(case):
    name, sizes = case
    work = kernel(name, **sizes)
    assert work.launch.grid == work.grid.launch
    assert work.launch.path.read_text(encoding="utf-8") == work.triton_source
    assert 0 <= work.flops <= work.issued_flops
    tensors = KERNELS[name][0](work.problem)
    arrays = {argument.removesuffix("_ptr"): array for argument, array in work.launch.arrays.items()}
    assert {key: (array.n_items, array.item_bytes) for key, array in arrays.items()} == tensors
    assert list(arrays) == list(tensors)
    inputs = work.launch.make_inputs(0)
    for argument, array in work.launch.arrays.items():
        if array.role != "out":
            assert inputs[argument].shape == array.shape
            assert inputs[argument].dtype == np.dtype(array.dtype.replace("fp", "float"))
    assert all(isinstance(value, (Array, int, float)) for value in work.launch.arguments.values())


@pytest.mark.parametrize("name", SIZES)
def test_other_grids_are_the_grids_of_their_sizes(name):
    grids = list(kernel(name, **SIZES[name][0]).at_grids())
    for grid, sizes in grids:
        assert kernel(name, **sizes).grid == grid
    assert any(grid.num_pids < 8 for grid, _ in grids)
    assert any(grid.num_pids % 8 for grid, _ in grids)


@pytest.mark.parametrize("name", MEASURED)
def test_a_workgroup_fits_and_its_figures_say_where_from(name):
    work = kernel(name)
    assert workgroups_per_cu(work.resources, gpu("mi300x")) >= 1
    assert work.resources.source == "compiled for gfx942 with Triton 3.9"
    assert work.resources.threads == 64 * work.launch.num_warps


def test_a_tile_nobody_compiled_is_scaled_from_one():
    work = kernel("stencil_2d", BLOCK_SIZE_M=64, BLOCK_SIZE_N=128)
    assert work.resources.vgprs == 2 * 72
    assert "in proportion to the tile 64x64" in work.resources.source


COMPILED = [
    ("softmax", {}),
    ("layer_norm", {}),
    ("stencil_2d", {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64}),
    ("gemm_streamk", {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128}),  # the measured tile takes the compiler much longer
]


@needs_triton
@pytest.mark.parametrize(("name", "sizes"), COMPILED)
def test_registers_and_lds_are_the_compilers(name, sizes):
    from swizzle_sim.capture.occupancy import compile_launch

    work = kernel(name, **sizes)
    found = compile_launch(work.launch, "gfx942")
    if not found.triton.startswith("3.9."):
        pytest.skip(f"figures are of Triton 3.9, this is {found.triton}")
    assert (work.resources.vgprs, work.resources.lds_bytes) == (found.vgprs, found.lds_bytes)
    assert work.resources.threads == found.threads
    assert work.resources.source == "compiled for gfx942 with Triton 3.9"


BAD = [
    ("softmax", {"N": 1 << 21}, "a workgroup holds a whole row"),
    ("softmax", {"M": 1 << 20}, "offsets are 32-bit"),
    ("softmax", {"M": 1 << 21, "N": 4}, "2097152 workgroups"),
    ("softmax", {"M": 0}, "M = 0"),
    ("layer_norm", {"M": 1 << 20}, "offsets are 32-bit"),
    ("layer_norm", {"M": 1 << 21, "N": 4}, "2097152 workgroups"),
    ("fused_elementwise", {"BLOCK_SIZE": 1000}, "BLOCK_SIZE = 1000: a power of two"),
    ("fused_elementwise", {"BLOCK_SIZE": 1 << 17}, "a power of two from 1 to 65536"),
    ("fused_elementwise", {"BLOCK_SIZE": 1}, "use a smaller problem or larger blocks"),
    ("black_scholes", {"BLOCK_SIZE": 3}, "BLOCK_SIZE = 3"),
    ("black_scholes", {"n_assets": (1 << 31) - 1}, "2097152 workgroups"),
    ("smith_waterman", {"BLOCK_SIZE_M": 33}, "BLOCK_SIZE_M = 33"),
    ("smith_waterman", {"M": 1 << 20, "N": 1 << 20}, "score has 1099511627776 items"),
    ("transpose", {"BLOCK_SIZE_N": 8192}, "BLOCK_SIZE_N = 8192"),
    ("transpose", {"BLOCK_SIZE_M": 4096, "BLOCK_SIZE_N": 512}, "a tile of 2097152 items"),
    ("transpose", {"M": 1 << 16}, "offsets are 32-bit"),
    ("transpose", {"BLOCK_SIZE_M": 16}, "2097152 workgroups"),
    ("stencil_2d", {"BLOCK_SIZE_M": 0}, "BLOCK_SIZE_M = 0"),
    ("stencil_2d", {"M": 1 << 20, "N": 1 << 20}, "offsets are 32-bit"),
    ("fdtd_2d", {"BLOCK_SIZE_X": 12}, "BLOCK_SIZE_X = 12"),
    ("fdtd_2d", {"Nx": 1 << 20, "Ny": 1 << 20}, "ex has"),
    ("spmv", {"NNZ_PER_ROW": 5000}, "a row of N = 4096 columns holds at most 4096 items"),
    ("spmv", {"BLOCK_SIZE": 100}, "BLOCK_SIZE = 100"),
    ("spmv", {"M": 1 << 20}, "a gather is traced lane by lane"),
    ("spmv", {"M": 1 << 21, "N": 8, "NNZ_PER_ROW": 1, "BLOCK_SIZE": 1}, "2097152 workgroups"),
    ("gemm_streamk", {"BLOCK_SIZE_K": 8}, "BLOCK_SIZE_K = 8: a power of two from 16 to 1024, as tl.dot"),
    ("gemm_streamk", {"BLOCK_SIZE_M": 48}, "BLOCK_SIZE_M = 48"),
    ("gemm_streamk", {"M": 256, "N": 256, "K": 64}, "1 tiles of 1 K steps are not a step for each workgroup"),
    ("gemm_streamk", {"PROGRAMS": 1 << 20}, "not a step for each workgroup; at most 131072"),
    ("gemm_streamk", {"M": 1 << 20}, "offsets are 32-bit"),
    ("gemm_streamk", {"GROUP_M": 0}, "GROUP_M = 0"),
]


@pytest.mark.parametrize(("name", "sizes", "says"), BAD)
def test_sizes_that_make_no_sense_are_refused(name, sizes, says):
    with pytest.raises(SizeError, match=f"^{name}: .*{says}"):
        kernel(name, **sizes)
