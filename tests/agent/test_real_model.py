"""The plumbing with a real model in it: SmolLM2-135M, constrained to JSON. Says nothing of quality; `make test-llm`."""

import subprocess
import sys
from pathlib import Path

import pytest

from swizzle_agent.loop import STEP, propose, repeat_run
from swizzle_agent.providers import check_model
from swizzle_agent.settings import Settings
from swizzle_agent.transcript import Transcript
from tests.agent.conftest import dump

pytestmark = pytest.mark.llm
SECONDS = 3600


@pytest.fixture(scope="module")
def base():
    pytest.importorskip("xllamacpp", reason="make test-llm installs it")
    script = Path(__file__).with_name("real_model.py")
    with subprocess.Popen(
        [sys.executable, str(script), str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        address = next(line.strip() for line in server.stdout if line.startswith("http"))
        yield f"{address}/v1"
        server.kill()


def test_preflight_finds_the_model(base):
    assert check_model("openai/smollm2-135m", base).code == "ok"
    assert check_model("openai/smollm2-1b", base).code == "no-model"


def test_a_run_with_a_real_model_can_be_repeated(base, tmp_path, small, mi300x):
    settings = Settings(
        models=("openai/smollm2-135m",),
        api_base=base,
        context="unaware",
        iterations=1,
        structured=True,
        temperature=0.7,
        reply_tokens=300,
        timeout_s=900.0,
        tries=2,
    )
    run = propose(small, mi300x, tmp_path / "run", settings, replay="lockstep")
    with Transcript(run.folder) as transcript:
        exchanges, steps = list(transcript), transcript.notes(STEP)
    assert len(steps) == 1 and all(e.reply and e.input_tokens and e.output_tokens for e in exchanges)
    repeat_run(run.folder, tmp_path / "again")
    assert dump(run.folder) == dump(tmp_path / "again")
