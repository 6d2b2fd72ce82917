"""Are the prompts of all kernels at their default sizes those that were read?"""

import pytest

from swizzle_sim.workload.kernels import registered
from tests.agent.prompts import DATA, KERNELS, briefed_at_default, golden_text


@pytest.mark.parametrize("name", registered(KERNELS))
def test_a_prompt_is_as_read(name):
    assert golden_text(briefed_at_default(name)) == (DATA / f"{name}.txt").read_text(), "meant? tests.agent.prompts"
