"""Is a tuned prompt measured on kernels that it was not tuned on, and is nothing asked twice?"""

import json
from dataclasses import replace

import dspy
import pytest
from dspy.utils import DummyLM

from swizzle_agent.cached_lm import candidate_text
from swizzle_agent.prompts import propose_program, read_program
from swizzle_agent.settings import Settings, load_prices
from swizzle_agent.signatures import AnalyzeMemory, ProposeSwizzle, ProposeSwizzleSeeing, Shortcoming
from swizzle_agent.tune import Tuning, tune_prompt
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import family
from tests.agent.scripted_server import Reply, ScriptedServer, proposal
from xcd_model.errors import ModelError

SCRIPT = [proposal("pid = pid % 3"), proposal(family("group_m(size=4)"))]


class Reflecting(ScriptedServer):
    """Proposes badly until the instructions have been rewritten."""

    def next_reply(self, body, headers):
        self.requests.append((body, headers))
        said = json.dumps(body["messages"])
        if "Try group_m" in said:
            return SCRIPT[1]
        if "Read the bottleneck report" in said and "new_instruction" not in said:
            return SCRIPT[0]
        return Reply(json.dumps({"new_instruction": "Try group_m."}))


def test_tuning_is_measured_on_held_out_kernels_and_requests_nothing_twice(tmp_path, small, mi300x):
    other = gemm(M=512, N=1024, K=128, BLOCK_M=64, BLOCK_N=64)
    with Reflecting(SCRIPT) as server:
        settings = Settings(models=("openai/scripted",), api_base=server.base, timeout_s=10.0)
        kernels = {"train": [small], "held_out": [other], "gpu": mi300x, "folder": tmp_path / "tuned"}
        task = Tuning(**kernels, settings=settings, calls=8, prices=load_prices())
        found = tune_prompt(task)
        asked = len(server.requests)
        repeated = tune_prompt(task)
        assert len(server.requests) == asked
    assert repeated == found
    name = "gemm-M512-N1024-K128-BLOCK_M64-BLOCK_N64"
    assert found.before == {name: pytest.approx(0.1)} and found.after == {name: pytest.approx(0.2)}
    assert found.instructions == "Try group_m."
    program = propose_program(image=False, state=read_program(found.program))
    assert program.signature.instructions == "Try group_m."
    with pytest.raises(ModelError, match="file by file"):
        replace(task, settings=Settings(models=("folder/me",)))
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ModelError, match="not a program"):
        read_program(tmp_path / "bad.json")


# ---- Do the signatures ask for what the paper's do, and read what comes back?
INPUTS = {
    "original_kernel": "def k(): pass",
    "bottleneck_report": {"l2_hit_rate_pct": 50.0},
    "memory_analysis": "rows are shared",
    "hardware": "8 XCDs",
    "language": "assign pid",
    "history": [{"attempt": 1, "swizzle": "pid = 0", "result": "grid-collision"}],
}


def test_fields_in_the_order_of_the_paper():
    assert list(ProposeSwizzle.input_fields) == list(INPUTS)
    assert list(ProposeSwizzle.output_fields) == ["reasoning", "critique", "rationale", "swizzle"]
    assert list(AnalyzeMemory.output_fields) == ["locality_analysis"]
    assert ProposeSwizzleSeeing.instructions == ProposeSwizzle.instructions
    assert "bijection" in ProposeSwizzle.instructions


def test_typed_answers():
    answer = {
        "reasoning": "r",
        "critique": '[{"attempt": 1, "shortcoming": "collides"}]',
        "rationale": "why",
        "swizzle": "pid = pid",
    }
    lm = DummyLM([answer])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        found = dspy.Predict(ProposeSwizzle)(**INPUTS)
    assert found.critique == [Shortcoming(attempt=1, shortcoming="collides")]
    assert found.swizzle == "pid = pid"
    said = str(lm.history[0]["messages"])
    assert "grid-collision" in said and "Criticize every earlier attempt" in said


@pytest.mark.parametrize(
    "field",
    [
        "pid = pid",
        "```python\npid = pid\n```",
        "Here it is:\n```\npid = pid\n```\nIt is good.",
        "pid = pid\n\n[[ ## completed ## ]]",
        "\n\npid = pid\n",
    ],
)
def test_a_fence_is_not_part_of_a_candidate(field):
    assert candidate_text(field) == "pid = pid\n"
