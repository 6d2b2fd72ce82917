"""Does a key stay where it is: in memory, and nowhere else?"""

import os
import subprocess
import sys

import pytest

from swizzle_agent import providers
from swizzle_agent.endpoint import Failure
from swizzle_agent.settings import Settings, load_prices
from tests.agent.conftest import dump
from tests.agent.scripted_server import Reply, proposal
from xcd_model.errors import ModelError, UnknownName

SECRET = "unlikely-4711-secret"


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setattr(providers, "_taken", {})
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def test_a_key_reaches_the_server_and_no_file(run_script, secret, capsys):
    script = (
        Reply(status=400, body={"error": {"message": f"bad key {SECRET} and sk-abcdefghijkl"}}),
        proposal(f"# {SECRET}\npid = pid + 0"),
        proposal("pid = 0"),
    )
    run, server, _ = run_script(script)
    assert all(headers["Authorization"] == f"Bearer {SECRET}" for _, headers in server.requests)
    assert not any(SECRET in line or "sk-abcdef" in line for line in dump(run.folder))
    for path in run.folder.rglob("*"):
        assert SECRET.encode() not in path.read_bytes()
    assert SECRET not in "".join(capsys.readouterr())
    assert any("[key]" in line for line in dump(run.folder))


def test_a_key_that_a_server_echoes_is_struck_out_everywhere(run_script, monkeypatch, capsys):
    monkeypatch.setattr(providers, "_taken", {"OPENAI_API_KEY": SECRET})
    echo = Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {SECRET}"}})
    with pytest.raises(ModelError) as caught:
        run_script((echo,), iterations=1)
    assert SECRET not in str(caught.value) and providers.STRUCK in str(caught.value)
    assert SECRET not in str(Failure("auth", f"bad {SECRET}"))
    assert SECRET not in providers.Check("m", "auth", f"bad {SECRET}").message
    run, _, _ = run_script((Reply(text=f"the key is {SECRET}"), proposal("pid = pid")), folder="other", iterations=2)
    assert not any(SECRET in line for line in dump(run.folder))
    assert SECRET not in "".join(capsys.readouterr())


def test_a_child_process_has_no_key(secret):
    providers.take_keys()
    assert "OPENAI_API_KEY" not in os.environ
    child = subprocess.run([sys.executable, "-c", "import os; print(dict(os.environ))"], capture_output=True, text=True)
    assert SECRET not in child.stdout and child.returncode == 0
    assert providers.key_of("openai/gpt-4o", None) == SECRET


def test_a_missing_key_is_named(monkeypatch):
    monkeypatch.setattr(providers, "_taken", {})
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=r"set ANTHROPIC_API_KEY, or --api-base.*--proposer search") as error:
        providers.key_of("anthropic/claude-sonnet-4-5", None)
    assert error.value.code == "no-key"
    with pytest.raises(ModelError, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
        providers.key_of("gemini/gemini-2.5-pro", None)
    assert providers.key_of("ollama/llama3", None) == providers.NO_KEY


def test_prices(tmp_path):
    prices = load_prices()
    assert prices.date and prices.source
    assert prices.dollars("openai/gpt-4o", 1_000_000, 100_000) == pytest.approx(3.5)
    assert prices.dollars("openai/gpt-4o-2024-08-06", 1_000_000, 0) == prices.dollars("gpt-4o", 1_000_000, 0)
    assert prices.dollars("openai/unheard-of", 1, 1) is None
    assert prices.dollars("openai/gpt-4o", None, 1) is None
    assert prices.dollars("ollama/llama3", 5, 5) == 0
    mine = tmp_path / "prices.toml"
    mine.write_text('date = "today"\nsource = "me"\n[models]\n"openai/mine" = { input = 1, output = 2 }\n')
    assert load_prices(mine).dollars("openai/mine", 1_000_000, 1_000_000) == 3
    for bad in ("", "date = 1", mine.read_text().replace("2 }", "-2 }"), mine.read_text().replace("2 }", "nan }")):
        mine.write_text(bad)
        with pytest.raises(ModelError, match="not a price table"):
            load_prices(mine)


@pytest.mark.parametrize(
    "wrong", [{"models": ()}, {"models": ("a", "a")}, {"context": "wise"}, {"iterations": 0}, {"tries": 0}]
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises((ModelError, UnknownName)):
        Settings(**{"models": ("openai/x",), **wrong})
