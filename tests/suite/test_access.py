"""Do the access models of the suite touch the lines that the Triton kernels do? (Item by item in `make evidence`.)"""

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.waiting import waited, with_flags_unset
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_equal_traces, assert_same_trace, needs_triton
from tests.suite.small import NAMES, small
from xcd_model import gpu


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
