"""Is each access model of the kernels beyond the paper, line by line, what its Triton kernel does?"""

import pytest

from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_same_trace, needs_triton
from tests.suite.beyond_sizes import SIZES


@needs_triton
@pytest.mark.parametrize("name", SIZES)
def test_access_model_is_the_kernel(name):
    assert_same_trace(*map(by_tile, (kernel(name, **sizes) for sizes in SIZES[name])))


def by_tile(work):
    """A persistent kernel with as many programs as tiles."""
    return work if work.programs is None else kernel(work.name, **{**work.problem, "PROGRAMS": work.grid.num_pids})
