"""Does a remap that is lost fail: against a floor, another revision, stored rates?"""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.testing import HitRateError, assert_hit_rate
from swizzle_sim.testing.locality import How, declared_in, read_stored, stored
from xcd_model import gpu
from xcd_model.errors import LanguageError, NotBijective, OptionError, RunError, SwizzleSimError

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


def git(folder, *words):
    named = ("-c", "user.name=n", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *named, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Cache of captures, kept from test to test: the same sources are captured once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def checkout(tmp_path, monkeypatch, captures):
    pytest.importorskip("triton")
    monkeypatch.setenv("XDG_CACHE_HOME", str(captures))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder = tmp_path / "repository"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "remap.py").write_text(REMAP)
    (folder / "kernels" / "rows.py").write_text(KERNEL)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "with the remap")
    monkeypatch.chdir(folder)
    return folder


def hit_rates(*words):
    return CliRunner().invoke(app, ["hit-rates", *map(str, words)])


def lose(folder):
    path = folder / "kernels" / "remap.py"
    path.write_text(path.read_text().replace("return xcd * (num_pids // NUM_XCDS)", "return pid\n    return xcd"))


def test_a_remap_that_is_lost_in_a_helper_is_noticed(checkout, monkeypatch):
    assert hit_rates("kernels", "--out", "../rates.json").exit_code == 0
    lose(checkout)
    against_file = hit_rates("kernels", "--against", "../rates.json")
    assert against_file.exit_code == 1, against_file.output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = hit_rates("kernels", "--against", "main", "--json", "--junit", "../out.xml")
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    (rate,), (result,) = document["rates"], document["results"]
    assert rate["kernel"] == "kernels/rows.py:kernel"
    assert rate["before"] - rate["l2_hit_rate"] > 0.05
    assert "points lost, of which 1 are allowed (N=512 BLOCK=1024)" in result["message"]
    assert "::error file=kernels/rows.py,line=13," in done.stderr
    assert 'failures="1"' in Path("../out.xml").read_text()
    assert hit_rates("kernels", "--against", "main", "--tolerance", "100").exit_code == 0
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1  # nothing is left behind
    assert rate["l2_hit_rate"] == pytest.approx(read_again(checkout)["kernels/rows.py:kernel"].l2_hit_rate)


def read_again(checkout):
    assert hit_rates("kernels", "--out", "../again.json").exit_code == 0
    return read_stored(Path("../again.json"), How(gpu("mi300x")))


def test_what_cannot_be_compared_is_no_pass(checkout):
    text = (checkout / "kernels" / "rows.py").read_text()
    (checkout / "kernels" / "rows.py").write_text(text.replace("kernel = Kernel", "other = Kernel"))
    done = hit_rates("kernels", "--against", "HEAD")
    assert done.exit_code == 2
    assert "kernels/rows.py:other: L2 hit rate" in done.stdout
    assert "and not declared at HEAD" in done.stdout
    assert "kernels/rows.py:kernel: declared at HEAD, and no longer" in done.stdout
    assert hit_rates("kernels", "--against", "HEAD", "--allow-skips").exit_code == 0
    (checkout / "kernels" / "rows.py").write_text(text.replace("tl.load(a_ptr", "tl.lod(a_ptr"))
    done = hit_rates("kernels", "--allow-skips")
    assert done.exit_code == 2
    assert "rows.py" in done.stderr


def test_a_revision_that_imports_the_working_tree_is_not_compared(checkout, monkeypatch):
    path = checkout / "kernels" / "rows.py"
    path.write_text(
        f"import sys\nsys.path.insert(0, {str(checkout / 'shared')!r})\n" + KERNEL.replace("remap", "moved")
    )
    (checkout / "shared").mkdir()
    (checkout / "kernels" / "remap.py").rename(checkout / "shared" / "moved.py")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "with a path")
    done = hit_rates("kernels", "--against", "HEAD")
    assert done.exit_code == 2
    assert "moved.py of the working tree" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing"], "no such file"),
        (["kernels", "--against", "nowhere"], "no such revision"),
        (["kernels", "--against", "--help"], "no such revision"),
        (["kernels", "--against", "kernels/remap.py"], "no file of hit rates"),
        (["..", "--against", "HEAD"], "outside of the checkout"),
    ],
    ids=str,
)
def test_misuse(checkout, words, said):
    done = hit_rates(*words)
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output


def test_nothing_declared_is_no_pass(tmp_path):
    (tmp_path / "a.py").write_text("from swizzle_sim.capture import Array\n")
    done = hit_rates(tmp_path)
    assert done.exit_code == 2
    assert "no kernel is declared" in done.stderr
    assert hit_rates(tmp_path, "--allow-skips").exit_code == 0


def test_declarations_are_read_not_run(tmp_path):
    text = "1 / 0\nfrom swizzle_sim.capture import Kernel as K\na = K(f)\nb = Other(f)\nif True:\n    c: K = K(f)\n"
    (tmp_path / "a.py").write_text(text)
    assert [(one.name, one.line) for one in declared_in([tmp_path])] == [("a", 3), ("c", 6)]
    (tmp_path / "b.py").write_text("# swizzle_sim.capture\ndef (")
    with pytest.raises(LanguageError, match="no Python"):
        declared_in([tmp_path])


def test_stored_rates_of_another_gpu_are_refused(tmp_path):
    path = tmp_path / "rates.json"
    path.write_bytes(stored([{"kernel": "a.py:k", "problem": {"M": 4}, "l2_hit_rate": 0.5}], How(gpu("mi300x"))))
    assert read_stored(path, How(gpu("mi300x")))["a.py:k"].l2_hit_rate == 0.5
    with pytest.raises(RunError, match="its gpu is mi300x"):
        read_stored(path, How(gpu("mi355x")))
    with pytest.raises(RunError, match="its replay"):
        read_stored(path, How(gpu("mi300x"), "timed"))
    path.write_text('{"kernels": 3}')
    with pytest.raises(RunError, match="no file of hit rates"):
        read_stored(path, How(gpu("mi300x")))
