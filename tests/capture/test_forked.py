"""Is a forked worker as a new process would be, and does what one does to itself or dies of stay its own?"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from swizzle_sim.capture import forked
from swizzle_sim.capture.forked import start_worker
from swizzle_sim.capture.process import environment, run_worker
from tests.capture.same_trace import needs_triton
from xcd_model.errors import CaptureError, CompileError

ODD = "tests.capture.odd_worker"
LONG_S = 60
pytestmark = needs_triton  # and the Python that it needs


@pytest.fixture(autouse=True)
def no_servers_left():
    """Servers of this test's own, none of which outlives it."""
    forked.close_servers()
    yield
    forked.close_servers()


def start(*words, module=ODD, at_import=(), **more):
    here = environment(interpret=True)
    return start_worker(module, words, at_import={**here, **dict(at_import)}, environment={**here, **more})


def ended(worker):
    """Status and last words of a worker that ends by itself."""
    assert worker.wait(LONG_S)
    return worker.end(), worker.last_words


def look(folder, **more):
    path = folder / "seen.json"
    worker = start("look", str(path), **more)
    _close_stdin(worker)
    assert ended(worker) == (0, "")
    return json.loads(path.read_text())


def _close_stdin(worker):
    """Let it read the end of its stdin."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, worker.stdin, inheritable=False)
    os.close(nowhere)


def test_what_one_does_to_its_process_is_not_seen_by_the_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = look(tmp_path)
    assert ended(start("spoil")) == (0, "")
    after = look(tmp_path)
    assert before.pop("drawn") != after.pop("drawn")
    assert before == after
    assert (before["spoilt"], before["term"], before["int"]) == (False, True, True)
    assert before["known"] == ["of the import", f"preloaded by {before['parent']}"]
    assert before["folder"] == before["path"][0] == str(tmp_path)
    assert before["open"][:3] == [0, 1, 2]
    assert len(before["open"]) == 4  # and that of the listing itself


def test_each_has_the_folder_and_the_environment_of_its_start(tmp_path, monkeypatch):
    first = look(tmp_path, LATER="1")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    monkeypatch.setenv("OF_NOW", "2")
    second = look(tmp_path, at_import={"PYTHONPATH": first["environment"]["PYTHONPATH"]})
    assert second["parent"] == first["parent"]
    assert (first["environment"]["LATER"], second["environment"].get("LATER")) == ("1", None)
    assert second["environment"]["OF_NOW"] == "2"
    assert second["folder"] == str(tmp_path / "other")
    assert str(tmp_path / "mine") in second["path"][:3]
    assert str(tmp_path / "mine") not in first["path"]


def test_what_is_read_on_import_has_a_server_of_its_own_and_few_are_kept(tmp_path):
    parents = [look(tmp_path, at_import={"TRITON_ODD": str(n)})["parent"] for n in range(forked.MOST_SERVERS + 1)]
    assert len(set(parents)) == len(parents)
    assert len(forked._SERVERS) == forked.MOST_SERVERS
    again = [look(tmp_path, at_import={"TRITON_ODD": str(n)})["parent"] for n in (forked.MOST_SERVERS, 0)]
    assert again[0] == parents[-1]
    assert again[1] != parents[0]


def test_a_server_with_a_worker_at_work_makes_no_room(tmp_path):
    busy = start("sleep", at_import={"TRITON_ODD": "busy"})
    for n in range(forked.MOST_SERVERS + 1):
        look(tmp_path, at_import={"TRITON_ODD": str(n)})
    assert not busy.wait(0)
    assert busy.end() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("say", "last words"), 0, "last words"),
        (("exit", "7"), 7, ""),
        (("raise",), 1, "ValueError: eight"),
        (("die", "self", str(int(signal.SIGSEGV))), -signal.SIGSEGV, ""),
        (("die", "self", str(int(signal.SIGKILL))), -signal.SIGKILL, ""),
    ],
)
def test_how_one_ends_is_its_own_and_the_others_go_on(tmp_path, words, status, said):
    other = start("sleep")
    code, last = ended(start(*words))
    assert (code, last.splitlines()[-1:]) == (status, [said] if said else [])
    assert look(tmp_path)["known"][0] == "of the import"
    assert not other.wait(0)
    assert other.end() == -signal.SIGKILL
    assert other.end() == -signal.SIGKILL


def test_a_server_that_is_killed_takes_its_workers_along_and_the_next_one_starts_another(tmp_path):
    first = look(tmp_path)["parent"]
    assert ended(start("die", "server", str(int(signal.SIGKILL)))) == (-signal.SIGKILL, "")
    assert look(tmp_path)["parent"] != first


def test_ctrl_c_ends_workers_and_no_server(tmp_path):
    first = look(tmp_path)["parent"]
    os.kill(first, signal.SIGINT)
    status, said = ended(start("die", "self", str(int(signal.SIGINT))))
    assert (status, said.splitlines()[-1]) == (1, "KeyboardInterrupt")
    assert look(tmp_path)["parent"] == first


def test_imports_that_fail_are_said(tmp_path):
    with pytest.raises(CaptureError, match=r"ended in its imports: [\s\S]*ModuleNotFoundError.*no_such_worker"):
        start(module="tests.no_such_worker")
    assert not forked._SERVERS
    assert look(tmp_path)["folder"] == os.getcwd()


def test_a_process_that_we_fork_takes_no_server_with_it(tmp_path):
    first = look(tmp_path)["parent"]
    child = os.fork()
    if not child:
        os._exit(0 if not forked._SERVERS and look(tmp_path)["parent"] != first else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert look(tmp_path)["parent"] == first


PARENT = """
import os, signal, sys
from tests.capture.test_forked import start
worker = start("sleep")
print(worker.pid, worker._server._process.pid, flush=True)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["kill", "return"])
def test_nothing_is_left_of_a_process_that_ends(end):
    done = subprocess.run([sys.executable, "-c", PARENT, end], env=environment(interpret=True), stdout=subprocess.PIPE)
    assert done.returncode == (-signal.SIGKILL if end == "kill" else 0)
    for pid in map(int, done.stdout.split()):
        while _is_running(pid):
            time.sleep(0.01)


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_request_is_answered_stopped_or_said_to_have_died():
    with pytest.raises(CompileError, match=r"stopped after 0\.01 s without an answer"):
        run_worker("tests.capture.odd_worker", {}, interpret=True, timeout_s=0.01)
    with pytest.raises(CompileError, match=r"ended with status 1:\n[\s\S]*KeyError: 'requests'"):
        run_worker("swizzle_sim.capture.occupancy_worker", {}, interpret=False, timeout_s=LONG_S)
