"""Does every kernel of the suite load as its compiled code does: bytes of a lane at once, and how many loads?"""

from collections import Counter

import pytest

from swizzle_sim.capture.occupancy import compile_launch
from swizzle_sim.workload.kernels import kernel, kernel_names
from tests.capture.same_trace import needs_triton

pytestmark = [needs_triton, pytest.mark.packages]  # about 10 s of Triton's compiler each
STRAIGHT = ("black_scholes", "fdtd_2d", "fused_elementwise", "softmax", "stencil_2d", "stencil_3d", "transpose")
OTHERWISE = {
    "smith_waterman": "characters come one by one",
    "spmv": "a gather does not know its lanes",
}


def loads_of_a_wave(launch, trace):
    """Bytes of a lane at once -> instructions of a wave, over the loads of a workgroup inside the grid.

    Where a tile has fewer than 16 B for each lane, Triton deals it out over all lanes of the workgroup.
    """
    workgroup, found = trace.n_workgroups // 2 + 1, Counter()
    for instruction in range(trace.start[workgroup], trace.start[workgroup + 1]):
        template = trace.template[instruction]
        if not trace.is_write[template]:
            waves, _, at_once, _ = map(int, trace.waves[template])
            full, left = divmod(waves, launch.num_warps)
            found[at_once] += full
            if left and not full:
                found[at_once * left // launch.num_warps] += 1
    return +found


@pytest.mark.parametrize("name", STRAIGHT)
def test_as_many_loads_as_the_compiled_code_has(name):
    ours = kernel(name)
    compiled = dict(map(tuple, compile_launch(ours.launch, "gfx942").loads))
    assert loads_of_a_wave(ours.launch, ours.build_trace(128)) == compiled


@pytest.mark.parametrize(
    "name", [name for name in kernel_names() if kernel(name).clusters is None and name not in (*STRAIGHT, *OTHERWISE)]
)
def test_the_loads_of_loops_are_as_wide(name):
    """By the width of most loads: code holds a loop's once, and once more for each stage that is peeled off."""
    ours = kernel(name)
    compiled = dict(map(tuple, compile_launch(ours.launch, "gfx942").loads))
    predicted = loads_of_a_wave(ours.launch, ours.build_trace(128))
    assert max(predicted, key=predicted.get) == max(compiled, key=compiled.get) == 16
    assert all(width in (4, 16) for width in compiled)  # 4: a length or a flag, by one lane
