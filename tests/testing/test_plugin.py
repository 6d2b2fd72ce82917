"""Does the pytest plugin collect what is asked for, fail with the counter-example alone, and cost nothing otherwise?"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

# pytester takes out what an inner run imported, and numpy does not come twice: it has to be here before
import swizzle_sim.testing.run  # noqa: F401

pytest_plugins = ("pytester",)
FILE = Path(__file__).parent / "files" / "remap_triton.py"
NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n"
MODULE = "def test_other():\n    pass\n"


@pytest.fixture
def project(pytester, monkeypatch):
    folder = pytester.mkdir("kernels")
    (folder / "naive.txt").write_text(NAIVE)
    (folder / "mine.py").write_text("# swizzle-check\ndef back(pid, num_pids):\n    return num_pids - 1 - pid\n")
    (folder / "remap.py").write_text(FILE.read_text(encoding="utf-8"))
    pytester.makepyfile(test_mine=MODULE)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # what else is installed here is not on trial
    return pytester


def test_pytest_finds_the_plugin_by_itself():
    (entry,) = metadata.entry_points(group="pytest11", name="swizzle_sim")
    assert entry.value == "swizzle_sim.testing.plugin"


def run(pytester, *words):
    """An inner run with warnings as errors; that the plugin is here already is one where pytest found it by itself."""
    known = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return pytester.runpytest_inprocess("-W", "error", "-W", known, "-p", "swizzle_sim.testing.plugin", *words)


def test_files_are_items(project):
    done = run(project, "--swizzle-check", "kernels", "-rs")
    done.assert_outcomes(passed=1 + 1 + 5, failed=1 + 2, skipped=1)
    done.stdout.fnmatch_lines(
        [
            "swizzle-check: kernels",
            "*naive.txt: proved where num_pids % num_xcds == 0; NOT a bijection at grid 2, 8 XCDs*",
            "*remap_naive: proved where num_pids % num_xcds == 0; NOT a bijection*",
            "*leaves_early: n has no value*",
        ]
    )
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*bijective.py*")


def test_alone_by_marker_and_by_name(project):
    run(project, "--swizzle-check", "kernels/mine.py", "-m", "swizzle", "-k", "back").assert_outcomes(
        passed=1, deselected=1
    )
    run(project, "-m", "not swizzle").assert_outcomes(passed=1)
    done = run(project, "--swizzle-check", "missing.txt", "-k", "missing")
    done.assert_outcomes(failed=1, deselected=1)
    done.stdout.fnmatch_lines(["*missing.txt: cannot be read*"])


def test_the_ini_option_is_the_same(project):
    project.makeini("[pytest]\nswizzle_check = kernels/mine.py\naddopts = --strict-markers --strict-config")
    run(project, "-k", "back or other").assert_outcomes(passed=2)


def test_collecting_twice_gives_the_same_items_in_the_same_order(project):
    # what pytest-xdist asks of every worker
    ids = [run(project, "--swizzle-check", "kernels", "--collect-only", "-q").outlines[:-1] for _ in range(2)]
    assert ids[0] == ids[1]
    assert "kernels/mine.py::back" in ids[0]


def test_loading_the_plugin_imports_nothing_heavy():
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport swizzle_sim.testing.plugin\n"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}))\n"
        "print(sorted(name for name in sys.modules if name.startswith(('swizzle_sim', 'xcd_model'))))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    packages, own = done.stdout.splitlines()
    assert packages == "['swizzle_sim', 'xcd_model']"
    assert own == (  # names of a package are read from its stub: no module of it is imported for them
        "['swizzle_sim', 'swizzle_sim.testing', 'swizzle_sim.testing.plugin', 'xcd_model', 'xcd_model.lazy']"
    )
