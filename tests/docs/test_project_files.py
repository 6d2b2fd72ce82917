"""Do the files that say who made this, under which terms, and on what machine say it right?"""

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from swizzle_sim.base.release import version
from swizzle_sim.cli.app import app
from swizzle_sim.hardware.doctor import report_markdown, scrubbed
from tests.docs.typed import ROOT

CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_one_licence_everywhere():
    assert "Apache License" in (ROOT / "LICENSE").read_text() and "Version 2.0" in (ROOT / "LICENSE").read_text()
    assert (CFF["license"], CFF["version"]) == ("Apache-2.0", version())
    assert re.search(r"^license = Apache-2.0$", (ROOT / "setup.cfg").read_text(), re.M)


@pytest.fixture
def private(monkeypatch, tmp_path):
    """A user with a name, a home, keys, and a cache inside of that home."""
    home = tmp_path / "home" / "ada.lovelace"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "ada.lovelace")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-told")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1234567")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return home


def test_a_report_is_a_table_without_names_paths_keys_or_values(private, monkeypatch):
    monkeypatch.setattr(
        "swizzle_sim.hardware.doctor.checks",
        lambda: iter([("GPU", "ok", "MI300X of ada.lovelace"), ("C++ compiler", "ok", str(private / "bin/c++"))]),
    )
    text = report_markdown()
    lines = text.splitlines()
    assert lines[1:3] == ["| what | found |", "| --- | --- |"]
    assert all(line.count("|") == 3 for line in lines[1:])
    for secret in ("ada", "lovelace", str(private), "sk-not", "1234567"):
        assert secret not in text
    assert os.uname().nodename not in text.replace("|", " ").split()
    assert "| C++ compiler | found |" in text
    assert "NUMBA_NUM_THREADS" in text
    assert f"| swizzle-sim | {version()}" in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/ada/x and /Users/bob/y", "~/x and ~/y"),
        (r"C:\Users\eve\z", r"~\z"),
        (f"{Path.home()}/w" if len(str(Path.home())) > 1 else "w", "~/w" if len(str(Path.home())) > 1 else "w"),
    ],
)
def test_home_folders_are_struck_and_a_user_name_as_a_word(text, kept, monkeypatch):
    assert scrubbed(text) == kept
    monkeypatch.setattr(getpass, "getuser", lambda: "grace")
    assert scrubbed("grace at graceful") == "USER at graceful"


def test_the_command_prints_the_block_alone(monkeypatch):
    monkeypatch.setattr("swizzle_sim.hardware.doctor.checks", lambda: iter([]))
    said = CliRunner().invoke(app, ["doctor", "--report"])
    assert said.exit_code == 0 and said.output.startswith("<!-- swizzle-sim doctor --report -->\n| what |")


# ---- Does a project that has an `agent` and a `benchmarks` of its own still import ours?
# The tree that a wheel is made of, without `xcd_model` (compiled here already), stands in front of what is installed.
TESTS = ROOT / "benchmarks/tests"  # not installed, so imported from the checkout
CLASHING = ("agent", "benchmarks")
PROBE = """
import importlib, pkgutil, sys
import agent, benchmarks
assert agent.THEIRS and benchmarks.THEIRS
for name in ("swizzle_agent", "swizzle_benchmarks", "swizzle_sim"):
    package = importlib.import_module(name)
    assert package.__path__[0].startswith(sys.argv[1]), package.__path__
    print(name, *sorted(found.name for found in pkgutil.walk_packages(package.__path__, name + ".")))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Tree of a wheel, with its entry points."""
    place = tmp_path_factory.mktemp("wheel")
    words = ["build_py", "--build-lib", str(place), "egg_info", "--egg-base", str(place)]
    subprocess.run([sys.executable, "setup.py", "-q", *words], cwd=ROOT, check=True, capture_output=True)
    shutil.rmtree(place / "xcd_model")
    return place


@pytest.fixture
def project(tmp_path):
    """A folder with packages of the same names as the folders of this repository."""
    for name in CLASHING:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("THEIRS = True\n")
    return tmp_path


def run(built, project, *words):
    environment = os.environ | {"PYTHONPATH": f"{project}{os.pathsep}{built}", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def command(built, project, *words):
    return run(built, project, "-c", "from swizzle_sim.cli import main; main()", *words)


def test_nothing_is_installed_under_a_name_of_others(built):
    found = {path.name for path in built.iterdir() if path.is_dir()}
    assert found == {"swizzle_agent", "swizzle_benchmarks", "swizzle_sim", "swizzle_sim.egg-info"}


def test_every_module_of_the_folders_is_installed(built):
    for folder in ("agent", "benchmarks/suite"):
        for path in (ROOT / folder).rglob("*.py"):
            assert (built / f"swizzle_{path.relative_to(ROOT)}").is_file(), path
    assert (built / "swizzle_agent/prices.toml").is_file()
    assert sorted(path.name for path in (built / "swizzle_benchmarks").iterdir()) == ["__init__.py", "suite"]


def test_nobody_imports_the_folders_by_their_own_names():
    """A second copy of a module would not be the one that entry points load."""
    pattern = re.compile(r'^\s*(?:"\s*)?(?:from|import) (?:agent|benchmarks)\b', re.M)
    found = [
        path.relative_to(ROOT)
        for folder in (*CLASHING, "swizzle_sim", "tests", "notebooks")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".ipynb") and path != Path(__file__) and not path.is_relative_to(TESTS)
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_ours_are_imported_next_to_theirs(built, project):
    done = run(built, project, "-c", PROBE, str(built))
    assert done.returncode == 0, done.stderr
    assert "swizzle_benchmarks.suite.gemm" in done.stdout and "swizzle_agent.loop" in done.stdout


def test_commands_find_kernels_and_proposers(built, project):
    scored = command(built, project, "score", "gemm", "M=512", "N=512", "K=64", "--swizzle", "row", "--json")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["kernel"] == "gemm"
    checked = command(built, project, "doctor")
    assert "swizzle_agent" not in checked.stderr and "No module" not in checked.stdout + checked.stderr
