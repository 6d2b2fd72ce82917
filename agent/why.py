"""Why an order of a model is better, its own rationale and what changed in its misses; and what its questions cost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.report.spending import Ask, Spending
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.loop import Run

from .prompts import NOTE
from .transcript import END, FILE, PROPOSE, STEP, Exchange, Transcript

MOST = 3  # kinds of misses, those that change most
CHANGED = 0.5  # points of the requests, from which a change is told
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


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What two bottleneck reports differ in: XCDs that touch a line, misses by kind, makespan."""
    found = []
    name = "xcds_that_touch_a_line"
    for tensor in before.get(name, {}).keys() | after.get(name, {}).keys():
        was, now = (report.get(name, {}).get(tensor, 1.0) for report in (before, after))
        if round(was, 1) != round(now, 1):
            found.append(f"{tensor} is touched by {now:.2f} XCDs, before {was:.2f}")
    was, now = _of_requests(before), _of_requests(after)
    apart = {kind: now.get(kind, 0.0) - was.get(kind, 0.0) for kind in was.keys() | now.keys()}
    most = sorted((kind for kind in apart if abs(apart[kind]) >= CHANGED), key=lambda kind: (-abs(apart[kind]), kind))
    found = sorted(found) + [
        f"misses of {tensor}, {kind}: {was.get((tensor, kind), 0.0):.1f} to {now.get((tensor, kind), 0.0):.1f} % of "
        "the requests"
        for tensor, kind in most[:MOST]
    ]
    spans = [report.get("makespan_over_ideal", 1.0) for report in (before, after)]
    if abs(spans[0] - spans[1]) >= 0.05:
        found.append(f"makespan over ideal {spans[0]:.2f} to {spans[1]:.2f}")
    return found


def _of_requests(report: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Percent of the requests that miss, by tensor and kind."""
    missed = (100 - report["l2_hit_rate_pct"]) / 100
    shares = report.get("misses_pct", {})
    kinds = {name: one if isinstance(one, dict) else {"all kinds": one} for name, one in shares.items()}
    return {(tensor, kind): share * missed for tensor, of in kinds.items() for kind, share in of.items()}


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
