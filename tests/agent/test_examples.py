"""Do the examples of docs/agent.md run as they stand, and do a context and a reward of one's own reach a run?"""

import json
import re
from pathlib import Path

import pytest

from swizzle_agent.contexts import GROUP
from swizzle_agent.loop import repeat_run
from swizzle_agent.settings import Settings
from swizzle_agent.verifiable import REWARDS, rewards
from swizzle_sim.language import family
from swizzle_sim.search.extensions import load_own
from tests.agent.conftest import dump
from tests.agent.scripted_server import proposal
from xcd_model.errors import CaptureError, RunError, UnknownName

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"


@pytest.fixture
def mine(tmp_path):
    """The file of the page."""
    (text,) = re.findall(r'```python title="mine.py"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(text.splitlines()) <= 20
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_the_context_of_the_page_reaches_the_prompt_and_the_record(run_script, mine, tmp_path):
    run, server, _ = run_script([proposal(family("column"))], context=f"{mine}:brief")
    said = json.dumps(server.proposals[0]["messages"])
    assert "A GPU of 8 dies with an L2 each. Most misses: " in said and "Infinity" not in said
    mine.unlink()
    repeat_run(run.folder, tmp_path / "again")  # without the file
    assert dump(run.folder) == dump(tmp_path / "again")


def test_the_reward_of_the_page_pays_for_fewer_fetches_elsewhere(small, mi300x, mine):
    local = load_own(f"{mine}:local", REWARDS)
    texts = ("pid = 0", "pid = pid ^ 1", "contiguous+blocks(rows=4, cols=2, size=4)")
    paid = rewards(small, texts, mi300x, replay="lockstep", of=local)
    assert paid[0] == 0.0 < paid[1] < paid[2] <= 1


def test_what_is_no_context_and_no_reward_says_what_there_is(mine):
    with pytest.raises(UnknownName, match=r"FILE\.py:FUNCTION, aware"):
        Settings(models=("openai/x",), context="wise")
    with pytest.raises(UnknownName, match="reward"):
        load_own("kind", REWARDS)
    with pytest.raises(RunError, match="has no other; the file has brief, local"):
        load_own(f"{mine}:other", REWARDS)
    with pytest.raises(RunError, match=r":FUNCTION; the file has brief, local"):
        load_own(str(mine), GROUP)
    with pytest.raises(CaptureError, match="no such file"):
        load_own("/nowhere/mine.py:local", REWARDS)
