"""What a run of models cost, for the report: read from its transcript."""

from __future__ import annotations

from pathlib import Path

from agent.loop import END, PROPOSE, STEP
from agent.transcript import FILE, Exchange, Transcript
from swizzle_sim.report.spending import Ask, Spending


def spending(folder: Path) -> Spending | None:
    """Questions and cost of a run, None for one that asked no model.

    Raises
    ------
    RunError
        If the transcript is damaged.
    """
    if not (folder / FILE).is_file():
        return None
    with Transcript(folder) as transcript:
        steps = {step["iteration"]: step["outcomes"] for step in transcript.notes(STEP)}
        ended = (transcript.noted(END) or {"reason": ""})["reason"]
        asks = tuple(_ask(one, steps.get(one.iteration, [])) for one in transcript)
    return Spending(asks, ended)


def _ask(one: Exchange, outcomes: list[dict]) -> Ask:
    proposed = one.purpose == PROPOSE and one.candidate < len(outcomes)
    return Ask(
        attempt=outcomes[one.candidate]["attempt"] if proposed else None,
        purpose=one.purpose,
        model=one.model,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        dollars=one.dollars,
        waited_s=one.latency_ms / 1e3,
        failed=one.code or "",
    )
