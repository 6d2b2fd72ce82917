"""Does the model write templates, stage two search them, and the critique speak of their landscape?"""

import json

import pytest

from swizzle_agent.loop import propose, repeat_run
from swizzle_agent.settings import Settings
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.strategies.halving import landscape, search_on
from swizzle_sim.search.templates import family_template, read_template
from tests.agent.conftest import dump
from tests.agent.scripted_server import Reply, ScriptedServer, said

GROUPS = """\
template bands(size: 1..16, unused_shift: {0}) requires num_pid_m >= size
    group_pids = size * num_pid_n
    first = (pid // group_pids) * size
    length = min(num_pid_m - first, size)
    step = pid % group_pids + unused_shift
    pid_m = first + step % length
    pid_n = step // length
"""


def answer(template):
    return Reply(said(reasoning="because", critique="[]", rationale="it should", template=template))


@pytest.fixture(autouse=True)
def few_families(monkeypatch):
    monkeypatch.setattr("swizzle_agent.baselines.LEAST_EVALUATIONS", 1)


def run_script(folder, small, tight, script, **more):
    with ScriptedServer(script) as server:
        settings = Settings(models=("openai/scripted",), api_base=server.base, iterations=len(script), stage_two=16)
        done = propose(small, tight, folder, settings, replay="lockstep", sleep=lambda s: None, **more)
        return done, server


def test_templates_are_searched_and_told_of(small, tight, tmp_path):
    script = (answer("template broken(c: 1..2)\n  pid = pid"), answer(f"```\n{GROUPS}```"), answer(GROUPS))
    run, server = run_script(tmp_path / "run", small, tight, script)
    asked = [a for a in run.attempts if a.proposer.startswith("llm:")]
    assert [a.verdict["code"] for a in asked] == ["template-parameter", "scored", "duplicate"]
    scorer = Scorer(small, tight, replay="lockstep")
    bands = read_template(GROUPS)
    from swizzle_sim.language import Swizzle

    rates = [
        scorer.score(Swizzle.parse(bands.source({"size": n, "unused_shift": 0}))).l2_hit_rate for n in range(1, 17)
    ]
    assert asked[1].score.l2_hit_rate == max(rates)
    assert asked[1].verdict["parameters"]["size"] == 1 + rates.index(max(rates))
    prompt = json.dumps(server.proposals[-1]["messages"])
    for told in ("does not use it", "best at", "template bands", "A template is a swizzle with parameters"):
        assert told in prompt
    assert "unused_shift: makes no difference" in prompt
    repeat_run(run.folder, tmp_path / "again")
    assert dump(run.folder) == dump(tmp_path / "again")


def test_a_template_of_no_bijection_says_so(small, tight, tmp_path):
    script = (
        answer("template folded(c: 2..3)\n    pid = pid // c"),
        answer("template none(c: 2..3) requires c > 9\n  pid = c"),
    )
    run, _ = run_script(tmp_path / "run", small, tight, script)
    asked = [a for a in run.attempts if a.proposer.startswith("llm:")]
    assert [a.verdict["code"] for a in asked] == ["template-nothing", "template-space"]
    assert "computed by nobody" in asked[0].critique and "excludes all 2" in asked[1].critique
    assert all(a.score is None for a in asked)


def test_the_landscape_in_words(small, tight):
    template = family_template("group_m", small, tight)
    bench = Bench(Scorer(small, tight, replay="lockstep"))
    found = search_on(bench, [template], evaluations=16)
    text = landscape(template, found.attempts)
    best = min((a for a in found.attempts[1:] if a.score), key=lambda a: a.verdict["costs"])
    assert f"best at {best.verdict['parameters']['group_m_size']}" in text and "of 16 combinations replayed" in text
