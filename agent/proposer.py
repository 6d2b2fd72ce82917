"""The proposers ``llm`` and ``two-stage`` of the command line: options in, run and summary out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import Run
from swizzle_sim.search.proposers import Proposed, Task
from xcd_model.errors import ModelError

from .baselines import FAMILIES, SEARCH
from .contexts import read_docs
from .loop import LLM, propose, repeat_run
from .prompts import read_program
from .providers import preflight
from .settings import Inputs, Settings, load_prices
from .transcript import END, STEP, Transcript

FILES = ("docs", "program", "prices")
JSON_LABELS = {"launch order": "as launched"}  # the key of the JSON document keeps its first name
TEMPLATE_EVALUATIONS = 60  # full replays for each template


def llm(task: Task) -> Proposed:
    """Run the loop for the command line."""
    if task.repeat is not None:
        return summary(repeat_run(task.repeat, task.folder, on_step=lambda step: task.say(step_text(step))))
    if task.kernel is None or task.gpu is None:
        raise ModelError("name a kernel and a GPU")
    given = task.options
    settings = Settings(seed=task.how.seed, **{**_earlier(task, given), **_own(given)})
    inputs = Inputs(
        docs=read_docs(given["docs"]) if "docs" in given else None,
        program=read_program(given["program"]) if "program" in given else None,
        prices=load_prices(given.get("prices")),
    )
    for check in preflight(settings.models, settings.api_base):
        task.say(f"{check.model}: {check.message}")
    with Progress("comparing with families and a search", "orders") as progress:
        how = vars(replace(task.how, max_minutes=None))  # the settings' own
        told = {"on_step": lambda step: task.say(step_text(step)), "on_compared": progress}
        run = propose(task.kernel, task.gpu, task.folder, settings, inputs=inputs, **how, **told)
    return summary(run)


def two_stage(task: Task) -> Proposed:
    """Run the loop with templates, whose parameters are searched; options as those of `llm`, and ``evaluations``."""
    options = {key: value for key, value in task.options.items() if key != "evaluations"}
    evaluations = task.options.get("evaluations")
    if evaluations is not None or not task.how.resume:
        options["stage_two"] = evaluations or TEMPLATE_EVALUATIONS
    return llm(replace(task, options=options))


def _own(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in FILES}


def _earlier(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the run to resume, which options of the command line override."""
    if not task.how.resume:
        if "models" not in given:
            raise ModelError("name a model, such as --model openai/gpt-4o", code="no-model")
        return {}
    with History(task.folder) as history:
        earlier = dict(history.about.get("settings", {}))
    if not earlier:
        raise ModelError(
            f"{task.folder}: made by another proposer than llm: resume it without --proposer", code="not-llm"
        )
    earlier.pop("seed", None)
    return earlier


def step_text(step: Mapping[str, Any]) -> str:
    """One iteration in a line."""
    outcomes = ", ".join(
        o["code"] if o["attempt"] is None else f"attempt {o['attempt']} {o['code']}" for o in step["outcomes"]
    )
    cost = "price unknown" if step["dollars"] is None else f"${step['dollars']:.4f}"
    failed = "failed: " if step["failed"] else ""
    return (
        f"iteration {step['iteration'] + 1}, {step['model']}: {failed}{outcomes}; best "
        f"{100 * step['best_l2_hit_rate']:.2f} % in {step['best_time_us']:.1f} µs; {step['tokens']} tokens, {cost}"
    )


def summary(run: Run) -> Proposed:
    """Result of a run of models next to launch order, best family and search."""
    with Transcript(run.folder) as transcript:
        exchanges, steps = list(transcript), transcript.notes(STEP)
        ended = (transcript.noted(END) or {"reason": "interrupted"})["reason"]
    of = {name: [a for a in run.attempts if a.proposer.startswith(name)] for name in (LLM, FAMILIES, SEARCH)}
    best = {name: next(iter(run.ranking.order(attempts)), None) for name, attempts in of.items()}
    beside = (
        ("launch order", run.baseline),
        ("best family", best[FAMILIES]),
        (f"search, {len(of[SEARCH])} evaluations", best[SEARCH]),
        (f"llm, {len(of[LLM])} evaluations", best[LLM]),
    )
    over = {name: _compared(best[LLM], best[name]) for name in (FAMILIES, SEARCH)}
    dollars = [e.dollars for e in exchanges]
    cost = {
        "asks": len(exchanges),
        "failed_asks": sum(e.code is not None for e in exchanges),
        "repeated_asks": len(exchanges) - len({(e.iteration, e.purpose, e.candidate) for e in exchanges}),
        "input_tokens": sum(e.input_tokens or 0 for e in exchanges),
        "output_tokens": sum(e.output_tokens or 0 for e in exchanges),
        "dollars": None if None in dollars else sum(d for d in dollars if d is not None),
        "waited_s": sum(e.latency_ms for e in exchanges) / 1e3,
        "ended": ended,
    }
    document = {
        "steps": steps,
        "cost": cost,
        "beside": {JSON_LABELS.get(label, label): _row(attempt) for label, attempt in beside},
        "added_over_family_points": over[FAMILIES][0],
        "added_over_search_points": over[SEARCH][0],
        "time_over_family": over[FAMILIES][1],
        "time_over_search": over[SEARCH][1],
    }
    return Proposed(run=run, beside=beside, lines=_lines(document, of[LLM]), document=document, again=summary)


def _row(attempt: Attempt | None) -> dict[str, Any] | None:
    if attempt is None or attempt.score is None:
        return None
    return {"number": attempt.number, "name": attempt.name, "l2_hit_rate": attempt.score.l2_hit_rate} | {
        "time_us": attempt.score.time_us
    }


def _compared(one: Attempt | None, other: Attempt | None) -> tuple[float | None, float | None]:
    """Points of hit rate above another, and predicted time over that of the other."""
    if one is None or other is None or one.score is None or other.score is None:
        return None, None
    return 100 * (one.score.l2_hit_rate - other.score.l2_hit_rate), one.score.time_us / other.score.time_us


def _signed(points: float) -> str:
    """Points of hit rate as they are printed; what rounds to nothing has no sign."""
    text = f"{points:+.2f}"
    return f"{text} points" if float(text) else "no points more"


def _lines(document: Mapping[str, Any], proposed: Sequence[Attempt]) -> tuple[str, ...]:
    cost = document["cost"]
    price = "at an unknown price (the model is not in the price table)"
    if cost["dollars"] is not None:
        price = f"for ${cost['dollars']:.4f}"
    codes: dict[str, int] = {}
    for attempt in proposed:
        codes[attempt.verdict["code"]] = codes.get(attempt.verdict["code"], 0) + 1
    tally = ", ".join(f"{n} {code}" for code, n in sorted(codes.items())) or "none"
    over = [
        f"{_signed(document[f'added_over_{name}_points'])} over {words}, in {document[f'time_over_{name}']:.3f} of its "
        f"predicted time"
        for name, words in (("family", "the best family"), ("search", "the search"))
        if document[f"added_over_{name}_points"] is not None
    ]
    gain = f"L2 hit rate of the models' best: {'; '.join(over)}" if over else "no candidate of the models was scored"
    return (
        gain,
        f"candidates of the models: {tally}",
        f"{cost['asks']} requests ({cost['failed_asks']} failed, {cost['repeated_asks']} retries), "
        f"{cost['input_tokens']} tokens in, {cost['output_tokens']} out, {price}, {cost['waited_s']:.1f} s of waiting; "
        f"ended by {cost['ended']}",
    )
