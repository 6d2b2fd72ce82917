"""The proposers ``llm``, ``direct`` and ``two-stage`` of the command line: options in, run and summary out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.extensions import is_own, load_own
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import Run
from swizzle_sim.search.proposers import Proposed, Task
from swizzle_sim.search.strategies.families import LOOKUPS
from xcd_model.errors import ModelError

from .baselines import FAMILIES, PLAN, SEARCH
from .contexts import GROUP, read_docs
from .loop import LLM, evaluations_of, propose, repeat_run
from .prompts import read_program
from .providers import preflight
from .settings import Inputs, Settings, load_prices
from .transcript import END, STEP, Transcript
from .why import why_better

FILES = ("docs", "program", "prices")
TEMPLATE_EVALUATIONS = 60  # full replays for each template


def llm(task: Task) -> Proposed:
    """Run the loop with templates where a search of each is cheap, and else with one order an answer."""
    options = task.options
    if task.kernel and task.gpu and not task.how.resume and "program" not in options:  # which is tuned for one order
        lookups = Scorer(task.kernel, task.gpu, **task.how.of_scorer).lookups
        options = {**options, "stage_two": TEMPLATE_EVALUATIONS * (TEMPLATE_EVALUATIONS * lookups <= LOOKUPS)}
    return _asked(replace(task, options=options))


def direct(task: Task) -> Proposed:
    """Run the loop of the paper: an answer is one order."""
    return _asked(task)


def _asked(task: Task) -> Proposed:
    """Run the loop for the command line."""
    if task.repeat is not None:
        return summary(repeat_run(task.repeat, task.folder, on_step=lambda step: task.say(step_text(step))))
    if task.kernel is None or task.gpu is None:
        raise ModelError("name a kernel and a GPU")
    given = task.options
    if is_own(given.get("context", "")):
        load_own(given["context"], GROUP)  # refused before a run is made
    settings, inputs = read_options({**_earlier(task, given), **given}, task.how.seed, task.say)
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
    return _asked(replace(task, options=options))


def read_options(
    given: Mapping[str, Any], seed: int, say: Callable[[str], None] = lambda line: None
) -> tuple[Settings, Inputs]:
    """Settings, and the files' content, of options as typed; the models have answered."""
    own = {key: value for key, value in given.items() if key not in FILES}
    settings = Settings(**{"models": (), "seed": seed, **own})
    inputs = Inputs(
        docs=read_docs(given["docs"]) if "docs" in given else None,
        program=read_program(given["program"]) if "program" in given else None,
        prices=load_prices(given.get("prices")),
    )
    for check in preflight(settings.models, settings.api_base):
        say(f"{check.model}: {check.message}")
    return settings, inputs


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
    """Result of a run of models next to launch order, families and search, each with its evaluations."""
    with Transcript(run.folder) as transcript:
        exchanges, steps, plans = list(transcript), transcript.notes(STEP), transcript.notes(PLAN)
        ended = (transcript.noted(END) or {"reason": "interrupted"})["reason"]
    of = {name: [a for a in run.attempts if a.proposer.startswith(name)] for name in (LLM, FAMILIES, SEARCH)}
    ranked = run.ranked  # all together: what an order is behind for depends on the others
    best = {name: next((a for a in ranked if a.proposer.startswith(name)), None) for name in of}
    plan = plans[-1] if plans else {"evaluations": 0, "families": 0}
    beside = (
        ("launch order", run.baseline),
        (f"best of {len(of[FAMILIES])} of {plan['families']} families", best[FAMILIES]),
        (f"search, {_evaluations(len(of[SEARCH]))}", best[SEARCH]),
        (f"llm, {_evaluations(evaluations_of(of[LLM]))}", best[LLM]),
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
    rows = dict(zip(("as launched", "families", "search", "llm"), beside, strict=True))
    document = {
        "steps": steps,
        "cost": cost,
        "evaluations_beside": plan["evaluations"],
        "beside": {key: _row(label, attempt) for key, (label, attempt) in rows.items()},
        "added_over_family_points": over[FAMILIES][0],
        "added_over_search_points": over[SEARCH][0],
        "time_over_family": over[FAMILIES][1],
        "time_over_search": over[SEARCH][1],
        "why": why_better(run, best[LLM]),
    }
    shown = beside if plans else (beside[0], beside[3])
    return Proposed(run=run, beside=shown, lines=_lines(document, of[LLM]), document=document, again=summary)


def _evaluations(n: int) -> str:
    return f"{n} evaluation{'s' * (n != 1)}"


def _row(label: str, attempt: Attempt | None) -> dict[str, Any] | None:
    if attempt is None or attempt.score is None:
        return None
    return {"label": label, "number": attempt.number, "name": attempt.name} | {
        "l2_hit_rate": attempt.score.l2_hit_rate,
        "time_us": attempt.score.time_us,
    }


def _compared(one: Attempt | None, other: Attempt | None) -> tuple[float | None, float | None]:
    """Points of hit rate above another, and predicted time over that of the other."""
    if one is None or other is None or one.score is None or other.score is None:
        return None, None
    return 100 * (one.score.l2_hit_rate - other.score.l2_hit_rate), one.score.time_us / other.score.time_us


def _over(points: float, time: float, words: str) -> str:
    """One order against another, in words."""
    apart = f"{abs(points):.2f} points {'above' if points > 0 else 'below'} {words}"
    rate = apart if abs(points) >= 0.005 else f"ties with {words}"
    percent = 100 * (1 / time - 1)
    change = f"{abs(percent):.1f} % {'faster' if percent > 0 else 'slower'}"
    return f"{rate}, {f'predicted {change}' if abs(percent) >= 0.05 else 'in the same predicted time'}"


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
        _over(document[f"added_over_{name}_points"], document[f"time_over_{name}"], words)
        for name, words in (("family", "the best family"), ("search", "the search"))
        if document[f"added_over_{name}_points"] is not None
    ]
    gain = f"L2 hit rate of the models' best: {'; '.join(over)}"
    if document["beside"]["llm"] is None:
        gain = "no candidate of the models was scored"
    elif not over:
        gain = "compared with the launch order alone: --resume without --no-compare adds families and a search"
    return (
        gain,
        *document["why"],
        f"candidates of the models: {tally}",
        f"{cost['asks']} requests ({cost['failed_asks']} failed, {cost['repeated_asks']} retries), "
        f"{cost['input_tokens']} tokens in, {cost['output_tokens']} out, {price}, {cost['waited_s']:.1f} s of waiting; "
        f"ended by {cost['ended']}",
    )
