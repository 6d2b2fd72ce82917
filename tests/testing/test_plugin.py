"""Does the pytest plugin collect what is asked for, fail with the counter-example alone, and cost nothing otherwise?"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import swizzle_sim.testing.run  # noqa: F401
from swizzle_sim.testing import HitRateError, assert_hit_rate
from xcd_model.errors import NotBijective, OptionError, SwizzleSimError

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


# ---- Does a remap that is lost fall below a floor?
REMAP = """
import triton
import triton.language as tl

@triton.jit
def place(pid, num_pids, NUM_XCDS: tl.constexpr = 8):
    xcd = pid % NUM_XCDS
    return xcd * (num_pids // NUM_XCDS) + min(xcd, num_pids % NUM_XCDS) + pid // NUM_XCDS
"""
KERNEL = """
import triton
import triton.language as tl
from remap import place
from swizzle_sim.capture import Array, Kernel

@triton.jit
def rows(a_ptr, c_ptr, N, BLOCK: tl.constexpr):
    pid = place(tl.program_id(0), tl.num_programs(0))
    at = pid // 32 * BLOCK + tl.arange(0, BLOCK)  # 32 workgroups read the same row
    tl.store(c_ptr + pid * BLOCK + tl.arange(0, BLOCK), tl.load(a_ptr + at))

kernel = Kernel(
    rows,
    sizes={"N": 512, "BLOCK": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.N // 32, s.BLOCK), dtype="fp32"),
        "c_ptr": Array(shape=(s.N, s.BLOCK), dtype="fp32", role="out"),
        "N": s.N,
    },
    constexprs=lambda s: {"BLOCK": s.BLOCK},
    grid=lambda s: (s.N,),
)
"""
SMALL = {"M": 1024, "N": 1024, "K": 256}


def test_a_floor_that_is_reached():
    assert_hit_rate("gemm", at_least=0.0, **SMALL)
    assert_hit_rate("gemm", "contiguous", "mi300x", at_least=0.1, **SMALL)
    assert_hit_rate("gemm", "pid = num_pids - 1 - pid", at_least=0.1, **SMALL)


def test_a_floor_that_is_missed_says_what_there_is():
    with pytest.raises(HitRateError) as failed:
        assert_hit_rate("gemm", "contiguous", at_least=0.99, **SMALL)
    error = failed.value
    lines = str(error).splitlines()
    assert lines[0].startswith("gemm M=1024 N=1024 K=256")
    assert f"under contiguous: L2 hit rate {100 * error.l2_hit_rate:.2f} %, below 99.00 %" in lines[0]
    assert lines[1] == f"  launch order: {100 * error.launch_order:.2f} %"
    assert lines[2].endswith(f"{100 * error.best:.2f} %, {error.family}")
    assert lines[3].endswith("so no order reaches the floor")
    assert lines[4] == "  simulated, lockstep replay"
    assert error.best >= max(error.l2_hit_rate, error.launch_order)
    assert isinstance(error, AssertionError)
    assert_hit_rate("gemm", error.family, at_least=error.best, **SMALL)


def test_misuse_of_a_floor():
    with pytest.raises(OptionError, match="between 0 and 1"):
        assert_hit_rate("gemm", at_least=93.6)
    with pytest.raises(OptionError, match="Python function"):
        assert_hit_rate("gemm", lambda pid: pid, at_least=0.5, **SMALL)
    with pytest.raises(NotBijective):
        assert_hit_rate("gemm", "pid = pid // 2", at_least=0.5, **SMALL)
    with pytest.raises(SwizzleSimError, match="gemn"):
        assert_hit_rate("gemn", at_least=0.5)


def test_a_remap_that_is_lost_in_a_helper_is_noticed(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    Path("rows.py").write_text(KERNEL)
    Path("remap.py").write_text(REMAP)
    assert_hit_rate("rows.py", at_least=0.65, replay="lockstep")
    Path("remap.py").write_text(REMAP.replace("return xcd *", "return pid\n    return xcd *"))
    with pytest.raises(HitRateError):
        assert_hit_rate("rows.py", at_least=0.65, replay="lockstep")
