"""Do the Triton kernels beyond the paper compute their references, in any order of workgroups?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from tests.suite.beyond_sizes import CASES, SIZES, case_id

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Outputs of all cases; one process, since Triton fixes its mode at import and takes a second to start."""
    folder = tmp_path_factory.mktemp("beyond")
    (folder / "cases.json").write_text(json.dumps(CASES))
    command = [sys.executable, "-m", "tests.suite.run_beyond", str(folder)]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [dict(np.load(folder / f"{i}.npz")) for i in range(len(CASES))]


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
@pytest.mark.parametrize("i", range(len(CASES)), ids=[case_id(case) for case in CASES])
def test_triton_source_computes_the_reference(answers, i):
    name, sizes = CASES[i]
    work = kernel(name, **sizes)
    inputs = work.make_inputs(0)
    expected = work.reference(inputs)
    allowed = tolerance(name, inputs, work.problem)
    for out, wanted in expected.items():
        found = answers[i][f"plain/{out}"]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        error = np.abs(found[finite].astype(np.float64) - wanted[finite])
        rounding = (
            2.0**-10 * np.abs(wanted[finite]) if wanted.dtype == np.float16 else 2.0**-22 * np.abs(wanted[finite])
        )
        assert np.all(error <= rounding + allowed), error.max()
        # each workgroup writes its own items from its own inputs, so the order cannot change a bit
        np.testing.assert_array_equal(answers[i][f"swizzled/{out}"], found)


@needs_triton
@pytest.mark.parametrize("name", ["gemm_jagged", "gemm_splitk", "mla_decode", "attention_varlen", "mlp_megakernel"])
def test_registers_and_lds_are_the_compilers(name):
    from swizzle_sim.capture.occupancy import compile_launch

    work = kernel(name)
    found = compile_launch(work.launch, "gfx942")
    if not found.triton.startswith("3.9."):
        pytest.skip(f"figures are of Triton 3.9, this is {found.triton}")
    assert (work.resources.vgprs, work.resources.lds_bytes) == (found.vgprs, found.lds_bytes)
    assert (work.resources.threads, found.vgpr_spills) == (found.threads, 0)


@needs_triton
@pytest.mark.parametrize("name", SIZES)
def test_the_other_order_moves_workgroups(answers, name):
    assert any(answer["moved"] for answer, case in zip(answers, CASES, strict=True) if case[0] == name)
