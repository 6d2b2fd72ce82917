"""Does ``optimize my_kernel.py`` go all the way, and does a run stay with the kernel it was made from?"""

import json
import re
import shutil
from pathlib import Path

import pytest

from swizzle_sim.capture.user_kernel import load
from swizzle_sim.report import write_report
from swizzle_sim.search.history import History
from swizzle_sim.search.strategies.families import optimize
from tests.capture.same_trace import needs_triton
from tests.capture.test_commands import run as run  # noqa: PLC0414  (a fixture)
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from xcd_model import gpu
from xcd_model.errors import RunError

pytestmark = needs_triton
KERNELS = Path(__file__).parent / "kernels"
SIZES = ("ROWS=44", "COLS=40", "PROGRAMS=11")


@pytest.mark.usefixtures("sketched")
def test_a_users_file_is_captured_searched_and_rewritten(run, uncompiled, tmp_path):  # noqa: F811
    (tmp_path / "sub").mkdir()
    text = (KERNELS / "softmax.py").read_text()
    (tmp_path / "sub" / "mine.py").write_text(
        text.replace("    softmax,\n    sizes", '    softmax,\n    name="a/b",\n    sizes')
    )
    status, out, _ = run("optimize", "sub/mine.py", *SIZES, "--gpu", "mi355x", "--report", "--json")
    document = json.loads(out)
    assert (status, document["run"], document["kernel"]) == (0, "runs/a-b-mi355x-001", "a/b")
    folder = tmp_path / document["run"]
    assert document["rewritten"] == f"{document['run']}/mine_swizzled.py" and document["not_rewritten"] is None
    best = (folder / "best.txt").read_text()
    assert best == document["best"][0]["source"]
    rewritten = (folder / "mine_swizzled.py").read_text()
    assert "swizzled_row = swizzle(row, n_rows" in rewritten
    assert not (tmp_path / "mine_swizzled.py").exists()

    with History(folder) as history:
        about = history.about
    assert about["kernel_file"] == str(tmp_path / "sub" / "mine.py")
    (listed,) = json.loads(run("runs", "--json")[1])["runs"]
    assert (listed["kernel_file"], listed["kernel"]) == (about["kernel_file"], "a/b")
    assert "a/b (mine.py) ROWS=44" in re.sub(r"\s+", " ", run("runs")[1])

    page = (folder / "report.html").read_bytes()
    assert run("report", folder)[0] == 0
    assert (folder / "report.html").read_bytes() == page

    (tmp_path / "sub" / "mine.py").write_text(
        (tmp_path / "sub" / "mine.py").read_text().replace("< n_cols", "<= n_cols - 1")
    )
    status, _, err = run("report", folder)
    assert status == 2
    assert re.search(r"mine\.py: its kernel changed since the run: a/b is \w{12} now, and was a/b \w{12}", err)
    status, _, err = run("optimize", "sub/mine.py", *SIZES, "--gpu", "mi355x", "--resume", folder)
    assert (status, "cannot resume: the kernel in " in err) == (2, True)
    (tmp_path / "sub" / "mine.py").unlink()
    status, _, err = run("report", folder)
    assert (status, "mine.py: no such file any more; the run of a/b" in err) == (2, True)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a run of a kernel file; gives its folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(file, resume=False, **sizes):
        mi300x = gpu("mi300x")
        work = load(str(file), sizes, mi300x.arch)
        return optimize(work, mi300x, tmp_path / "run", candidates=[], resume=resume, replay="lockstep").folder

    return make


@pytest.mark.usefixtures("sketched")
def test_a_file_that_calls_its_kernel_gemm_is_not_the_suites(run, made, uncompiled, tmp_path):  # noqa: F811
    text = (KERNELS / "softmax.py").read_text()
    (tmp_path / "mine.py").write_text(
        text.replace("    softmax,\n    sizes", '    softmax,\n    name="gemm",\n    sizes')
    )
    folder = made(tmp_path / "mine.py", ROWS=20, COLS=30)
    assert made(tmp_path / "mine.py", resume=True, ROWS=20, COLS=30) == folder
    with History(folder) as history:
        assert "ROWS = 20" in write_report(history).read_text()
    status, _, err = run("optimize", "gemm", "--resume", folder)
    assert (status, "no size of kernel gemm is called 'ROWS'" in err) == (2, True)


@pytest.mark.usefixtures("sketched")
def test_a_run_of_a_trace_file_is_reported_without_triton(run, made, uncompiled, monkeypatch, tmp_path):  # noqa: F811
    shutil.copy(KERNELS / "softmax.py", tmp_path / "mine.py")
    assert run("capture", "mine.py", "ROWS=20", "COLS=30", "-o", "m.trace.npz")[0] == 0
    folder = made(tmp_path / "m.trace.npz")

    def nobody(*args, **options):
        raise AssertionError("Triton was asked")

    with monkeypatch.context() as without:
        without.setattr("swizzle_sim.capture.process.check_installed", nobody)
        with History(folder) as history:
            assert write_report(history).exists()
        status, out, _ = run("optimize", "m.trace.npz", "--json")
    document = json.loads(out)
    assert (status, document["rewritten"]) == (0, None)
    assert "a trace file holds no kernel" in document["not_rewritten"]
    assert run("capture", KERNELS / "softmax.py", "ROWS=21", "COLS=30", "-o", "m.trace.npz")[0] == 0
    with History(folder) as history, pytest.raises(RunError, match="its kernel changed since the run"):
        write_report(history)
