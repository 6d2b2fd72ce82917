"""Are pages as their scripts write them, with no other figures, do links lead somewhere, and does the site build?"""

import os
import re
import subprocess
import sys

import pytest

from swizzle_benchmarks.evidence.docs.notebook_pages import as_markdown, notebook_pages
from swizzle_benchmarks.evidence.docs.regenerate import EXCHANGE, MEASURED, PICTURES, PREDICTED, pages
from swizzle_benchmarks.evidence.docs.site import complete
from tests.docs.typed import ROOT

DOCS = ROOT / "docs"
FIGURE = re.compile(r"\d[\d.,]*\s?(?:%|µs|us\b|ms\b|ns\b|[KMG]B\b|[GT]B/s|points?\b)")
TOLD = {"cli.md"}  # a generated page
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
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in DOCS.rglob("*.md")) <= 45_000


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


# ---- Are the generated parts what their scripts write today, and does every page have its place in the site?
GENERATED = (
    *("docs/gpus.md", "docs/families.md", "docs/cli.md", "docs/language.md", "docs/howto/check-remap.md"),
    *("docs/believe.md", "docs/tutorial.md", "README.md", EXCHANGE, PREDICTED, MEASURED),
)
FOLDERS = "xcd_model|swizzle_sim|agent|benchmarks|tests|notebooks|docs"
REMOTE = re.compile(r"""(?:src|href)=["']?(?:https?:)?//|@import\s|url\(["']?(?:https?:)?//|fonts\.g""")


@pytest.fixture(scope="module")
def generated():
    return pages()


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_page_is_up_to_date(generated, path):
    assert (ROOT / path).read_text(encoding="utf-8") == generated[path], "run: make docs"


def test_every_generated_page_is_looked_at(generated):
    assert set(generated) == set(GENERATED)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs", "benchmarks"])
def test_links_lead_somewhere(page):
    sources = sorted((ROOT / page).rglob("*.md")) if (ROOT / page).is_dir() else [ROOT / page]
    for source in sources:
        text = source.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (source.parent / target).exists(), f"{source.name}: {target}"
        named = re.findall(rf"`((?:{FOLDERS})/[^`\s*]*)`", text)
        for target in named if page != "benchmarks" else ():
            assert (ROOT / target).exists() or "NAME" in target, f"{source.name}: {target}"


def test_every_name_of_the_glossary_exists_in_code():
    """Of a dotted name each part; a file of the machine or of the experiment, or a description of a GPU."""
    sources = [*(ROOT / "xcd_model").rglob("*.py"), *(ROOT / "xcd_model").rglob("*.toml")]
    sources += (ROOT / "swizzle_sim").rglob("*.py")
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in sources)))
    text = (DOCS / "glossary.md").read_text(encoding="utf-8").partition("## Evidence")[0]
    cells = [line.split(" | ")[2] for line in text.splitlines() if line.startswith("| ") and line.count(" |") > 3]
    names = [
        name for cell in cells[1:] for quoted in re.findall(r"`([^`]+)`", cell) for name in re.findall(r"\w+", quoted)
    ]
    assert len(names) > 40
    assert set(names) <= words


def test_the_site_builds_strictly_and_asks_nobody(tmp_path):
    pytest.importorskip("mkdocs")
    site = tmp_path / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stdout + built.stderr
    written = sorted(site.rglob("*.html"))
    assert len(written) > 35
    for page in written:
        text = page.read_text(encoding="utf-8")
        links = re.sub(r"<a [^>]*>", "", text)  # what a reader may follow is not what a page asks for
        assert not REMOTE.search(links), page.name
    assert (
        "Mattson" not in (site / "index.html").read_text() and "replay_lru" in (site / "api/xcd_model.html").read_text()
    )
