"""Does the prose of pages hold no figures, but those that the commands beside them print?"""

import re
from pathlib import Path

import pytest

import swizzle_sim as sim
from swizzle_sim.search.ranking import times_note

DOCS = Path(__file__).parents[2] / "docs"
FIGURE = re.compile(r"\d[\d.,]*\s?(?:%|µs|us\b|ms\b|ns\b|[KMG]B\b|[GT]B/s|points?\b)")
TOLD = {"tutorial.md", "cli.md"}  # figures held by a test below; a generated page
RULES = {"hardware.md": ["1 %"]}  # a threshold, not a measurement


def prose(text):
    """Lines outside of tables, blocks of code and lists of notes that are generated."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if not fenced and not line.startswith(("    ", "|", "- Time")):
            yield line


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_prose_holds_no_figure(path):
    found = [figure for line in prose(path.read_text(encoding="utf-8")) for figure in FIGURE.findall(line)]
    assert path.name in TOLD or found == RULES.get(path.name, [])


def test_the_rates_of_the_tutorial_are_those_of_its_commands():
    scorer = sim.Scorer(sim.kernel("gemm", M=4096, N=4096, K=8192), sim.gpu("mi355x"))
    orders = ("contiguous+row", "contiguous+group_m(size=4)")
    found = [scorer.baseline, *(scorer.score(sim.Swizzle.read(order)) for order in orders)]
    rates = [f"{100 * one.l2_hit_rate:.1f}" for one in found]
    text = (DOCS / "tutorial.md").read_text().partition("## 3.")[0]
    assert all(order in text for order in orders)
    printed = [rates[1], rates[2]]
    assert rates[0] == rates[1]  # "as in launch order"
    bound = f"{100 * scorer.bound.l2_hit_rate:.1f}"
    assert re.findall(r"(\d+\.\d+) %", text) == [bound, *printed] and printed[1] == bound


def test_what_times_are_worth_is_what_the_tables_say():
    text = (DOCS / "believe.md").read_text()
    for gpu in ("mi300x", "mi355x", "h200"):
        assert f"- {times_note(gpu, 'timed')}\n" in text
