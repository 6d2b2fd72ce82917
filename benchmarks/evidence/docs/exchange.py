"""One whole exchange of the llm proposer, for ``exchange.md``: a real prompt, and an answer written by hand."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from swizzle_agent.endpoint import Answer
from swizzle_agent.loop import propose
from swizzle_agent.proposer import step_text
from swizzle_agent.settings import Settings
from swizzle_agent.transcript import STEP, Transcript
from swizzle_sim.language import family
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

SIZES = {"M": 3072, "N": 2048, "K": 512}
ANSWER = {
    "reasoning": "A line of A is fetched by 8 XCDs: 55 % of all misses are lines of A that another XCD had. "
    "Neighbouring ids compute neighbouring tiles of a row, and round robin spreads these over all XCDs.",
    "critique": "[]",
    "rationale": "Give each XCD a run of tiles that are neighbours, so that it reads few rows of A; walk the run in "
    "groups of 4 tile rows, so that it reads few columns of B as well.",
    "swizzle": family("contiguous+group_m(size=4)").strip(),
}


class _Script:
    """In place of a model."""

    def ask(self, request: object) -> Answer:
        """Answer, whatever is asked."""
        text = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in ANSWER.items())
        return Answer(text + "[[ ## completed ## ]]", "stop", False, 2300, 320)


def exchange() -> str:
    """Markdown of the exchange, and of what became of the answer."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(models=("openai/by-hand",), iterations=1, no_compare=True)
        run = propose(
            kernel("gemm", **SIZES), gpu("mi300x"), Path(folder) / "run", settings, endpoint_of=lambda model: _Script()
        )
        with Transcript(run.folder) as transcript:
            asked, steps = next(iter(transcript)), transcript.notes(STEP)
    parts = []
    for role, text in _messages(json.loads(asked.request)):
        parts += [f"What the model is told ({role}):", "", "~~~text", text.rstrip(), "~~~", ""]
    parts += ["The answer (by hand):", "", "~~~text", str(asked.reply).rstrip(), "~~~", ""]
    parts += ["What became of it:", "", "~~~text", step_text(steps[0]), "~~~"]
    return "\n".join(parts)


def _messages(request: dict) -> list[tuple[str, str]]:
    """Role and text of each message; blank ends of lines are left out, and the report has a key a line."""
    found = [("system", request["system"])] if isinstance(request.get("system"), str) else []
    for message in request["messages"]:
        parts = message.get("content") or message.get("parts")
        text = parts if isinstance(parts, str) else "".join(part.get("text", "") for part in parts)
        found.append((message["role"], text))
    return [(role, "\n".join(_folded(line) for line in text.splitlines())) for role, text in found]


def _folded(line: str) -> str:
    if not line.startswith('{"'):
        return line.rstrip()
    values = json.loads(line)
    return "{" + ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()) + "}"
