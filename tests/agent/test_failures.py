"""What goes wrong on the way to a model, or to a server as people have them: is it named, asked again, survived?"""

import json

import pytest

from swizzle_agent.endpoint import FATAL, RETRIED, Endpoint
from swizzle_agent.providers import base_of, check_model
from swizzle_agent.transcript import Transcript
from swizzle_sim.language import family
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, ScriptedServer, proposal, said
from xcd_model.errors import ModelError

GOOD = proposal(family("group_m(size=4)"))
HUGE = Reply(said(reasoning="x" * (2 << 20), critique="[]", rationale="r", swizzle="pid = pid"))

ONCE = [
    ("rate-limit", Reply(status=429)),
    ("server", Reply(status=503)),
    ("empty", Reply("")),
    ("malformed", Reply("I would rather talk about the weather.")),
    ("refusal", Reply("", finish="content_filter")),
    ("too-long", HUGE),
    ("connection", Reply(GOOD.text, cut=True)),
    ("timeout", Reply(GOOD.text, slow_s=6.0)),
    ("server", Reply(html=True)),  # a page in place of an answer
]


def found(run):
    with Transcript(run.folder) as transcript:
        return [e.code for e in transcript if e.purpose == "propose"]


@pytest.mark.parametrize(("code", "first"), ONCE)
def test_asked_again_and_answered(run_script, code, first):
    patience_s = 2.5 if code == "timeout" else 60.0
    run, server, waits = run_script((first, GOOD), iterations=1, timeout_s=patience_s)
    assert codes(run) == ["scored"]
    assert len(server.proposals) == 2 and len(waits) == 1 and 0 <= waits[0] <= 2
    stored = found(run)
    assert stored == [None if code == "malformed" else code, None]
    assert code in RETRIED


def test_tries_are_bounded_and_the_loop_goes_on(run_script):
    script = (*[Reply(status=500)] * 3, GOOD)
    run, server, waits = run_script(script, iterations=2, tries=3)
    assert len(server.proposals) == 4 and len(waits) == 2
    assert codes(run) == ["scored"]


def test_the_server_says_how_long_to_wait(run_script):
    _, _, waits = run_script((Reply(status=429, headers={"Retry-After": "7"}), GOOD), iterations=1)
    assert waits == [7.0]


def test_waits_have_jitter(run_script):
    _, _, waits = run_script((*[Reply(status=500)] * 3, GOOD), iterations=1)
    assert all(0.5 * 2**i <= wait <= 1.5 * 2**i for i, wait in enumerate(waits)) and len(set(waits)) == 3


@pytest.mark.parametrize(("status", "code"), [(400, "bad-request"), (422, "bad-request")])
def test_what_asking_again_cannot_mend_is_not_asked_again(run_script, status, code):
    run, server, waits = run_script((Reply(status=status), GOOD), iterations=2)
    assert len(server.proposals) == 2 and not waits
    assert found(run) == [code, None]


@pytest.mark.parametrize(("status", "code"), [(401, "auth"), (402, "billing"), (404, "no-model")])
def test_a_model_that_cannot_be_asked_is_dropped(run_script, tmp_path, status, code):
    with pytest.raises(ModelError, match="no model answered") as error:
        run_script((Reply(status=status),), iterations=3)
    assert error.value.code == code and code in FATAL
    run, server, _ = run_script((GOOD,), resume=True, iterations=3)  # the key is mended
    assert codes(run)[0] == "scored" and len(server.proposals) == 3


def test_one_of_two_models_is_dropped(run_script):
    run, server, _ = run_script((Reply(status=401), GOOD), models=("openai/a", "openai/b"), iterations=3)
    assert [body["model"] for body in server.proposals] == ["a", "b", "b"]
    assert codes(run) == ["scored", "duplicate"]


def test_a_run_goes_on_without_a_memory_analysis(run_script, silent):
    server = ScriptedServer((GOOD,), analysis=Reply("nothing of use"))
    run, _, _ = run_script((GOOD,), server=server, kernel=silent)
    assert codes(run) == ["scored"]
    assert "No analysis was made" in str(server.proposals[0]["messages"])


def test_hostile_candidates_are_data(run_script):
    hostile = (
        proposal("__import__('os').system('touch pwned')"),
        proposal("\x1b[31m" + "pid = 0"),
        proposal("pid = pid\n" * 4000),
        proposal("```python\nfor i in range(2147483647):\n    pid = pid + i - i\n```"),
        proposal("<script>alert(1)</script>"),
    )
    run, _, _ = run_script(hostile)
    assert all(code.startswith(("parse-", "grid-")) for code in codes(run))


# ---- Servers named by a variable, without a model list, with a page in place of an answer.
SECRET = "unlikely-4711"


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setattr("swizzle_agent.providers._taken", {"OPENAI_API_KEY": SECRET})


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_server_of_the_variable_gets_the_key_and_the_vendor_does_not(monkeypatch, run_script, key, variable):
    with ScriptedServer([GOOD]) as proxy:
        monkeypatch.setenv(variable, proxy.base)
        assert base_of("openai/scripted", None) == proxy.base
        assert base_of("openai/scripted", "http://typed/v1") == "http://typed/v1"
        assert base_of("anthropic/claude", None) is None
        found = check_model("openai/scripted", None)
        assert found.code == "ok" and proxy.base in found.message
        asked = Endpoint("openai/scripted", None, timeout_s=5.0)
        assert asked._client["api_base"] == proxy.base


def test_a_variable_with_a_secret_in_it_is_refused_by_its_name(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:hunter2@proxy/v1")
    with pytest.raises(ModelError, match="OPENAI_BASE_URL holds a user name") as error:
        base_of("openai/gpt-4o", None)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("status", [404, 405, 501, 200, 503])
def test_a_server_without_a_model_list_is_asked_the_question_itself_unless_it_is_down(status, key):
    with ScriptedServer([GOOD], no_list=status) as server:
        found = check_model("openai/scripted", server.base)
    if status == 503:
        assert found.code == "no-endpoint"
    else:
        assert found.code == "unchecked" and found.passed and "the first answer will tell" in found.message


def test_a_malformed_answer_is_asked_again_with_what_was_wrong_and_another_seed(run_script):
    half = Reply(said(reasoning="because", rationale="it should"))
    run, server, _ = run_script((half, GOOD), iterations=1)
    assert codes(run) == ["scored"]
    first, second = server.proposals
    assert second["seed"] == first["seed"] + 1
    assert "could not be read" not in json.dumps(first)
    assert (
        "Your last answer could not be read: the answer has no field critique, swizzle."
        in second["messages"][0]["content"]
    )
    with Transcript(run.folder) as transcript:
        assert [e.code for e in transcript if e.purpose == "propose"] == [None, None]
