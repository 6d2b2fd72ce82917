"""Does a run end when the model has nothing more to propose, and say what it gained in words that are true?"""

import pytest

from swizzle_agent.proposer import _over
from swizzle_agent.transcript import END, STEP, Transcript
from swizzle_sim.language import family
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, proposal, said

GOOD, DONE = proposal(family("group_m(size=4)")), proposal("Done\n")
TEMPLATE_DONE = Reply(said(reasoning="r", critique="[]", rationale="r", template="done"))


def ended(run):
    with Transcript(run.folder) as transcript:
        return transcript.noted(END)["reason"], transcript.notes(STEP)


@pytest.mark.parametrize(("stage_two", "word"), [(0, DONE), (2, TEMPLATE_DONE)], ids=["swizzle", "template"])
def test_done_at_once_asks_nothing_more(run_script, stage_two, word):
    run, server, _ = run_script((word,) * 4, stage_two=stage_two)
    reason, steps = ended(run)
    assert "no model proposes any more" in reason and "expects no better order" in reason
    assert [step["outcomes"][0]["code"] for step in steps] == ["done"] and not steps[0]["failed"]
    assert codes(run) == [] and len(server.proposals) == 1


def test_done_after_a_gain_keeps_it_and_resumes_to_the_same(run_script):
    run, server, _ = run_script((GOOD, DONE, GOOD), iterations=3)
    assert codes(run) == ["scored"] and len(server.proposals) == 2
    again, server, _ = run_script((GOOD,), iterations=3, resume=True)
    assert codes(again) == ["scored"] and not server.proposals


@pytest.mark.stops
def test_a_run_ends_where_no_order_has_fewer_misses(run_script):
    run, server, _ = run_script((GOOD,), iterations=4)
    assert codes(run) == ["scored"] and len(server.proposals) == 1
    assert ended(run)[0] == "bound: no order has fewer misses than the best so far"


def test_one_of_two_models_is_done_and_the_other_goes_on(run_script):
    run, server, _ = run_script((DONE, GOOD, DONE), models=("openai/a", "openai/b"), iterations=4)
    assert [body["model"] for body in server.proposals] == ["a", "b", "b"]
    assert codes(run) == ["scored"]


@pytest.mark.parametrize(
    ("points", "time", "said"),
    [
        (0.0, 1.0, "ties with the search, in the same predicted time"),
        (1.234, 0.8, "1.23 points above the search, predicted 25.0 % faster"),
        (-3, 1.25, "3.00 points below the search, predicted 20.0 % slower"),
    ],
)
def test_one_order_against_another_in_words(points, time, said):
    assert _over(points, time, "the search") == said
