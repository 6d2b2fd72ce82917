"""Public remaps and wrong ones: is each refuted or proved with no hint, and what the page says of it true?"""

import pytest

from swizzle_benchmarks.evidence.remaps.corpus import EVERY
from swizzle_benchmarks.evidence.remaps.judge import REMAPS, judge
from swizzle_sim.language import Grid
from swizzle_sim.testing import as_candidate
from swizzle_sim.testing.grids_to_try import kind_of
from tests.attack.proof_texts import holds_at


@pytest.mark.parametrize("remap", REMAPS, ids=lambda one: one.name)
def test_what_is_wrong_is_refuted_and_what_is_right_is_proved(remap):
    found = judge(remap)
    assert found.as_it_should, found.outcome.message
    assert found.domain_proved, found.within.message


@pytest.mark.parametrize("remap", [one for one in REMAPS if one.fails], ids=lambda one: one.name)
def test_the_tiles_that_are_computed_are_counted(remap):
    sides, xcds, computed = remap.fails
    candidate, _ = as_candidate(remap.text, remap.sizes)
    tiled = kind_of(candidate.form) == "tiles"
    grid = Grid((sides[0] * sides[1],), sides) if tiled else Grid(sides)
    found = candidate.counterexample(grid, xcds, {})
    assert found.distinct_tiles == computed
    assert not holds_at(candidate.form, grid, xcds)


def test_the_corpus_has_public_formulas_the_papers_and_both_outcomes():
    assert len(REMAPS) == 30
    assert sum(one.right == EVERY for one in REMAPS) >= 9
