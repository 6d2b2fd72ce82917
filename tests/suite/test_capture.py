"""Is each access model of the suite, line by line, what its Triton kernel does?"""

import pytest

from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_equal_traces, assert_same_trace, needs_triton
from tests.suite.sizes import SIZES


@needs_triton
@pytest.mark.parametrize("name", sorted(set(SIZES) - {"gemm_streamk"}))
def test_access_model_is_the_kernel(name):
    assert_same_trace(*map(by_tile, (kernel(name, **sizes) for sizes in SIZES[name])))


def by_tile(work):
    """A persistent kernel with as many programs as tiles."""
    return work if work.programs is None else kernel(work.name, **{**work.problem, "PROGRAMS": work.grid.num_pids})


@needs_triton
def test_streamk_access_model_is_the_kernel():
    """Interpreted workgroup by workgroup: it branches on locks that it also writes, which capture does not follow."""
    from swizzle_sim.capture.capture import capture_all

    works = [kernel("gemm_streamk", **sizes) for sizes in SIZES["gemm_streamk"]]
    for work, found in zip(works, capture_all([work.launch for work in works], full=True), strict=True):
        assert_equal_traces(work.build_trace(128), found.trace, str(work.problem))
