"""``score`` with several swizzles or GPUs: the table of orders by GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from swizzle_sim.cli.arguments import Launch, ReplayOptions

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle, Verdict
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.advice import Advice
    from swizzle_sim.search.history import Attempt


Scored = Callable[..., tuple[Any, ...]]  # `swizzle_sim.cli.score.scored_as_compiled`


@dataclass(frozen=True)
class OnGpu:
    """All orders on one GPU: the launch order first."""

    scorer: Scorer
    attempts: list[Attempt]
    verdicts: list[Verdict]
    advice: Advice | None


def compare(
    candidates: Sequence[Swizzle], launches: Sequence[Launch], how: ReplayOptions, scored: Scored, json: bool
) -> None:
    """Score every order on every GPU by ``scored``; exit 1 if one of them is no bijection somewhere."""
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.language import Swizzle
    from swizzle_sim.pricing.scoring import Scorer

    orders = [Swizzle.parse("identity", name="launch order"), *candidates]
    found: list[OnGpu] = []
    with Progress("scoring", "orders") as progress:
        for launch in launches:
            scorer = Scorer(*launch.load(how.compile), replay=how.replay, seed=how.seed, jitter_ns=how.jitter)
            done, total = len(found) * len(orders), len(launches) * len(orders)
            found.append(_on_gpu(scorer, orders, how, scored, lambda k, at=done, all=total: progress(at + k, all)))
    if json:
        print_json(_document(orders, found))
    else:
        _print(orders, found)
    if not all(verdict.bijective for on in found for verdict in on.verdicts):
        raise typer.Exit(1)


def _on_gpu(scorer: Scorer, orders: Sequence[Swizzle], how: ReplayOptions, scored: Scored, on_order: Any) -> OnGpu:
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.history import Attempt
    from swizzle_sim.search.ranking import Ranking, default_objectives

    attempts, verdicts = [], []
    for number, one in enumerate(orders):
        verdict = scorer.verify(one)
        score = scorer.baseline if number == 0 else None
        if number and verdict.bijective:
            score = scored(scorer, one, scorer.permutation(one), compile=how.compile)[1]
        verdicts.append(verdict)
        attempts.append(
            Attempt(
                number=number, name=str(one.name), source=one.source, proposer="given", verdict=verdict.as_dict(),
                score=score,
            )
        )  # fmt: skip
        on_order(number + 1)
    ranking = Ranking(default_objectives(scorer.gpu.name, scorer.replay), gpu=scorer.gpu.name)
    advice = advise_run(scorer, ranking, attempts, "") if how.replay == "timed" and len(orders) > 1 else None
    return OnGpu(scorer, attempts, verdicts, advice)


def _document(orders: Sequence[Swizzle], found: Sequence[OnGpu]) -> dict[str, Any]:
    from swizzle_sim.cli.output import scored_on

    return {
        "on": [{**scored_on(on.scorer), "advice": on.advice and on.advice.as_dict()} for on in found],
        "orders": [
            {
                "swizzle": one.name,
                "source": one.source,
                "on": [
                    {
                        "gpu": on.scorer.gpu.name,
                        "verdict": on.verdicts[k].as_dict(),
                        "score": score.as_dict() if (score := on.attempts[k].score) else None,
                    }
                    for on in found
                ],
            }
            for k, one in enumerate(orders)
        ],
    }


def _print(orders: Sequence[Swizzle], found: Sequence[OnGpu]) -> None:
    from swizzle_sim.cli.output import console, print_verdict, sizes_text, table

    several = len(found) > 1
    for on in found:
        if on.advice:
            where = f"{on.scorer.gpu.name}: " if several else ""
            console(wide=True).print(where + on.advice.line, style="bold", markup=False)
    kernel = found[0].scorer.kernel
    title = f"{kernel.name} {sizes_text(kernel.problem)} on {', '.join(on.scorer.gpu.title for on in found)}"
    heads, cells = ["swizzle"], [[str(one.name)] for one in orders]
    for on in found:
        columns, scored = _columns(on, several)
        heads += columns
        cells = [[*row, *more] for row, more in zip(cells, scored, strict=True)]
    table(title, heads, cells, note=_note(found))
    for on in found:
        for one, verdict, attempt in zip(orders, on.verdicts, on.attempts, strict=True):
            if not verdict.bijective:
                print_verdict(one, f"{on.scorer.kernel.grid}, {on.scorer.gpu.name}", on.scorer.gpu.xcds, verdict)
            elif attempt.score and attempt.score.price and attempt.score.price.loses_occupancy:
                said = f"{one.name} on {on.scorer.gpu.name}: {attempt.score.price} (workgroups lost)"
                console(wide=True).print(said, markup=False)


def _columns(on: OnGpu, several: bool) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of one GPU: with several, its name above the three figures that decide."""
    from swizzle_sim.cli.output import SCORE_COLUMNS, score_cells, score_columns

    heads = list(score_columns(on.scorer.gpu.name, on.scorer.replay))
    cells = [score_cells(a.score) if a.score else ["-"] * len(heads) for a in on.attempts]
    if not several:
        return heads, cells
    kept = [SCORE_COLUMNS.index(column) for column in ("L2 hit\nrate [%]", "HBM\n[GB]", "time\n[µs]")]
    return [f"{on.scorer.gpu.name}\n{SCORE_COLUMNS[k]}" for k in kept], [[row[k] for k in kept] for row in cells]


def _note(found: Sequence[OnGpu]) -> str:
    """What kind of numbers these are, and on which of the GPUs times rank orders."""
    from swizzle_sim.cli.output import BELIEVE, SIMULATED
    from swizzle_sim.search.ranking.evidence import times_note

    replay = found[0].scorer.replay
    notes = {times_note(on.scorer.gpu.name, replay) for on in found} if replay == "timed" else set()
    return "\n".join([SIMULATED[replay], *sorted(notes), BELIEVE])
