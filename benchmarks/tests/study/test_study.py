"""Studies: resumable, and the same from the record as from the model."""

import json
import random

import pytest

from swizzle_agent.settings import Inputs, Settings, load_prices
from swizzle_benchmarks.evidence.recording import repeat_recording
from swizzle_benchmarks.evidence.study.protocol import Benchmark, drawn_sizes, run_benchmark
from swizzle_benchmarks.evidence.study.runs import Study, run_study
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import family
from tests.agent.scripted_server import ScriptedServer, proposal
from xcd_model.errors import ModelError

SCRIPT = [proposal("pid = pid % 3"), proposal(family("group_m(size=4)"))]


@pytest.fixture
def study(tmp_path, small, mi300x):
    def make(which, base=None, **more):
        models = more.pop("models", ("openai/scripted",))
        settings = Settings(models=models, api_base=base, iterations=2, timeout_s=5.0, **more.pop("settings", {}))
        given = {"kernels": (small,), "gpu": mi300x, "folder": tmp_path / "study", "replay": "lockstep", **more}
        return Study(which=which, settings=settings, inputs=Inputs(prices=load_prices()), **given)

    return make


def test_contexts_and_again_from_the_record(study, tmp_path):
    with ScriptedServer([SCRIPT[0], SCRIPT[1]] * 3) as server:
        found = run_study(study("contexts", server.base))
        asked = len(server.requests)
    assert asked == 6  # three contexts, two proposals each: of a kernel of the suite nothing has to be asked
    assert [row["label"] for row in found["rows"]] == ["aware", "unaware", "overload"]
    assert run_study(study("contexts")) == found, "finished runs are used as they are, with no model"
    assert found["rows"][0]["codes"] == ["grid-collision", "scored"]
    assert found["rows"][0]["l2_hit_rate_of_each"][0] is None
    recordings = sorted((tmp_path / "study" / "recorded").glob("*.json"))
    assert len(recordings) == 3
    for path in recordings:
        again = repeat_recording(path, tmp_path / path.stem)
        assert json.dumps(again, indent=1, sort_keys=True) + "\n" == path.read_text(), "byte for byte, with no model"
    assert json.loads((tmp_path / "study" / "study-contexts.json").read_text()) == found


def test_models_each_have_their_run(study, tmp_path):
    with ScriptedServer(SCRIPT) as server:
        found = run_study(study("models", server.base, models=("openai/a", "openai/b")))
    assert [row["label"] for row in found["rows"]] == ["openai/a", "openai/b"]


def test_a_picture_is_an_arm_of_its_own(study):
    with ScriptedServer(SCRIPT) as server:
        found = run_study(study("contexts", server.base, settings={"image": True}))
    assert [(row["label"], row["run"].endswith("aware-image")) for row in found["rows"]] == [("aware, picture", True)]


def test_answers_may_come_from_a_folder(study, tmp_path):
    """Each run has a folder and a context of its own; a question without an answer ends the command."""
    task = study("contexts", str(tmp_path / "answers"), models=("folder/by-hand",))
    for answer in (SCRIPT[0].text, SCRIPT[1].text):
        with pytest.raises(ModelError, match=r"001-\w+\.prompt\.md waits|002-\w+\.prompt\.md waits") as error:
            run_study(task)
        assert error.value.code == "waiting" and str(error.value).count("waits") == 3
        for prompt in (tmp_path / "answers").glob("*/*.prompt.md"):
            answered = prompt.with_name(prompt.name.replace(".prompt.", ".answer."))
            if not answered.exists():
                assert "--- user" in prompt.read_text()
                answered.write_text(answer)
    found = run_study(task)
    assert [row["codes"] for row in found["rows"]] == [["grid-collision", "scored"]] * 3


def test_a_picture_lies_beside_its_question(study, tmp_path):
    answers = tmp_path / "answers"
    with pytest.raises(ModelError, match="waits"):
        run_study(study("contexts", str(answers), models=("folder/by-hand",), settings={"image": True}))
    (png,) = answers.glob("*/*.png")
    assert png.read_bytes().startswith(b"\x89PNG") and png.with_suffix(".md").is_file()


def test_a_benchmark_scores_a_model_at_drawn_sizes(tmp_path, mi300x, monkeypatch):
    monkeypatch.setattr("swizzle_benchmarks.evidence.study.protocol.LEAST_SIZE", 128)

    def load(sizes, gpu):
        return gemm(**{"M": 1024, "N": 1024, "K": 128, "BLOCK_M": 64, "BLOCK_N": 64, **sizes})

    with ScriptedServer([SCRIPT[1]]) as server:
        settings = Settings(models=("openai/scripted",), api_base=server.base, iterations=1, timeout_s=5.0)
        given = {"kernels": {"gemm": load}, "gpus": (mi300x,), "settings": settings, "replay": "lockstep", "seeds": 2}
        task = Benchmark(**given, seed=7, folder=tmp_path / "b", inputs=Inputs(prices=load_prices()))
        found = run_benchmark(task)
        asked = len(server.requests)
        assert run_benchmark(task) == found and len(server.requests) == asked, "finished runs are used as they are"
    row = found["rows"][0]
    assert all(row["problem"][name] % 16 == 8 for name in ("M", "N")), "no block divides them"
    assert drawn_sizes({"M": 1024}, random.Random("7 gemm")) == drawn_sizes({"M": 1024}, random.Random("7 gemm"))
    assert row["figures"]["first"] == row["figures"]["at the end"] >= 0 == row["refused"]
    made = found["table"]
    assert (made["tasks"], made["runs"]) == (1, 2)
    assert made["first"]["low"] <= made["first"]["mean"] <= made["first"]["high"]


def test_what_cannot_be_compared_is_refused(study):
    for wrong in ({"which": "nothing"}, {"which": "contexts", "kernels": ()}, {"which": "models"}):
        with pytest.raises(ModelError):
            study(**wrong)
