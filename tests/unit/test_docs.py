"""Are the generated parts of the documentation what their scripts write today?"""

import re
import shlex

import pytest
from typer.main import get_command

from benchmarks.docs.regenerate import PICTURES, ROOT, pages
from swizzle_sim.cli.app import app


@pytest.fixture(scope="module")
def generated():
    return pages()


@pytest.mark.parametrize("path", ["docs/gpus.md", "docs/families.md", "docs/decisions/0003-l2-index.md", "README.md"])
def test_a_generated_page_is_up_to_date(generated, path):
    assert (ROOT / path).read_text(encoding="utf-8") == generated[path], "run: make docs"


def test_pictures_exist():
    for name in PICTURES:
        assert (ROOT / "docs" / "pictures" / name).stat().st_size > 10_000


def test_the_commands_of_the_readme_parse():
    command = get_command(app)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^ {4}(?:\$ )?(swizzle-sim .*)$", text, re.M)
    assert len(lines) >= 6
    for line in lines:
        for part in line.split(" # ")[0].split(";"):
            words = shlex.split(part)
            known = command.commands[words[1]]
            known.make_context(words[1], words[2:])


def test_links_of_the_documentation_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
