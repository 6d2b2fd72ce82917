"""Ctrl-C, SIGTERM and SIGHUP at any instant: the hint, no traceback, and never exit status 0."""

import signal
import subprocess
import sys
import time

import pytest

from swizzle_sim.search.history import History
from tests.attack.conftest import TIMES

WORDS = ["optimize", "gemm", "M=512", "N=512", "K=128", "BLOCK_M=64", "BLOCK_N=64"]
READY = """
import atexit, signal, sys
from swizzle_sim.__main__ import main

def ready(*given):  # called by main, which from then on has to say how to go on
    atexit.register = register
    print("ready", flush=True)
    return register(*given)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job is born deaf to Ctrl-C
register, atexit.register = atexit.register, ready
sys.exit(main())
"""


def interrupt(folder, wait_s, number=signal.SIGINT):
    """Start ``optimize`` and interrupt it after a while; status and what it said."""
    words = [sys.executable, "-c", READY, *WORDS, "--out", str(folder)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()  # from here on every instant is ours; before it Python itself starts
    time.sleep(wait_s)
    child.send_signal(number)
    said = child.communicate(timeout=300)
    return child.returncode, said[1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_says_how_to_go_on(tmp_path):
    interrupted = 0
    for number in range(3 * TIMES):
        folder = tmp_path / f"run-{number}"
        status, said = interrupt(folder, 5 * number / (3 * TIMES))
        if status == 0:  # it was faster
            assert "interrupted" not in said
            continue
        interrupted += 1
        assert status == 130 and "Traceback" not in said, said
        hint = "go on with" if folder.exists() else "start again with"
        assert f"interrupted; {hint}: swizzle-sim optimize gemm" in said
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert interrupted


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_end_of_a_job_says_how_to_go_on_and_marks_the_run(tmp_path, name):
    number, folder = getattr(signal, name), tmp_path / "run"
    status, said = interrupt(folder, 2, number)
    if status != 0:  # it was not faster
        assert status == 128 + number and "Traceback" not in said, said
        assert f"ended by {name}; " in said and "swizzle-sim optimize gemm" in said
        if folder.exists():
            with History(folder) as history:
                assert history.state in ("interrupted", "stopped", "finished")
