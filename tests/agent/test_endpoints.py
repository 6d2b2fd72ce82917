"""Servers as people have them: named by a variable, without a model list, with a page in place of an answer."""

import json

import pytest

from swizzle_agent.providers import base_of, check_model
from swizzle_agent.transcript import Transcript
from swizzle_sim.language import family
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, ScriptedServer, proposal, said
from xcd_model.errors import ModelError

GOOD = proposal(family("group_m(size=4)"))
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
        from swizzle_agent.endpoint import Endpoint

        asked = Endpoint("openai/scripted", None, timeout_s=5.0, stream=False)
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


@pytest.mark.parametrize("stream", [False, True])
def test_a_page_in_place_of_an_answer_is_asked_again(run_script, stream):
    run, server, waits = run_script((Reply(html=True), GOOD), iterations=1, stream=stream)
    assert codes(run) == ["scored"] and len(server.proposals) == 2 and len(waits) == 1


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
