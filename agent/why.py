"""Why an order of a model is better, its own rationale and what changed in its misses; and what its questions cost."""

from __future__ import annotations

import json
import re
from pathlib import Path

from swizzle_sim.report.bottleneck import changes_of
from swizzle_sim.report.spending import Ask, Spending
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.loop import Run

from .prompts import NOTE
from .transcript import END, FILE, PROPOSE, STEP, Exchange, Transcript

LONGEST = 400  # characters of a rationale
_FIELD = re.compile(r"\[\[ ## rationale ## \]\]\s*(.*?)\s*(?=\[\[ ##|\Z)", re.DOTALL)


def why_better(run: Run, best: Attempt | None) -> list[str]:
    """Sentences on a model's order; none of the launch order, or where nothing is known."""
    if best is None or best.number == 0:
        return []
    with Transcript(run.folder) as transcript:
        return whys(transcript).get(best.number, [])


def whys(transcript: Transcript) -> dict[int, list[str]]:
    """Sentences on each scored attempt of a run's models, by number."""
    launched, found = transcript.noted(NOTE, 0), {}
    replies = {(one.iteration, one.candidate): one.reply or "" for one in transcript if one.purpose == PROPOSE}
    for step in transcript.notes(STEP):
        for candidate, outcome in enumerate(step["outcomes"]):
            if (number := outcome["attempt"]) is None or (report := transcript.noted(NOTE, number)) is None:
                continue
            said = rationale_of(replies.get((step["iteration"], candidate), ""))
            changes = "; ".join(changes_of(launched, report)) if launched else ""
            lines = [f"rationale of the model: {said}" * bool(said), f"what changed: {changes}" * bool(changes)]
            found[number] = [line for line in lines if line]
    return found


def rationale_of(reply: str) -> str:
    """Rationale in a reply of either format, on one line; empty where there is none."""
    field = _FIELD.search(reply)
    try:
        said = field[1] if field else str(json.loads(reply)["rationale"])
    except (ValueError, KeyError, TypeError):
        return ""
    words = " ".join(said.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."


def spending(folder: Path) -> Spending | None:
    """Requests and cost of a run for its report, and why its orders are better; None for a run without a model."""
    if not (folder / FILE).is_file():
        return None
    with Transcript(folder) as transcript:
        steps = {step["iteration"]: step["outcomes"] for step in transcript.notes(STEP)}
        ended = (transcript.noted(END) or {"reason": ""})["reason"]
        return Spending(
            tuple(_ask(one, steps.get(one.iteration, [])) for one in transcript), ended, why=whys(transcript)
        )


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
