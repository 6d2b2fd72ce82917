"""Replies that a real model gave, cut off and confused as they are: does the loop take them as they come?"""

import json
import time
from pathlib import Path

from swizzle_agent.loop import propose
from swizzle_agent.settings import Settings
from swizzle_agent.transcript import STEP, Transcript
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import family
from tests.agent.conftest import codes
from tests.agent.scripted_server import Reply, ScriptedServer, proposal

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
