"""Does a kept worker answer as a process of its own would, and does it end?"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture
from swizzle_sim.capture.process import TAIL, environment, run_worker, shared_worker
from swizzle_sim.capture.workload import workload
from swizzle_sim.rewrite.small_sizes import small_workloads
from tests.capture.same_trace import needs_triton
from tests.capture.started import started as started  # noqa: PLC0414  (a fixture)
from xcd_model.errors import CompileError, SwizzleSimError

pytestmark = needs_triton
MATMUL = Path(__file__).parent / "kernels" / "matmul.py"

ODD = """
import os
import random
import sys

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel

random.seed(3)
print("words of an answered request", file=sys.stderr)
os.system("echo on the standard output")
assert sys.stdin.read() == ""


@triton.jit
def copy(x_ptr, y_ptr):
    tl.store(y_ptr + tl.program_id(0), tl.load(x_ptr + tl.program_id(0)))


def arguments(s):
    if s.n == 7001:
        print("last words", file=sys.stderr, flush=True)
        os._exit(7)
    if s.n == 8001:
        raise ValueError("eight")
    return {"x_ptr": Array(shape=(s.n,), dtype="fp32"), "y_ptr": Array(shape=(s.n,), dtype="fp32", role="out")}


def make_inputs(s, seed):
    if s.n == 9001:
        raise MemoryError
    return {"x_ptr": [random.random() for _ in range(s.n)]}


kernel = Kernel(copy, sizes={"n": 10}, arguments=arguments, grid=lambda s: (s.n,), make_inputs=make_inputs)
"""


@pytest.fixture
def odd(tmp_path):
    """Workload of a file that prints, reads, draws, raises and dies."""
    path = tmp_path / "odd.py"
    path.write_text(ODD)
    return workload(str(path), {})


def test_small_sizes_are_found_in_one_process(started, tmp_path):
    shutil.copy(MATMUL, tmp_path / "mine.py")
    sizes = {"M": 256, "N": 256, "K": 64, "BLOCK_K": 16}
    work = workload(str(tmp_path / "mine.py"), sizes)
    assert len(started) == 1
    with shared_worker(), shared_worker():
        found = [one for _, one in small_workloads(work, 8)]
        assert found[0].launch.make_inputs(0) == {}
        assert len(started) == 2
        assert started[1].returncode is None
    assert started[1].returncode is not None
    found[0].at({**sizes, "M": 48})
    assert len(started) == 3


def test_what_a_worker_dies_of_is_said_and_the_next_request_starts_another(started, odd):
    with pytest.raises(SwizzleSimError) as alone:
        odd.at({"n": 7001})
    del started[:]
    with shared_worker():
        assert odd.at({"n": 3}).grid.num_pids == 3
        with pytest.raises(SwizzleSimError) as among:
            odd.at({"n": 7001})
        assert (odd.at({"n": 4}).grid.num_pids, odd.at({"n": 5}).grid.num_pids) == (4, 5)
        assert [worker.returncode for worker in started] == [7, None]
        os.kill(started[1].pid, signal.SIGKILL)
        assert started[1].wait(60)
        assert odd.at({"n": 6}).grid.num_pids == 6
    assert len(started) == 3
    assert (str(among.value), among.value.code) == (str(alone.value), alone.value.code)
    assert str(among.value).startswith("the process that runs Triton ended with status 7: ")
    assert str(among.value).endswith("last words")
    assert str(among.value).count("words of an answered request") == 1
    assert len(str(among.value)) < TAIL


def test_a_size_that_is_refused_ends_no_worker_and_one_out_of_memory_does(started, odd):
    del started[:]
    with shared_worker():
        for _ in range(2):
            with pytest.raises(SwizzleSimError, match=r"odd\.py:\d+: copy: arguments raises ValueError: eight"):
                odd.at({"n": 8001})
        assert len(started) == 1
        with pytest.raises(SwizzleSimError, match="out of memory") as error:
            odd.at({"n": 9001}).launch.make_inputs(0)
        assert error.value.code == "memory"
        assert len(started) == 1
        assert started[0].returncode is not None
        assert odd.at({"n": 3}).grid.num_pids == 3
    assert len(started) == 2


def test_a_file_runs_anew_for_each_request(odd):
    alone = odd.launch.make_inputs(0)["x_ptr"]
    with shared_worker():
        for _ in range(2):
            np.testing.assert_array_equal(odd.launch.make_inputs(0)["x_ptr"], alone)


def test_a_capture_patches_the_language_and_leaves_the_worker_to_nobody(started, odd):
    del started[:]
    with shared_worker():
        odd.at({"n": 3})
        first = capture(odd.at({"n": 40}).launch)
        assert len(started) == 1
        assert started[0].returncode is not None
        again = capture(odd.at({"n": 40}).launch)
    assert len(started) == 2
    np.testing.assert_array_equal(first.trace.base, again.trace.base)


def test_what_stops_us_kills_the_worker(started, odd):
    del started[:]

    def stop(*report):
        raise KeyboardInterrupt

    with shared_worker():
        with pytest.raises(KeyboardInterrupt):
            capture(odd.launch, on_progress=stop)
        assert [worker.returncode for worker in started] == [-9]
        assert odd.at({"n": 3}).grid.num_pids == 3


ODD_WORKER = "tests.capture.odd_worker"


def asked(timeout_s=60, **request):
    return run_worker(ODD_WORKER, request, interpret=True, timeout_s=timeout_s)


def test_a_worker_has_our_folder_and_path_and_the_users_files_hide_no_import(tmp_path, monkeypatch):
    for name in ("triton", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ValueError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    monkeypatch.setenv("OF_NOW", "2")
    seen = asked()
    assert str(tmp_path) not in seen["triton"]
    assert seen["folder"] == seen["path"][0] == str(tmp_path)
    assert str(tmp_path / "mine") in seen["path"][:3]
    assert (seen["environment"]["OF_NOW"], seen["environment"]["TRITON_INTERPRET"]) == ("2", "1")
    assert (seen["stdin"], seen["int"]) == ("", True)


@pytest.mark.parametrize("request_", [{"status": 7}, {"signal": signal.SIGSEGV}, {"signal": signal.SIGKILL}])
def test_what_a_worker_ends_with_is_said(request_):
    status = request_.get("status") or -request_["signal"]
    with pytest.raises(CompileError, match=rf"ended with status {status}:\n[\s\S]*last words"):
        asked(**request_)


def test_a_request_is_answered_stopped_or_said_to_have_failed():
    with pytest.raises(CompileError, match=r"stopped after 0\.01 s without an answer"):
        asked(timeout_s=0.01, sleep_s=60)
    with pytest.raises(CompileError, match=r"ended with status 1:\n[\s\S]*KeyError: 'requests'"):
        run_worker("swizzle_sim.capture.occupancy_worker", {}, interpret=False, timeout_s=60)
    with pytest.raises(CompileError, match=r"ended with status 1:\n[\s\S]*ModuleNotFoundError.*no_such_worker"):
        run_worker("tests.no_such_worker", {}, interpret=False, timeout_s=60)


PARENT = """
import os, signal, subprocess, sys, time
from tests.capture.test_process import asked
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background inherits an ignored Ctrl-C
start = subprocess.Popen
def told(args, **more):
    worker = start(args, **more)
    print(worker.pid, flush=True)
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), int(sys.argv[1]))
    return worker
subprocess.Popen = told
asked(sleep_s=600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0, 2])
def test_nothing_is_left_of_a_process_that_ends(end, after_s):
    command = [sys.executable, "-c", PARENT, str(int(end)), str(after_s)]
    done = subprocess.run(command, env=environment(interpret=True), capture_output=True, check=False)
    assert done.returncode == -end
    until = time.monotonic() + 60
    while _is_running(int(done.stdout)):
        assert time.monotonic() < until
        time.sleep(0.01)


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
