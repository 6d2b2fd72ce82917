"""Run folders that are cut, flipped, full, locked or half made: what is readable is kept, the rest is named."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.search.candidates import family_candidates
from swizzle_sim.search.history import FILE, History
from swizzle_sim.search.strategies.families import optimize
from tests.attack.conftest import attack
from xcd_model import gpu
from xcd_model.errors import RunError

SMALL = gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)


def run_in(folder, **options):
    """A run of some thirty attempts."""
    device = gpu("mi300x")
    return optimize(SMALL, device, folder, candidates=family_candidates(SMALL, device)[::4], threads=1, **options)


def facts(folder):
    with History(folder) as history:
        assert history.about["kernel"] == "gemm"
        return [(a.number, a.source, dict(a.verdict), a.score, a.critique) for a in history]


class Whole(tuple):
    """Folder, bytes of the store and attempts of a run that nothing happened to."""

    def __repr__(self):
        return "whole"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    run_in(folder)
    return Whole((folder, (folder / FILE).read_bytes(), facts(folder)))


@attack(60)
@given(st.integers(0, 2**30), st.binary(min_size=1, max_size=400))
def test_a_flipped_store_is_read_or_named(whole, tmp_path_factory, at, junk):
    _, data, _ = whole
    folder = tmp_path_factory.mktemp("flipped") / "run"
    folder.mkdir()
    at %= len(data)
    (folder / FILE).write_bytes(
        data[:at] + bytes(b ^ j for b, j in zip(data[at:], junk, strict=False)) + data[at + len(junk) :]
    )
    with contextlib.suppress(RunError):
        facts(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("part", [0, 0.1, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_store_says_how_to_recover_it(whole, tmp_path, part):
    (tmp_path / FILE).write_bytes(whole[1][: int(part * len(whole[1]))])
    with pytest.raises(RunError, match=r"sqlite3 \S*history.sqlite .recover \| sqlite3 NEW"):
        facts(tmp_path)


def test_a_hole_is_named_and_the_run_goes_on_before_it(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    with sqlite3.connect(folder / FILE) as db:
        db.execute("DELETE FROM attempt WHERE number = 20")  # as a file has that was recovered
        with pytest.raises(RunError, match=r"attempt 20 is missing") as error:
            db.commit()
            facts(folder)
        db.execute(str(error.value).split("'")[1])
    db.close()
    assert len(facts(folder)) == 20
    run_in(folder, resume=True)
    assert facts(folder) == whole[2]


def test_a_run_is_made_whole_or_not_at_all(tmp_path, monkeypatch):
    made = sqlite3.connect

    def full(*args, **kwargs):
        db = made(*args, **kwargs)
        db.execute("PRAGMA max_page_count=2")
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", full)
        with pytest.raises(RunError, match=r"cannot make the run folder.*full"):
            History.create(tmp_path / "run", {"kernel": "k"})
    assert list(tmp_path.iterdir()) == []
    History.create(tmp_path / "run", {"kernel": "k"}).close()
    with pytest.raises(RunError, match="never overwritten"):
        History.create(tmp_path / "run", {"kernel": "k"})
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are the kernel's")
def test_a_disk_that_is_full_in_the_middle_ends_with_one_line_and_the_run_goes_on(whole, tmp_path):
    _, data, want = whole
    child = textwrap.dedent(f"""
        import resource, signal, sys
        from swizzle_sim.search.strategies.families import optimize
        from tests.attack.test_stores import run_in
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        import swizzle_sim.search.history
        true = swizzle_sim.search.history.History.append
        def append(self, *attempts):
            if any(one.number == 12 for one in attempts):
                resource.setrlimit(resource.RLIMIT_FSIZE, ({len(data) // 3}, resource.RLIM_INFINITY))
            true(self, *attempts)
        swizzle_sim.search.history.History.append = append
        try:
            run_in(sys.argv[1])
        except Exception as error:
            print(type(error).__name__, error)
    """)
    folder = tmp_path / "run"
    words = [sys.executable, "-c", child, str(folder)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=os.getcwd(), timeout=600)
    assert said.stdout.startswith("RunError") and said.stdout.count("\n") == 1, said
    assert facts(folder) == want[: len(facts(folder))]
    run_in(folder, resume=True)
    assert facts(folder) == want


def test_a_second_command_on_a_folder_is_refused_in_another_process(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    child = "import sys\nfrom tests.attack.test_stores import run_in\nrun_in(sys.argv[1], resume=True)"
    with History(folder) as history:
        with history.running():
            done = subprocess.run(
                [sys.executable, "-c", child, str(folder)], capture_output=True, text=True, timeout=600
            )
            assert "another command is writing this run" in done.stderr
            assert history.state == "running"
        assert history.state == "finished"
    run_in(folder, resume=True)
    assert facts(folder) == whole[2]


def test_rows_that_are_no_rows_are_named(whole, tmp_path):
    shutil.copy(whole[0] / FILE, tmp_path)
    for column, value in (("verdict", "[1"), ("score", json.dumps({"a": 1})), ("source", b"\xff")):
        with sqlite3.connect(tmp_path / FILE) as db:
            db.execute(f"UPDATE attempt SET {column} = ? WHERE number = 20", (value,))
        db.close()
        with pytest.raises(RunError, match="damaged"):
            facts(tmp_path)
