"""Does every notebook run, show what is stored, and tell its story without figures typed by hand?"""

import re
import sys
from importlib.util import find_spec

import pytest

from swizzle_benchmarks.evidence.docs.notebooks import complaints, executed, notebooks, read, shown

STORED = notebooks()
NEEDS = {"03": "triton", "06": "dspy"}
MAX_BYTES = 400_000
PRIVATE = re.compile(r"/home/|/root/|/Users/|/tmp/|/var/folders/|/opt/|site-packages|[A-Z]:\\\\Users|at 0x[0-9a-f]{6}")
FIGURE = re.compile(r"\d+\.\d+ ?%|\d+(\.\d+)? points")


def named(path):
    return path.stem


def test_there_are_seven():
    assert [path.name[:2] for path in STORED] == [f"{n:02}" for n in range(1, 8)]


@pytest.mark.parametrize("path", STORED, ids=named)
def test_a_fresh_run_shows_what_is_stored(path):
    extra = NEEDS.get(path.name[:2], "numpy")
    if find_spec(extra) is None:
        pytest.skip(f"{path.name} needs {extra}, which is not installed here")
    if extra == "triton" and (sys.platform != "linux" or sys.version_info < (3, 11)):
        pytest.skip("capture needs Triton 3.9: Linux and Python 3.11 or newer")
    stored = read(path)
    fresh = executed(stored)
    assert not complaints(fresh)
    for (source, now), (_, then) in zip(shown(fresh), shown(stored), strict=True):
        assert now == then, (
            f"{path.name} is stale, run python -m swizzle_benchmarks.evidence.docs.notebooks: {source[:200]}"
        )
    kinds = [[sorted(out.get("data", {})) for out in cell.get("outputs", ())] for cell in fresh.cells]
    assert kinds == [[sorted(out.get("data", {})) for out in cell.get("outputs", ())] for cell in stored.cells]


@pytest.mark.parametrize("path", STORED, ids=named)
def test_the_stored_file_is_small_and_tells_nothing_of_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < MAX_BYTES
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not PRIVATE.search(without_pictures), PRIVATE.search(without_pictures)
    assert "execution_state" not in text and "iopub" not in text
    assert set(read(path).metadata) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("path", STORED, ids=named)
def test_a_notebook_has_a_question_at_its_start_and_a_computed_answer_at_its_end(path):
    cells = read(path).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ") and "**Question: " in cells[0].source
    answers = [cell for cell in cells if cell.cell_type == "code" and "## Answer" in cell.source]
    assert len(answers) == 1
    assert any("## Answer" in out.get("data", {}).get("text/markdown", "") for out in answers[0].outputs)
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert re.search(r"\*\*simulated\*\*|\*simulated\*", prose)
    assert not FIGURE.search(prose), "a figure that a cell could compute"


@pytest.mark.parametrize("path", STORED, ids=named)
def test_links_lead_somewhere(path):
    prose = "\n".join(cell.source for cell in read(path).cells)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("https://") or (path.parent / target).is_file(), target
    for page in re.findall(r"`((?:docs|benchmarks)/[\w/.-]+\.md)`", prose):
        assert (path.parents[1] / page).is_file(), page


def test_pictures_say_what_they_hold():
    for path in STORED:
        for cell in read(path).cells:
            for out in cell.get("outputs", ()):
                if "image/png" in out.get("data", {}):
                    assert re.search(r"\((simulated|exact|x: measured)", out.data["text/plain"]), cell.source[:80]
