"""Does the prose of pages hold no figures but those of their commands, and do notebooks and folders become pages?"""

import re

import pytest

import swizzle_sim as sim
from swizzle_benchmarks.evidence.docs.notebook_pages import as_markdown, notebook_pages
from swizzle_benchmarks.evidence.docs.regenerate import PICTURES
from swizzle_benchmarks.evidence.docs.site import complete
from tests.docs.typed import ROOT

DOCS = ROOT / "docs"
FIGURE = re.compile(r"\d[\d.,]*\s?(?:%|µs|us\b|ms\b|ns\b|[KMG]B\b|[GT]B/s|points?\b)")
TOLD = {"tutorial.md", "cli.md"}  # figures held by a test below; a generated page
RULES: dict[str, list[str]] = {}  # a threshold, not a measurement


def prose(text):
    """Lines outside of tables, blocks of code and lists of notes that are generated."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if not fenced and not line.startswith(("    ", "|", "- mi3", "- h")):
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


PARTS = ("Status", "Context", "Decision", "Consequence")


def test_pictures_exist():
    for name in PICTURES:
        assert (DOCS / "pictures" / name).stat().st_size > 10_000


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_is_half_a_page_in_four_parts(path):
    text = path.read_text(encoding="utf-8")
    parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.M)
    assert [one for one in parts if one in PARTS] == list(PARTS)
    assert len(text.split()) <= 400 and text.startswith(f"# {path.stem[:4]} ")


def test_a_decision_that_is_cited_exists():
    numbers = {path.stem[:4] for path in (DOCS / "decisions").glob("*.md")}
    sources = [ROOT / "README.md", *DOCS.rglob("*.md"), *(ROOT / "xcd_model").rglob("*.py")]
    sources += [*(ROOT / "xcd_model").rglob("*.toml"), *(ROOT / "swizzle_sim").rglob("*.py")]
    sources += [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "benchmarks/validation").rglob("*.csv")]
    for path in sources:
        cited = re.findall(r"[Dd]ecisions? \[?(\d{4})", path.read_text(encoding="utf-8"))
        assert set(cited) <= numbers, path


def test_the_documentation_is_short_enough_to_read():
    pages = [*DOCS.rglob("*.md")]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= 45_000


def test_folders_become_their_pages_and_only_named_pages_may_be_absent(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in ("b.md", "a.md", "index.md"):
        (tmp_path / "notes" / name).touch()
    nav = ["index.md", {"Notes": "notes/"}, {"None": "absent/"}, {"How": [{"Typo": "scoore.md"}]}]
    assert complete(nav, tmp_path, ["notes/z.md", "others/a.md"]) == [
        "index.md",
        {"Notes": ["notes/index.md", "notes/a.md", "notes/b.md", "notes/z.md"]},
        {"How": [{"Typo": "scoore.md"}]},
    ]


def test_a_notebook_becomes_a_page():
    png = {"image/png": "iVBO\nRw==\n", "text/plain": ["<Picture: a > b>"]}
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
        {"output_type": "display_data", "data": png},
        {"output_type": "execute_result", "data": {"text/html": "<p>x\n\ny</p>", "text/plain": "x"}},
        {"output_type": "execute_result", "data": {"text/plain": "```"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "[next](02_more.ipynb), [model](../docs/model.md)"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": outputs},
    ]
    assert as_markdown({"cells": cells}).split("\n\n") == [
        "# Title\n[next](02_more.md), [model](../model.md)",
        "```python\n1 + 1\n```",
        "```text\none\ntwo\n```",
        '<div class="output"><img alt="Picture: a &gt; b" src="data:image/png;base64,iVBORw=="></div>',
        '<div class="output"><p>x y</p></div>',
        "````text\n```\n````\n",
    ]


def test_every_notebook_has_its_page():
    stored = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert list(notebook_pages()) == [f"notebooks/{path.stem}.md" for path in stored]
