"""Does the megakernel compute its MLP with flags that nobody set before, and hand out its queues as is said?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.waiting import waited, with_flags_unset
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_same_trace, needs_triton
from tests.suite.test_access import by_tile
from xcd_model import gpu
from xcd_model.errors import Deadlock

ROOT = Path(__file__).parents[2]
SMALL = {"M": 128, "K": 32, "H": 192, "N": 64, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}  # 4 x (6 + 2) tiles
CONTIGUOUS = "tile % POOLS * (num_tiles // POOLS) + tile // POOLS"
CASES = [
    ({**SMALL, "PROGRAMS": 8, "POOLS": 4}, "tile", 0),
    ({**SMALL, "PROGRAMS": 8, "POOLS": 4}, CONTIGUOUS, 1),
    ({**SMALL, "PROGRAMS": 5, "POOLS": 4, "LOCAL": 50}, "tile", 2),
    ({**SMALL, "PROGRAMS": 3, "POOLS": 1}, "tile", 3),
    ({**SMALL, "M": 100, "H": 150, "N": 50, "PROGRAMS": 7, "POOLS": 4}, "tile", 4),
    ({**SMALL, "PROGRAMS": 2, "POOLS": 1}, "num_tiles - 1 - tile", 5),
    ({**SMALL, "PROGRAMS": 4, "POOLS": 4}, "num_tiles - 1 - tile", 6),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("megakernel")
    (folder / "cases.json").write_text(json.dumps(CASES))
    command = [sys.executable, "-m", "tests.suite.run_megakernel", str(folder)]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [dict(np.load(folder / f"{i}.npz")) for i in range(len(CASES))]


@needs_triton
@pytest.mark.parametrize("i", range(len(CASES)))
def test_programs_that_wait_for_flags_compute_the_reference_or_hang_where_it_is_refused(answers, i):
    sizes, expression, _ = CASES[i]
    work = kernel("mlp_megakernel", **sizes)
    if expression == "num_tiles - 1 - tile":
        assert answers[i]["stuck"]
        with pytest.raises(Deadlock):
            Scorer(work, gpu("mi300x")).permutation(Swizzle.parse(family("reverse")))
        return
    wanted = work.reference(work.make_inputs(0))["y"]
    np.testing.assert_allclose(answers[i]["y"].astype(np.float64), wanted, atol=0.01, rtol=2**-9)


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
