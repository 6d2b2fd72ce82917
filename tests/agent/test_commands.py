"""The commands as typed: optimize with a model, repeat, doctor; and what they say when they cannot."""

import json
import os
import subprocess
import sys

import pytest

from swizzle_agent.providers import check_model
from swizzle_agent.transcript import Transcript
from swizzle_sim.language import family
from swizzle_sim.search.history import History
from tests.agent.scripted_server import ScriptedServer, proposal
from tests.cli.conftest import spawned as spawned  # noqa: PLC0414  (a fixture)
from tests.in_process import runner

SMALL = ("M=512", "N=512", "K=128", "BLOCK_M=64", "BLOCK_N=64")
MODEL = ("--proposer", "direct", "--model", "openai/scripted")
SCRIPT = [proposal("pid = pid % 3"), proposal(family("group_m(size=4)"))]


@pytest.fixture
def here(monkeypatch, capsys, tmp_path):
    """Commands as typed, in this process, where keys are neither set nor taken."""
    monkeypatch.setattr("swizzle_agent.providers._taken", {})
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return runner(monkeypatch, capsys, tmp_path)


@pytest.mark.usefixtures("sketched")
def test_optimize_with_a_model_and_repeat_it(here, monkeypatch, tmp_path):
    with ScriptedServer(SCRIPT) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "unlikely-4711")
        words = ("--api-base", server.base, "--iterations", "2", "--out", "run-one", "--report")
        done = here("optimize", "gemm", *SMALL, *MODEL, *words)
        assert done.code == 0, done.err
    assert "iteration 2, openai/scripted: attempt 2 scored" in done.err
    for shown in ("launch order", "best of 1 of", "search, 1 evaluation", "llm, 1 evaluation", "1 grid-collision"):
        assert shown in done.out
    assert "at an unknown price" in done.out
    assert {path.name for path in (tmp_path / "run-one").iterdir()} >= {"report.html", "best.txt", "transcript.sqlite"}
    again = here("optimize", "--replay", "run-one", "--out", "run-two", "--report", "--json")
    assert again.code == 0, again.err
    document = again.json
    assert document["cost"]["asks"] == 2 and document["steps"][1]["outcomes"][0]["code"] == "scored"
    assert document["beside"]["llm"]["l2_hit_rate"] > document["beside"]["as launched"]["l2_hit_rate"]
    assert document["why"][0] == "rationale of the model: it should" and "what changed" in document["why"][1]
    assert "rationale of the model: it should" in (tmp_path / "run-one" / "report.html").read_text()
    for name in ("best.txt", "best_triton.py", "report.html"):
        one, other = ((tmp_path / run / name).read_text() for run in ("run-one", "run-two"))
        assert one == other.replace("run-two", "run-one")
    kept = here("keep", "run-one", "--name", "mine", "--json").json
    assert kept["kept"] == "kept/mine.txt" and (tmp_path / "kept" / "mine.txt").read_text() == kept["template"]
    assert kept["from"] == "scripted 1.0", "the order of the model, not that of a family"
    assert "no attempt 99 with a score" in here("keep", "run-one", "--attempt", "99").err
    assert not any(b"unlikely-4711" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_resume_needs_neither_kernel_nor_sizes_nor_options_again(here, monkeypatch):
    with ScriptedServer(SCRIPT) as server:
        words = ("gemm", *SMALL, *MODEL, "--api-base", server.base, "--replay", "lockstep", "--context", "unaware")
        more = ("--seed", "3", "--iterations", "1", "--no-compare", "--no-uncertainty", "--out", "run-one")
        more += ("--no-compile",)
        assert here("optimize", *words, *more).code == 0
        done = here(
            "optimize", "--resume", "run-one", "--iterations", "2", "--no-compare", "--no-uncertainty", "--json",
            "--compile",
        )  # fmt: skip
        assert done.code == 0, done.err
        wrong = here("optimize", "gemm", "K=256", "--resume", "run-one")
    assert done.json["problem"]["K"] == 128 and done.json["replay"] == "lockstep" and done.json["seed"] == 3
    assert [step["outcomes"][0]["code"] for step in done.json["steps"]] == ["grid-collision", "scored"]
    assert "XCD" not in json.dumps(server.proposals[-1]["messages"])
    with Transcript("run-one") as notes:
        assert "registers" not in json.dumps(notes.notes("bottleneck")), "as begun, although it could compile"
    assert wrong.code != 0 and "cannot resume: its problem" in wrong.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--gpu", "h200", "--no-compile"), "without --no-compile it is compiled"),
        (("--proposer", "llm"), "--model"),
        (("--proposer", "llm", "--model", "openai/gpt-4o"), "set OPENAI_API_KEY"),
        ((*MODEL, "--api-base", "http://127.0.0.1:9/v1"), "is it up?"),
        (("--model", "openai/gpt-4o"), "--proposer llm"),
        (("--proposer", "lm"), "did you mean llm"),
    ],
)
def test_what_cannot_be_is_said_before_a_run_begins(here, tmp_path, words, told):
    done = here("optimize", "gemm", *words)
    assert done.code == 2 and told in done.err
    assert not (tmp_path / "runs").exists()


def test_without_the_extra(spawned, tmp_path):
    (tmp_path / "dspy.py").write_text("raise ImportError('no dspy here')\n")
    done = spawned("optimize", "gemm", *MODEL, "--json", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert done.code == 2
    error = done.json["error"]
    assert error["code"] == "extra" and "pip install -e '.[llm]' in the checkout" in error["message"]
    assert "--proposer search" in error["message"]


def test_preflight_names_what_is_wrong(monkeypatch):
    monkeypatch.setattr("swizzle_agent.providers._taken", {"OPENAI_API_KEY": "wrong"})
    with ScriptedServer(SCRIPT, models=("gpt-scripted", "other")) as server:
        assert check_model("openai/scripted", server.base).code == "auth"
        monkeypatch.setattr("swizzle_agent.providers._taken", {})
        missing = check_model("openai/scripted", server.base)
        assert missing.code == "no-model" and "gpt-scripted" in missing.message
        assert check_model("openai/other", server.base).code == "ok"
    assert check_model("openai/other", server.base).code == "no-endpoint"
    assert check_model("ollama/llama3", "http://127.0.0.1:9/v1").code == "no-endpoint"


def test_doctor_says_which_keys_are_missing(here):
    checks = {check["name"]: check for check in json.loads(here("doctor", "--json").out)["checks"]}
    assert checks["llm proposer"]["state"] == "ok" and checks["numba"]["state"] == "ok"
    assert checks["key of openai"]["state"] == "off" and "OPENAI_API_KEY" in checks["key of openai"]["message"]


def test_what_replays_nothing_starts_without_the_compiler(tmp_path):
    """Help, lists of GPUs and of runs, one of them finished, and a check; without paths, no pydantic reads words."""
    about = {"kernel": "gemm", "gpu": "mi300x", "problem": {"M": 512}, "replay": "timed", "version": "0"}
    with History.create(tmp_path / "done", about) as history, history.running():
        pass
    code = (
        "import sys; from swizzle_sim.cli.app import main\nno_paths = ('pydantic',) * (sys.argv[1] != 'runs')\n"
        "try: main()\n"
        "finally: print([one for one in ('dspy', 'openai', 'numba', *no_paths) if one in sys.modules])"
    )
    for words in (["--help"], ["gpus"], ["runs", str(tmp_path)], ["check", "row", "--grid", "8x8", "--xcds", "8"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]", done.stderr
