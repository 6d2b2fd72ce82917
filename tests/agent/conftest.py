"""A small kernel and runs against a scripted model; DSPy is imported once a process."""

import dataclasses
import sqlite3

import pytest

from swizzle_agent.loop import propose
from swizzle_agent.settings import Settings
from swizzle_benchmarks.suite.gemm import gemm
from tests.agent.scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def small():
    """8 x 8 tiles, two steps each: scored in milliseconds."""
    return gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)


@pytest.fixture
def silent(small):
    """The same, with nothing said of what it shares: the model is asked first."""
    return dataclasses.replace(small, sharing="")


@pytest.fixture(autouse=True)
def few_families(monkeypatch):
    """Keep what stands beside a run to as many evaluations as the models had: more take longer than all the rest."""
    monkeypatch.setattr("swizzle_agent.baselines.LEAST_EVALUATIONS", 1)


@pytest.fixture(autouse=True)
def beyond_the_bound(monkeypatch, request):
    """Let runs go on at the bound, which the small kernel's first good order reaches; not where `stops` is marked."""
    if not request.node.get_closest_marker("stops"):
        monkeypatch.setattr("swizzle_agent.loop._Loop._at_bound", lambda loop: False)


@pytest.fixture
def run_script(tmp_path, small, mi300x):
    """Run the loop against a script; gives the run, the server and the delays that retries asked for."""

    def run(script, *, folder="run", models=("openai/scripted",), resume=False, server=None, kernel=small, **settings):
        waits, how = [], {key: settings.pop(key) for key in ("on_compared",) if key in settings}
        given = {"iterations": len(script), "timeout_s": 60.0, **settings}
        with server or ScriptedServer(script) as answers:
            done = propose(
                kernel,
                mi300x,
                tmp_path / folder,
                Settings(models=models, api_base=answers.base, **given),
                replay="lockstep",
                resume=resume,
                sleep=waits.append,
                **how,
            )
        return done, answers, waits

    return run


def dump(folder):
    """Everything that a run stores, as text."""
    lines = []
    for name in ("history.sqlite", "transcript.sqlite"):
        db = sqlite3.connect(folder / name)
        lines += db.iterdump()
        db.close()
    return lines


def codes(run):
    """Codes of the candidates that the models proposed."""
    return [a.verdict["code"] for a in run.attempts if a.proposer.startswith("llm:")]
