"""A run that dies at any instant goes on, and asks nothing twice."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from swizzle_agent.transcript import Transcript
from swizzle_sim.history import History
from swizzle_sim.swizzle import family
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, ScriptedServer, proposal
from xcd_model import RunError

SCRIPT = [proposal(family(spec)) for spec in ("group_m(size=2)", "group_m(size=4)", "column", "group_n(size=4)")]

CHILD = textwrap.dedent("""
    import sys
    from swizzle_agent.loop import propose
    from swizzle_agent.settings import Settings
    from swizzle_benchmarks.suite.gemm import gemm
    from xcd_model import gpu
    propose(
        gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), gpu("mi300x"), sys.argv[1],
        Settings(models=("openai/scripted",), api_base=sys.argv[2], iterations=4, timeout_s=30.0), replay="lockstep",
    )
""")


def facts(run):
    return [(a.number, a.name, a.source, a.proposer, a.verdict, a.score, a.critique) for a in run.attempts]


def test_kill_9_in_the_middle_of_an_answer(run_script, tmp_path, small, mi300x):
    folder = tmp_path / "run"
    slow = Reply(SCRIPT[2].text, slow_s=60)
    with ScriptedServer([*SCRIPT[:2], slow]) as server:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), server.base], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while len(server.proposals) < 3 and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stderr.close()
    with History(folder) as history:
        assert history.state == "running" and len(history) == 3
    run, server, _ = run_script(SCRIPT[2:], resume=True, iterations=4)
    assert len(server.requests) == 2  # neither the analysis nor what was answered
    assert codes(run) == ["scored"] * 4


@pytest.mark.parametrize("instant", ["append", "add", "note"])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_dying_before_or_after_any_write(run_script, monkeypatch, instant, count):
    """An exception at the n-th write of a kind, as a kill would fall there."""
    whole, _, _ = run_script(SCRIPT, folder="whole", iterations=4)
    owner = History if instant == "append" else Transcript
    true, seen = getattr(owner, instant), []

    def dying(self, *args):
        seen.append(1)
        if len(seen) == count:
            raise KeyboardInterrupt
        return true(self, *args)

    server = ScriptedServer(SCRIPT)
    with monkeypatch.context() as patch:
        patch.setattr(owner, instant, dying)
        with pytest.raises(KeyboardInterrupt):
            run_script(SCRIPT, iterations=4, server=server)
    answered = len(server.requests)
    lost = instant == "add"  # the answer that came and could not be kept has to be asked for again
    rest = SCRIPT[max(0, answered - 1 - lost) :] or SCRIPT[-1:]
    run, server, _ = run_script(rest, resume=True, iterations=4)
    assert facts(run) == facts(whole)
    assert len(server.requests) == 5 - answered + lost


def test_more_iterations_go_on_from_the_end(run_script):
    run_script(SCRIPT[:2], iterations=2)
    run, server, _ = run_script(SCRIPT[2:], resume=True, iterations=4)
    assert codes(run) == ["scored"] * 4
    assert len(server.requests) == 2
    assert [a.proposer for a in run.attempts].count("search") == 4


def test_another_question_is_not_the_same_run(run_script):
    run_script(SCRIPT[:1])
    with pytest.raises(RunError, match="its proposer"):
        run_script(SCRIPT[:1], resume=True, context="unaware")


def test_a_finished_run_asks_nothing(run_script):
    first, _, _ = run_script(SCRIPT[:2])
    run, server, _ = run_script(SCRIPT[:2], resume=True)
    assert not server.requests and facts(run) == facts(first)
