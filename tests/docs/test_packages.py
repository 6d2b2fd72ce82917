"""Does a project that has an `agent` and a `benchmarks` of its own still import ours?

The tree that a wheel is made of, without `xcd_model` (compiled here already), stands in front of what is installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
