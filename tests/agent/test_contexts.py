"""Is a model told what each context says, and no more?"""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from swizzle_agent.budget import Turns
from swizzle_agent.contexts import CHARS_PER_TOKEN, GROUP, OVERLOAD_TOKENS, hardware_text, language_card, read_docs
from swizzle_agent.endpoint import Failure
from swizzle_agent.loop import repeat_run
from swizzle_agent.prompts import picture_png
from swizzle_agent.settings import Settings
from swizzle_agent.verifiable import REWARDS, rewards
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.extensions import load_own
from tests.agent.conftest import dump
from tests.agent.scripted_server import proposal
from xcd_model.errors import CaptureError, ModelError, RunError, UnknownName


@pytest.fixture
def scorer(small, mi300x):
    return Scorer(small, mi300x, replay="lockstep")


def test_aware_is_built_from_the_gpu(small, mi300x):
    other = dataclasses.replace(mi300x, title="Another GPU", xcds=5, cus_per_xcd=7, dispatch_offset=2)
    text = hardware_text("aware", Scorer(small, other, replay="lockstep"))
    for told in ("Another GPU", "5 accelerator complex dies", "7 CUs each", "(w + 2) % 5", "round robin"):
        assert told in text
    assert len(text) < 2000


def test_unaware_tells_nothing(scorer):
    text = hardware_text("unaware", scorer)
    assert not any(word in text for word in ("XCD", "MI300", "cache", "round robin"))
    assert "num_xcds" not in language_card(scorer.kernel, schedule=False).split("Names that have a value")[1]


def test_overload_is_long_and_unfiltered(scorer):
    text = hardware_text("overload", scorer)
    aware, most = hardware_text("aware", scorer), OVERLOAD_TOKENS * CHARS_PER_TOKEN
    assert 0.9 * most < len(text) - len(aware) <= most + 2, "as long as the paper's, and no longer"
    assert all(told in text for told in ("MI300X", "B200", '"status": "assumed"', "bin 0 XCD 7"))
    assert hardware_text("overload", scorer, "my own manual").endswith("my own manual")
    assert len(hardware_text("overload", scorer, "x" * 2 * most)) == len(aware) + 2 + most


def test_wrong_contexts(scorer, tmp_path):
    with pytest.raises(UnknownName, match="aware"):
        hardware_text("wise", scorer)
    with pytest.raises(ModelError, match="belongs to --context overload"):
        hardware_text("aware", scorer, "text")
    (tmp_path / "manual").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "manual", tmp_path / "none", tmp_path):
        with pytest.raises(ModelError, match="not a text file"):
            read_docs(path)


@pytest.mark.parametrize("grid", [Grid((64,)), Grid((8, 8)), Grid((4, 4, 4)), Grid((64,), (8, 8))])
def test_every_name_of_the_card_has_a_value_and_the_answer_that_it_asks_for_is_taken(small, grid):
    card = language_card(dataclasses.replace(small, grid=grid))
    answer = card.split("The answer: ")[1].splitlines()[0]
    for names in [part.split(")")[0] for part in answer.split("(")[1:]] or ["pid"]:
        same = ", ".join(f"{name} + 0" for name in names.split(", "))
        assert Swizzle.parse(f"{names} = {same}").verify(grid, 8, lattice=[]).bijective
    listed = card.split("Names that have a value:")[1].split("Sizes of this kernel")[0]
    names = [name for line in listed.strip().splitlines() for name in line[2:].split(":")[0].split(", ")]
    for name in names:
        text = f"pid = pid + {name} - {name}"
        assert Swizzle.parse(text).verify(grid, 8, lattice=[]).bijective, name


def test_the_picture_is_the_same_every_time(scorer):
    order = scorer.permutation(Swizzle.parse(family("contiguous")))
    png = picture_png(scorer, order)
    assert png.startswith(b"\x89PNG") and png == picture_png(scorer, order)
    assert png != picture_png(scorer, order[::-1].copy())


def test_models_take_turns_until_they_are_dropped():
    turns = Turns(("a", "b", "c"))
    assert [turns.choose() for _ in range(4)] == ["a", "b", "c", "a"]
    turns.drop("b", Failure("auth", "no key"))
    assert [turns.choose() for _ in range(3)] == ["c", "a", "c"]
    for model in ("a", "c"):
        turns.drop(model, Failure("billing", "no money"))
    with pytest.raises(ModelError, match="no money") as error:
        turns.choose()
    assert error.value.code == "auth"


# ---- Do the examples of docs/agent.md run as they stand, and do a context and a reward of one's own reach a run?
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
