"""Does the suite's GEMM touch what its arithmetic needs, and does its Triton source compute the product?"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.workload.kernels import kernel
from tests import naive
from xcd_model.errors import SizeError

BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16}
ROOT = Path(__file__).parents[2]

SIZES = [
    {"M": 64, "N": 96, "K": 32},
    {"M": 50, "N": 70, "K": 33},  # ragged in every dimension; rows begin within a line
    {"M": 33, "N": 1, "K": 17},
    {"M": 1, "N": 65, "K": 1},
    {"M": 64, "N": 128, "K": 64, "BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64},
]


@pytest.mark.parametrize("line_bytes", [64, 128])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_access_model_is_the_element_wise_toucher(sizes, line_bytes):
    work = gemm(**(BLOCKS | sizes))
    trace = work.build_trace(line_bytes)
    assert trace.n_workgroups == work.grid.num_pids
    for w in range(trace.n_workgroups):
        expected = naive.gemm_touches(work.problem, w, line_bytes)
        span = range(trace.start[w], trace.start[w + 1])
        assert len(span) == len(expected)
        for i, (name, writes, found) in zip(span, expected, strict=True):
            lines, is_write = naive.touches(trace, i)
            assert trace.tensors[trace.tensor[trace.template[i]]].name == name
            assert is_write == writes
            assert [line for line, _ in lines] == list(found)
            assert [{b for b in range(8) if bits >> b & 1} for _, bits in lines] == list(found.values())


def test_default_size_without_expanding_it():
    """8192^3 in 256 x 256 x 64: 32 x 32 tiles, 128 steps of two loads, one store."""
    trace = kernel("gemm").build_trace(128)
    assert (trace.n_workgroups, trace.n_instructions) == (1024, 1024 * 257)
    assert trace.n_touches == 1024 * (128 * (256 + 64 * 4) + 256 * 4)


def test_reference_is_the_product_to_fp16_rounding():
    work = gemm(**(BLOCKS | {"M": 40, "N": 24, "K": 100}))
    inputs = work.make_inputs(7)
    assert {name: (x.shape, x.dtype) for name, x in inputs.items()} == {
        "a": ((40, 100), np.float16),
        "b": ((100, 24), np.float16),
    }
    exact = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    size = np.abs(inputs["a"]).astype(np.float64) @ np.abs(inputs["b"]).astype(np.float64)
    # fp32 sums of 100 exact products are off by at most 100 units of 2**-24 of the sum of sizes; fp16 rounds by 2**-11.
    allowed = 2.0**-11 * np.abs(exact) + 1.01 * 100 * 2.0**-24 * size
    assert np.all(np.abs(work.reference(inputs)["c"].astype(np.float64) - exact) <= allowed)
    again, other = work.make_inputs(7), work.make_inputs(8)
    assert all(np.array_equal(inputs[name], again[name]) for name in inputs)
    assert not np.array_equal(inputs["a"], other["a"])


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"BLOCK_M": 48}, "BLOCK_M = 48"),
        ({"BLOCK_N": 8}, "BLOCK_N = 8"),
        ({"BLOCK_K": 2048}, "BLOCK_K = 2048"),
        ({"BLOCK_K": 0}, "BLOCK_K = 0"),
        ({"BLOCK_K": -16}, "BLOCK_K = -16"),
        ({"M": 1 << 20, "N": 1 << 20}, "A has 8589934592 items; .*: use a smaller problem"),
        ({"BLOCK_M": 16, "BLOCK_N": 16}, "use a smaller problem or larger blocks"),
        ({"M": 0}, "M = 0"),
        ({"K": -5}, "K = -5"),
        ({"N": True}, "N = True"),
        ({"N": 2**31}, "N = 2147483648"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes, says):
    with pytest.raises(SizeError, match=says):
        kernel("gemm", **sizes)


def test_other_grids_are_the_grids_of_their_sizes():
    work = kernel("gemm")
    grids = list(work.at_grids())
    for grid, sizes in grids:
        assert gemm(**sizes).grid == grid
    assert {grid.num_pids % 8 for grid, _ in grids} > {0, 1}
    assert any(grid.num_pids < 8 for grid, _ in grids)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is an optional extra, Linux only")
def test_triton_source_computes_the_product_at_a_ragged_size(tmp_path):
    """Interpreted on the CPU; its own process, since Triton fixes the mode at import."""
    problem = BLOCKS | {"M": 70, "N": 50, "K": 41}
    out = tmp_path / "c.npy"
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.run_gemm_triton", json.dumps(problem), str(out)],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    work = gemm(**problem)
    inputs = work.make_inputs(0)
    expected = work.reference(inputs)["c"].astype(np.float64)
    size = np.abs(inputs["a"]).astype(np.float64) @ np.abs(inputs["b"]).astype(np.float64)
    # Both round an fp32 sum to fp16: one unit of fp16 apart at most where the sums straddle a tie, plus what two
    # orders of fp32 summation differ by, K units of 2**-24 of the sum of sizes each.
    allowed = 2.0**-10 * np.abs(expected) + 2 * problem["K"] * 2.0**-24 * size
    assert np.all(np.abs(np.load(out).astype(np.float64) - expected) <= allowed)
