"""Is the page of policies that of the figures kept, over a hundred sizes a kernel, and does a rule lose little?"""

import json

import pytest

from swizzle_benchmarks.evidence.policies.page import ASKED, FOUND, PAGE, cells, page
from swizzle_sim.search.policy.sizes import grid_of
from swizzle_sim.search.sweep import read_sizes

KEPT = json.loads(FOUND.read_text())


def test_the_page_is_that_of_the_figures():
    assert PAGE.read_text() == page(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_a_policy_is_over_a_hundred_sizes_and_loses_under_a_percent(name):
    (asked,) = (one for one in ASKED if one.name == name)
    sizes = dict.fromkeys(asked.over.replace("+", ",").split(","), 0)
    asked_for = grid_of(sizes, asked.over, [read_sizes(one) for one in asked.values])
    found = KEPT[name]
    assert len(found["sizes"]) + found["left_out"] == len(asked_for) >= 100
    assert sum(rule["sizes"] for rule in found["rule"]) == len(found["sizes"])
    lost = float(cells(found)[2])
    assert lost < 1, "the mean over all sizes"
