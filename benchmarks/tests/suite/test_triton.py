"""Does each Triton kernel of the suite compute what its reference does, in its own order and in any other?"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tests.suite.sizes import CASES, PAPER, SIZES, case_id
from swizzle_benchmarks.suite.fdtd_2d import fdtd_2d
from swizzle_sim.language import Grid
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton

ROOT = Path(__file__).parents[3]
ORDERS = ["plain", "shuffled"]


def order_of(name, sizes, how):
    """Tile, or program of those that stay, of each hardware id: its own, or any permutation at all."""
    if how == "plain":
        return None
    n = Grid(kernel(name, **sizes).launch.grid).num_pids
    return np.random.default_rng(n).permutation(n).tolist()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Outputs of every kernel at every size in every order, by those three; one process, which Triton starts slowly."""
    keys = [(name, how, i) for name, several in SIZES.items() for how in ORDERS for i in range(len(several))]
    cases = [
        [name, SIZES[name][i], order_of(name, SIZES[name][i], how), 2 if name == "gemm_streamk" else 1]
        for name, how, i in keys
    ]
    folder = tmp_path_factory.mktemp("outputs")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tests.suite.run_triton", json.dumps(cases), str(folder)],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return {key: dict(np.load(folder / f"{i}.npz")) for i, key in enumerate(keys)}


def of_sizes(outputs, name, how):
    return [(sizes, outputs[name, how, i]) for i, sizes in enumerate(SIZES[name])]


def within(got, expected, allowed):
    return np.all(np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= allowed)


def rounding(expected, bits):
    """One unit in the last place of a value of ``bits`` of mantissa; two results may round to either side of it."""
    return 2.0 ** -(bits - 1) * np.maximum(np.abs(expected.astype(np.float64)), 2.0**-14)


@needs_triton
@pytest.mark.parametrize("how", ORDERS)
@pytest.mark.parametrize("name", ["fused_elementwise", "smith_waterman", "transpose"])
def test_kernels_that_round_once_are_exact(name, how, outputs):
    for sizes, got in of_sizes(outputs, name, how):
        work = kernel(name, **sizes)
        expected = work.reference(work.make_inputs(0))
        assert set(got) == set(expected)
        for output in expected:
            assert got[output].dtype == expected[output].dtype
            assert np.array_equal(got[output], expected[output]), sizes


# fp32 against fp64, then rounded to the output: one unit of the output, plus what the fp32 steps may be off by.
SLACK = {
    "softmax": lambda expected: rounding(expected, 11),
    # the variance is a difference of means: a few units of 2**-24 of the mean square, relative to a variance near 1
    "layer_norm": lambda expected: rounding(expected, 11) + 1e-5,
    "stencil_2d": lambda expected: rounding(expected, 11),
    # 40 products near 1 and their sum
    "spmv": lambda expected: rounding(expected, 11) + 40 * 40 * 2.0**-24,
    # prices up to 150: errors of erf, log and exp in fp32, a few units of 2**-24 of the spot
    "black_scholes": lambda expected: np.full(expected.shape, 16 * 150 * 2.0**-24),
}


@needs_triton
@pytest.mark.parametrize("how", ORDERS)
@pytest.mark.parametrize("name", SLACK)
def test_kernels_agree_with_their_reference(name, how, outputs):
    for sizes, got in of_sizes(outputs, name, how):
        work = kernel(name, **sizes)
        for output, expected in work.reference(work.make_inputs(0)).items():
            assert got[output].dtype == expected.dtype
            assert got[output].shape == expected.shape
            assert within(got[output], expected, SLACK[name](expected)), sizes


@needs_triton
@pytest.mark.parametrize("how", ORDERS)
def test_streamk_sums_what_the_launch_before_left(how, outputs):
    """Locks are set from the start, so the first of two launches may read no sum and the second reads the first's."""
    for sizes, got in of_sizes(outputs, "gemm_streamk", how):
        work = kernel("gemm_streamk", **sizes)
        inputs = work.make_inputs(0)
        expected = work.reference(inputs)["c"]
        size = np.abs(inputs["a"]).astype(np.float64) @ np.abs(inputs["b"]).astype(np.float64)
        assert within(got["c"], expected, 2.0**-10 * np.abs(expected) + 2 * sizes["K"] * 2.0**-24 * size), sizes


@needs_triton
@pytest.mark.parametrize("how", ORDERS)
def test_fdtd_is_its_tiles_one_after_the_other(how, outputs):
    for sizes, got in of_sizes(outputs, "fdtd_2d", how):
        work = kernel("fdtd_2d", **sizes)
        wide, high = work.grid.launch
        tiles = order_of("fdtd_2d", sizes, how) or list(range(wide * high))
        inputs = work.make_inputs(0)
        expected = fdtd_2d.outputs(fdtd_2d.at(work.problem), inputs, order=((t % wide, t // wide) for t in tiles))
        for name, field in expected.items():
            assert np.array_equal(got[name], field), (sizes, name)


def tolerance(name, inputs, problem):
    """Largest error of one output item that rounding allows: fp16 of the result, and fp32 sums in another order."""
    if name == "stencil_3d":
        return 27 * 2.0**-23 * 5  # 27 products of at most about 5, weights below 1
    if name.startswith(("attention", "mla")):
        # weights rounded to fp16 sum to 1, V is at most about 5; decode keeps its weights in fp32
        return 5 * (2.0**-18 if name in ("attention_decode", "attention_paged") else 2.0**-10)
    if name == "mlp_megakernel":  # H may be rounded the other way: half an ulp of each of its items
        hidden = np.maximum(inputs["x"].astype(np.float64) @ inputs["w1"], 0).max()
        return problem["H"] * 2.0**-10 * hidden * np.abs(inputs["w2"]).max().astype(np.float64)
    depth = problem["R"] * problem["S"] * problem["C"] if name == "conv_2d" else problem["K"]
    first, second = (np.abs(inputs[a]).max().astype(np.float64) for a in ("xw" if name == "conv_2d" else "ab"))
    return 2 * depth**2 * 2.0**-24 * first * second


@needs_triton
@pytest.mark.parametrize("case", [case for case in CASES if case[0] not in PAPER], ids=case_id)
def test_others_compute_their_reference_to_rounding(case, outputs):
    name, sizes = case
    work, key = kernel(name, **sizes), SIZES[name].index(sizes)
    inputs = work.make_inputs(0)
    allowed = tolerance(name, inputs, work.problem)
    for out, wanted in work.reference(inputs).items():
        found = outputs[name, "plain", key][out]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        error = np.abs(found[finite].astype(np.float64) - wanted[finite])
        bits = 10 if wanted.dtype == np.float16 else 22
        assert np.all(error <= 2.0**-bits * np.abs(wanted[finite]) + allowed), error.max()
        # each workgroup writes its own items from its own inputs, so the order cannot change a bit
        np.testing.assert_array_equal(outputs[name, "shuffled", key][out], found)


def test_fdtd_reference_is_yees_step_where_there_is_one_tile():
    work = kernel("fdtd_2d", Nx=20, Ny=30, BLOCK_SIZE_X=32, BLOCK_SIZE_Y=32)
    fields = work.make_inputs(3)
    ex, ey, hz = (fields[name].astype(np.float64) for name in ("ex", "ey", "hz"))
    at = functools.partial(_at, shape=hz.shape)
    new = {
        (x, y): hz[x, y] - 0.7 * (at(ex, x, y + 1) - ex[x, y] + at(ey, x + 1, y) - ey[x, y])
        for x, y in np.ndindex(20, 30)
    }
    got = work.reference(fields)
    for x, y in np.ndindex(20, 30):
        assert got["hz"][x, y] == pytest.approx(new[x, y], abs=1e-5)
        assert got["ex"][x, y] == pytest.approx(ex[x, y] - 0.5 * (new[x, y] - new.get((x, y - 1), 0)), abs=1e-5)
        assert got["ey"][x, y] == pytest.approx(ey[x, y] - 0.5 * (new[x, y] - new.get((x - 1, y), 0)), abs=1e-5)


def _at(field, x, y, shape):
    return field[x, y] if x < shape[0] and y < shape[1] else 0.0
