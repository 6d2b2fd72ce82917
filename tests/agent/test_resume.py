"""A run that dies at any instant goes on, and asks nothing twice."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import product

import pytest

from swizzle_agent.endpoint import Endpoint
from swizzle_agent.transcript import Transcript
from swizzle_sim.language import family
from swizzle_sim.search.history import History
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, ScriptedServer, proposal
from xcd_model import RunError

SCRIPT = [proposal(family(spec)) for spec in ("group_m(size=2)", "group_m(size=4)", "column", "group_n(size=4)")]

CHILD = textwrap.dedent("""
    import dataclasses, sys
    from swizzle_agent.loop import _Loop, propose
    from swizzle_agent.settings import Settings
    from swizzle_benchmarks.suite.gemm import gemm
    from xcd_model import gpu
    _Loop._at_bound = lambda loop: False  # as the fixture of these tests has it
    propose(
        dataclasses.replace(gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), sharing=""), gpu("mi300x"), sys.argv[1],
        Settings(models=("openai/scripted",), api_base=sys.argv[2], iterations=4, timeout_s=30.0), replay="lockstep",
    )
""")


@pytest.fixture
def small(small):
    """With a memory analysis to ask for, which a run that goes on must not ask for again."""
    return dataclasses.replace(small, sharing="")


def facts(run):
    return [(a.number, a.name, a.source, a.proposer, a.verdict, a.score, a.critique) for a in run.attempts]


WHOLE = []  # facts of a run that nobody interrupts: made once for all tests that end one


def whole(run_script):
    if not WHOLE:
        WHOLE.extend(facts(run_script(SCRIPT, folder="whole", iterations=4)[0]))
    return WHOLE


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
        assert history.state == "stopped" and len(history) == 3
    run, server, _ = run_script(SCRIPT[2:], resume=True, iterations=4)
    assert len(server.requests) == 2  # neither the analysis, nor what was answered; no iteration is lost by the kill
    assert codes(run) == ["scored"] * 4
    with Transcript(folder) as transcript:
        assert [e.code for e in transcript] == [None, None, None, "unanswered", None, None]


WRITES = product(((History, "append"), (Transcript, "add"), (Transcript, "note")), (1, 3, 5))


@pytest.mark.parametrize(("write", "count"), [*WRITES, ((Endpoint, "ask"), 3)])
def test_dying_before_or_after_any_write_or_under_a_question(run_script, monkeypatch, write, count):
    """An exception at the n-th write of a kind, as a kill would fall there, or a Ctrl-C that withdraws a question."""
    answered = die_at(run_script, monkeypatch, *write, count)
    rest = SCRIPT[max(0, answered - 1) :] or SCRIPT[-1:]
    run, server, _ = run_script(rest, resume=True, iterations=4)
    assert facts(run) == whole(run_script)
    assert len(server.requests) == 5 - answered


def die_at(run_script, monkeypatch, owner, instant, count):
    """Interrupt a run at the n-th call of a method; gives the requests that were sent."""
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
    return len(server.requests)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_an_answer_that_could_not_be_kept_is_not_asked_for_again(run_script, monkeypatch, count):
    answered = die_at(run_script, monkeypatch, Transcript, "complete", count)
    assert answered == count
    run, server, _ = run_script(SCRIPT[max(0, answered - 2) :], resume=True, iterations=4)
    lost = (
        count > 1
    )  # of iterations; without the analysis a run goes on, and another iteration takes the place of a lost one
    assert len(server.requests) == 5 - answered + lost
    assert codes(run) == ["scored"] * 4


def test_more_iterations_go_on_from_the_end(run_script):
    run_script(SCRIPT[:2], iterations=2)
    run, server, _ = run_script(SCRIPT[2:], resume=True, iterations=4)
    assert codes(run) == ["scored"] * 4
    assert len(server.requests) == 2
    searched = [a for a in run.attempts if a.proposer == "search"]
    assert 2 < len(searched) <= 4 and len({a.name for a in searched}) == len(searched)
    assert min(a.score.distance_to_bound for a in searched) < 1e-9, "the longer search ends at the bound"


def test_another_question_is_not_the_same_run(run_script):
    run_script(SCRIPT[:1])
    with pytest.raises(RunError, match="its proposer"):
        run_script(SCRIPT[:1], resume=True, context="unaware")


def test_a_finished_run_asks_nothing(run_script):
    first, _, _ = run_script(SCRIPT[:2])
    run, server, _ = run_script(SCRIPT[:2], resume=True)
    assert not server.requests and facts(run) == facts(first)
