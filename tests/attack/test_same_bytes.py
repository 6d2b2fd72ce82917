"""The same command gives the same bytes: with other threads, in other processes, killed and resumed or not."""

import json
import shutil
import sqlite3
import subprocess
import sys

import pytest

from swizzle_sim.search.history import FILE

SMALL = ["gemm", "M=512", "N=512", "K=128", "BLOCK_M=64", "BLOCK_N=64", "--json"]
SEARCH = ["--proposer", "search", "--evaluations", "12", "--objective", "time", "--replay", "lockstep"]
COMMAND = "import sys; from swizzle_sim.__main__ import main; sys.exit(main())"


def answer(folder, *words):
    """JSON document of a run, without the place of its folder."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "optimize", *SMALL, *words], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace(str(folder), "RUN"))


def stored(folder):
    """Attempts of a run but for their times, as they lie on disk."""
    db = sqlite3.connect(folder / FILE)
    rows = db.execute("SELECT number, name, source, proposer, verdict, score, critique FROM attempt").fetchall()
    db.close()
    return rows


def cut(folder, number):
    """Leave a run as a kill leaves it after its first attempts."""
    db = sqlite3.connect(folder / FILE)
    with db:
        db.execute("DELETE FROM attempt WHERE number >= ?", (number,))
        db.execute("UPDATE run SET state = 'running'")
    db.close()


@pytest.mark.parametrize("proposer", [["--threads"], SEARCH], ids=["families", "search"])
def test_threads_processes_and_kills_change_no_byte(tmp_path, proposer):
    one, other = tmp_path / "one", tmp_path / "other"
    alone, many = ([*proposer, count] if proposer == ["--threads"] else proposer for count in ("1", "3"))
    first = answer(one, *alone, "--out", str(one))
    rows = stored(one)
    assert len(rows) > 5
    shutil.copytree(one, other)
    cut(other, len(rows) // 2)
    assert answer(other, *many, "--resume", str(other)) == first
    assert stored(other) == rows
