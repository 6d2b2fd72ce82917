"""Do public remaps and the paper's formulas fail at the smallest grid on which they do not hold, and nowhere else?"""

from itertools import product

import pytest

from swizzle_benchmarks.evidence.paper.formulas import FORMULAS
from swizzle_benchmarks.evidence.remaps.corpus import EVERY, PUBLIC
from swizzle_sim.testing import assert_bijective
from tests.testing.test_bijective import failure


@pytest.mark.parametrize("remap", PUBLIC, ids=lambda one: one.name)
def test_public_remaps_at_the_default_grids(remap):
    """The tail of opus first fails beyond 256 tiles: no hint is given of it."""
    if remap.right == EVERY:
        assert_bijective(remap.text)
    else:
        outcome, _ = failure(remap.text)
        assert outcome.point.grid.num_pids > (256 if remap.name.startswith("opus bf16") else 1)


LAUNCH = {
    "6": "M",
    "8": "cdiv(Nx, BLOCK_SIZE_X), cdiv(Ny, BLOCK_SIZE_Y)",
    **dict.fromkeys(("9", "10", "11", "12"), "cdiv(M, BLOCK_SIZE_M), cdiv(N, BLOCK_SIZE_N)"),
}


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda one: one.label)
def test_the_papers_formulas_fail_at_the_smallest_grid_on_which_they_do_not_hold(formula):
    launch = LAUNCH.get(formula.label, "")
    blocks = {name: 1 for name in ("BLOCK_SIZE_X", "BLOCK_SIZE_Y", "BLOCK_SIZE_M", "BLOCK_SIZE_N") if name in launch}
    shapes = (
        product(range(1, 11), repeat=2)
        if "," in launch or "as run" in formula.label
        else ((n, 1) for n in range(1, 65))
    )
    failing = [(m, n) for m, n in shapes if not formula.holds(m, n)]
    outcome, _ = failure(formula.text, launch=launch, **blocks)
    grid = outcome.point.grid
    m, n = grid.shape or (*grid.launch, 1)
    assert (m, n) in failing
    assert m * n == min(a * b for a, b in failing)
