"""Do the signatures ask for what the paper's do, and read what comes back?"""

import dspy
import pytest
from dspy.utils import DummyLM

from swizzle_agent.cached_lm import candidate_text
from swizzle_agent.signatures import AnalyzeMemory, ProposeSwizzle, ProposeSwizzleSeeing, Shortcoming

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
