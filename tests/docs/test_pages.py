"""Are the generated parts what their scripts write today, does every page have its place, and does the site build?"""

import os
import re
import subprocess
import sys

import pytest

from swizzle_benchmarks.evidence.docs.regenerate import EXCHANGE, MEASURED, PREDICTED, pages
from tests.docs.typed import ROOT, blocks

DOCS = ROOT / "docs"
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


def test_python_of_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    shown = {
        block.title or block.language: "\n".join(block.lines) for block in blocks((DOCS / "tutorial.md").read_text())
    }
    (tmp_path / "mine.txt").write_text(shown["mine.txt"])
    monkeypatch.chdir(tmp_path)
    exec(compile(shown["python"].replace("2048", "512").replace("64", "16"), "tutorial", "exec"), {})
    domain, rate = capsys.readouterr().out.splitlines()
    assert domain == "num_pid_n % 16 == 0" and 0.45 < float(rate) < 0.81


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
