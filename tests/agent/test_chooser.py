"""Does `--proposer llm` ask for templates where replays are cheap, and for one order elsewhere?"""

from pathlib import Path

import pytest

from swizzle_agent import proposer
from swizzle_sim.search.loop import RunConfig
from swizzle_sim.search.proposers import Task


@pytest.mark.parametrize(
    ("lookups", "options", "evaluations"),
    [(3.6e9, {}, 60), (1.0, {}, 0), (3.6e9, {"program": "tuned.json"}, None)],
    ids=["cheap", "slow", "tuned"],
)
def test_what_is_asked_for_follows_the_cost_of_a_replay(small, mi300x, monkeypatch, lookups, options, evaluations):
    """Of the cost in lookups, which no load of the machine changes."""
    monkeypatch.setattr(proposer, "LOOKUPS", lookups)
    monkeypatch.setattr(proposer, "_asked", lambda task: task.options.get("stage_two"))
    task = Task(kernel=small, gpu=mi300x, folder=Path("run"), how=RunConfig(replay="lockstep"), options=options)
    assert proposer.llm(task) == evaluations
