"""Does the loop hold: choose what to ask for, propose, judge, remember, stop, and stand beside the others?"""

import json
import re
import time
from pathlib import Path

import pytest

from swizzle_agent import baselines, proposer
from swizzle_agent.loop import END, STEP, propose, repeat_run
from swizzle_agent.proposer import _over, summary
from swizzle_agent.settings import Settings
from swizzle_agent.transcript import Transcript
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import family
from swizzle_sim.search.loop import RunConfig
from swizzle_sim.search.proposers import Task
from tests.agent.conftest import codes, dump
from tests.agent.scripted_server import Reply, ScriptedServer, proposal, said
from xcd_model.errors import ModelError, RunError

GOOD = family("group_m(size=4)")
SCRIPT = (proposal("pid = ("), proposal("pid = pid % 7"), proposal(GOOD), proposal("pid = pid + 0"))


def test_each_stage_of_the_cascade_answers_the_model(run_script):
    run, server, _ = run_script(SCRIPT)
    assert codes(run) == ["parse-syntax", "grid-collision", "scored", "duplicate"]
    prompt = json.dumps(server.proposals[-1]["messages"])
    for told in ("parse-syntax", "grid-collision", "both compute tile", "was never closed", "xcds_that_touch_a_line"):
        assert told in prompt
    assert "pid = pid + 0" not in prompt
    assert "MI300X" in prompt and "round robin" in prompt
    assert len(server.requests) == len(SCRIPT), "a kernel that says what it shares is not asked about"
    assert "Tiles of one tile row share the A panel" in prompt
    assert run.best.score.l2_hit_rate >= run.attempts[3].score.l2_hit_rate > run.baseline.score.l2_hit_rate
    by_proposer = [a.proposer for a in run.attempts]
    assert by_proposer[0] == "baseline" and by_proposer.count("search") == by_proposer.count("families") == 1, (
        "as many evaluations beside as the one order of the model that was scored"
    )
    assert all(a.score is not None for a in run.attempts if a.proposer in ("families", "search"))


def test_one_memory_analysis_a_run_of_a_kernel_that_says_nothing(run_script, silent):
    _, server, _ = run_script(SCRIPT, kernel=silent)
    assert len(server.requests) == 1 + len(SCRIPT)
    assert all("Rows of A are shared" in json.dumps(body["messages"]) for body in server.proposals)
    counted = (
        "8 lines of it; 7 others touch all of them: all with pid_m = 4. In launch order none of them runs on its XCD"
    )
    assert counted in json.dumps(server.requests[0][0]["messages"]) and counted in json.dumps(server.proposals[-1])


def test_the_search_beside_has_its_own_evaluations_and_rows_say_how_much_was_tried(run_script, monkeypatch):
    monkeypatch.setattr(baselines, "LEAST_EVALUATIONS", 12)
    counted = []
    run, _, _ = run_script(SCRIPT[2:3], on_compared=lambda done, total: counted.append((done, total)))
    searched = [a.proposer for a in run.attempts].count("search")
    assert 1 < searched <= 12, "more than the one of the model; it ends at the bound"
    assert counted == sorted(counted) and len({total for _, total in counted}) == 1
    found = summary(run)  # evaluations are counted, so that a busy machine compares as an idle one does
    labels = [label for label, _ in found.beside]
    assert labels[0] == "launch order" and labels[3] == "llm, 1 evaluation"
    assert re.fullmatch(r"best of 12 of \d\d+ families", labels[1]), labels
    assert re.fullmatch(r"search, \d+ evaluations", labels[2]), labels
    assert "added_over_family_points" in found.document and found.document["evaluations_beside"] == 12


def test_a_run_without_a_comparison_says_so_and_adds_nothing_until_it_is_asked_for(run_script):
    run, _, _ = run_script(SCRIPT[2:3], no_compare=True)
    assert [a.proposer for a in run.attempts] == ["baseline", "llm:openai/scripted"]
    lines = summary(run).lines
    assert lines[0].startswith("compared with the launch order alone") and "no candidate" not in lines[0]
    run, server, _ = run_script(SCRIPT[2:3], resume=True)
    assert not server.requests and "search" in {a.proposer for a in run.attempts}
    run, _, _ = run_script(SCRIPT[:1], folder="other", no_compare=True)
    assert summary(run).lines[0] == "no candidate of the models was scored"


def test_a_run_is_repeated_to_the_byte_with_no_model(run_script, tmp_path):
    run, _, _ = run_script((proposal("pid = ("), Reply(status=500), Reply("no fields"), proposal(GOOD)), iterations=2)
    repeat_run(run.folder, tmp_path / "again")  # the server is gone
    assert dump(run.folder) == dump(tmp_path / "again")
    with pytest.raises(RunError, match="never overwritten"):
        repeat_run(run.folder, tmp_path / "again")


def test_a_changed_prompt_is_not_answered_from_the_record(run_script, tmp_path, monkeypatch):
    run, _, _ = run_script(SCRIPT[:2])
    monkeypatch.setattr("swizzle_agent.prompts.language_card", lambda *args, **kwargs: "another language")
    with pytest.raises(RunError, match="the prompt is not the one"):
        repeat_run(run.folder, tmp_path / "again")


def test_candidates_of_one_iteration_share_a_history(run_script):
    run, server, _ = run_script(SCRIPT[2:], iterations=1, candidates=2)
    assert codes(run) == ["scored", "duplicate"]
    first, second = (json.dumps(body["messages"]) for body in server.proposals)
    assert "your own answer to this very question" in second and "your own answer" not in first
    assert server.proposals[0]["seed"] != server.proposals[1]["seed"]


@pytest.mark.parametrize(("limit", "asked"), [({"max_tokens": 200}, 2), ({"max_minutes": 0.0}, 0)])
def test_budgets_stop_a_run(run_script, limit, asked):
    run, server, _ = run_script(SCRIPT, **limit)
    assert len(server.proposals) == asked
    with Transcript(run.folder) as transcript:
        assert transcript.noted(END)["reason"].startswith(("tokens", "time"))


def test_a_budget_ends_an_iteration_between_candidates(run_script, tmp_path):
    run, server, _ = run_script(SCRIPT, iterations=1, candidates=4, max_tokens=200)
    assert len(server.proposals) == 2
    repeat_run(run.folder, tmp_path / "again")
    assert dump(run.folder) == dump(tmp_path / "again")


def test_dollars_need_a_price(run_script):
    with pytest.raises(ModelError, match="no price is known for openai/scripted") as error:
        run_script(SCRIPT, max_dollars=1.0)
    assert error.value.code == "no-price"
    run, server, _ = run_script(SCRIPT, folder="priced", models=("openai/gpt-4o",), max_dollars=0.0004)
    assert len(server.proposals) == 1  # an answer costs 0.00045 dollars
    with Transcript(run.folder) as transcript:
        assert [e.dollars for e in transcript] == [pytest.approx(0.00045)]
        assert transcript.noted(END)["reason"].startswith("dollars")


def test_several_models_share_a_history(run_script):
    run, server, _ = run_script(SCRIPT, models=("openai/a", "openai/b"))
    assert {body["model"] for body in server.proposals} == {"a", "b"}
    assert "llm:openai/b" in {a.proposer for a in run.attempts}
    assert "pid = (" in json.dumps(server.proposals[1]["messages"])


def test_a_picture_goes_along(run_script):
    _, server, _ = run_script(SCRIPT[:1], image=True)
    parts = [
        part
        for message in server.proposals[0]["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    pictures = [part for part in parts if part["type"] == "image_url"]
    assert len(pictures) == 1 and pictures[0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


def test_constrained_answers_ask_for_a_schema(run_script):
    answer = {"reasoning": "r", "critique": [], "rationale": "r", "swizzle": GOOD}
    run, server, _ = run_script((Reply(json.dumps(answer)),), structured=True)
    assert codes(run) == ["scored"]
    schema = server.proposals[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reasoning", "critique", "rationale", "swizzle"]
    assert schema["properties"]["critique"]["maxItems"] == 0, "as many as there are attempts: a small model ends"


def test_steps_say_what_came_of_each_iteration(run_script):
    run, _, _ = run_script((SCRIPT[0], Reply(status=400), SCRIPT[2]))
    with Transcript(run.folder) as transcript:
        steps = transcript.notes(STEP)
    assert [(s["failed"], s["outcomes"][0]["code"]) for s in steps] == [
        (False, "parse-syntax"),
        (True, "bad-request"),
        (False, "scored"),
    ]


# ---- Does a run end when the model has nothing more to propose, and say what it gained in words that are true?
BETTER, DONE = proposal(GOOD), proposal("Done\n")
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
    run, server, _ = run_script((BETTER, DONE, BETTER), iterations=3)
    assert codes(run) == ["scored"] and len(server.proposals) == 2
    again, server, _ = run_script((BETTER,), iterations=3, resume=True)
    assert codes(again) == ["scored"] and not server.proposals


@pytest.mark.stops
def test_a_run_ends_where_no_order_has_fewer_misses(run_script):
    run, server, _ = run_script((BETTER,), iterations=4)
    assert codes(run) == ["scored"] and len(server.proposals) == 1
    assert ended(run)[0] == "bound: no order has fewer misses than the best so far"


def test_one_of_two_models_is_done_and_the_other_goes_on(run_script):
    run, server, _ = run_script((DONE, BETTER, DONE), models=("openai/a", "openai/b"), iterations=4)
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


# ---- Replies that a real model gave, cut off and confused as they are: does the loop take them as they come?
RECORDED = json.loads(Path(__file__).with_name("replies_smollm2.json").read_text())["replies"]


def test_a_small_model_gets_nowhere_and_breaks_nothing(run_script, silent):
    replies = [Reply(r["text"], finish=r["finish"], usage=(r["input_tokens"], r["output_tokens"])) for r in RECORDED]
    server = ScriptedServer(replies[1:], analysis=replies[0])
    run, server, waits = run_script(replies[1:], server=server, kernel=silent, structured=True, iterations=1, tries=2)
    with Transcript(run.folder) as transcript:
        exchanges, steps = list(transcript), transcript.notes(STEP)
    assert [e.finish for e in exchanges] == ["stop", "length", "length"]
    assert [e.output_tokens for e in exchanges] == [r["output_tokens"] for r in RECORDED]
    assert len(waits) == 1 and len(steps) == 1
    assert all(code.startswith("parse-") for code in codes(run))
    assert not run.best.proposer.startswith("llm:") and {"families", "search"} <= {a.proposer for a in run.attempts}


def test_the_loop_costs_less_than_two_seconds_an_iteration_of_gemm_8192(tmp_path, mi300x):
    """Processor time of the whole process, the scripted server included; a shared machine stretches wall time."""
    spent = []
    script = [proposal(family(spec)) for spec in ("chunked(chunk=4)+group_m(size=4)", "snake", "row")]
    with ScriptedServer(script) as server:
        settings = Settings(models=("openai/scripted",), api_base=server.base, iterations=3)
        run = propose(
            gemm(), mi300x, tmp_path / "run", settings, on_step=lambda step: spent.append(time.process_time())
        )
    assert codes(run) == ["scored", "scored", "duplicate"]
    assert spent[1] - spent[0] < 2.0
