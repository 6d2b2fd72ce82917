"""Does compiled code load a lane's items as `xcd_model.trace.coalesce` says, at once or one by one?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_benchmarks.validation.workloads.h200 import KERNELS
from swizzle_sim.capture.occupancy import compile_launch
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton

SCRIPT = Path(__file__).with_name("compiled_loads.py")
pytestmark = needs_triton


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    cache = str(tmp_path_factory.mktemp("triton"))
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment | {"TRITON_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def instructions(trace):
    """Instructions of a lane for each load of a workgroup inside the grid, from the requests of its fullest line."""
    workgroup = len(trace.start) // 2 + 3
    found = []
    for instruction in range(trace.start[workgroup], trace.start[workgroup + 1]):
        t = trace.template[instruction]
        if not trace.is_write[t]:
            found.append(int(np.max(trace.wave_requests[trace.rel_start[t] : trace.rel_start[t + 1]])))
    return found


def test_fdtd_on_mi300x(compiled):
    """Eleven loads: nine of a tile in place, or a row further, and two shifted by a column."""
    trace = kernel("fdtd_2d", Nx=256, Ny=256).build_trace(128)
    assert sorted(instructions(trace)) == [1] * 9 + [4] * 2
    assert compiled["fdtd_2d gfx942"] == {"dwordx4": 9, "dword": 8}


def test_the_stencil_on_mi300x(compiled):
    """fp16, 32 x 32 items: a lane has four, of eight bytes; two loads of five are shifted by a column."""
    trace = kernel("stencil_2d", M=256, N=256).build_trace(128)
    assert [n > 1 for n in instructions(trace)] == [False, False, False, True, True]
    assert compiled["stencil_2d gfx942"] == {"dwordx2": 3, "ushort": 8}


def test_a_transposed_operand_on_mi300x(compiled):
    """B of shape (N, K) in fp16: eight items a lane along K, whichever axis of the tile that is."""
    assert compiled["linear as rows gfx942"] == compiled["linear as columns gfx942"] == {"dwordx4": 12}


def test_the_stencil_on_h200(compiled):
    """Masks that are no whole groups of items: the four neighbours come item by item, shifted by a column or not."""
    trace = KERNELS["stencil"].trace({"M": 256, "N": 1024, "BM": 32, "BN": 128}, 128)
    found = compiled["stencil sm_90"]
    own = found.pop(".v4.b32")
    assert instructions(trace) == own * [1, 4, 4, 4, 4]  # a slice for each group of four that a lane has
    assert found.pop(".b32") in (16 * own, 16 * own + 1)  # and the tile's number
    assert not found


COMPILED = [
    ("softmax", {}),
    ("layer_norm", {}),
    ("stencil_2d", {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64}),
    ("gemm_streamk", {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128}),  # the measured tile takes the compiler much longer
    *((name, {}) for name in ("gemm_jagged", "gemm_splitk", "mla_decode", "attention_varlen", "mlp_megakernel")),
]


@needs_triton
@pytest.mark.parametrize(("name", "sizes"), COMPILED)
def test_registers_and_lds_are_the_compilers(name, sizes):

    work = kernel(name, **sizes)
    found = compile_launch(work.launch, "gfx942")
    if not found.triton.startswith("3.9."):
        pytest.skip(f"figures are of Triton 3.9, this is {found.triton}")
    assert (work.resources.vgprs, work.resources.lds_bytes) == (found.vgprs, found.lds_bytes)
    assert (work.resources.threads, found.vgpr_spills) == (found.threads, 0)
    assert work.resources.source == "compiled for gfx942 with Triton 3.9"
