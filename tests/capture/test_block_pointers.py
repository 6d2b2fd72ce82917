"""Block pointers, which Triton 3.9 no longer has: do they touch, compile and copy as pointers with a mask do?"""

import pytest

from swizzle_sim.capture.capture import capture_all
from tests.capture.same_trace import assert_equal_traces, needs_triton

pytestmark = needs_triton
pytest.importorskip("triton")

from swizzle_sim.capture.occupancy import compile_launch  # noqa: E402
from tests.capture.kernels.block_pointers import by_blocks, by_mask, transposed, transposed_by_mask  # noqa: E402


def test_they_touch_what_pointers_with_a_mask_touch():
    ours = capture_all([one.at() for one in (by_blocks, transposed)])
    plain = capture_all([one.at() for one in (by_mask, transposed_by_mask)])
    for mine, other in zip(ours, plain, strict=True):
        assert_equal_traces(mine.trace, other.trace, "by blocks")
    small = [by_blocks.at(M=70, K=40)]
    assert_equal_traces(capture_all(small)[0].trace, capture_all(small, full=True)[0].trace, "interpreted")


def test_they_are_carried_through_loops_and_calls_by_the_compiler():
    mine, other = (compile_launch(one.at(), "gfx942") for one in (by_blocks, by_mask))
    assert mine.loads == other.loads and mine.loads_per_step == other.loads_per_step == 1
