"""Does the megakernel compute its MLP with flags that nobody set before, and hang where an order is refused?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from xcd_model import gpu
from xcd_model.errors import Deadlock

ROOT = Path(__file__).parents[3]


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
    command = [sys.executable, "-m", "benchmarks.tests.suite.run_megakernel", str(folder)]
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
