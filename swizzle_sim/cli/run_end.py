"""The end of a run as ``optimize`` prints it: the answer, why, the table, and commands; all else with ``-v``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swizzle_sim.cli.output import (
    COUNTED,
    IN_BRIEF,
    SCORE_COLUMNS,
    line,
    print_advice,
    print_json,
    print_last,
    score_table,
    scored_on,
    simulated,
    title_of,
)

if TYPE_CHECKING:
    from swizzle_sim.cli.rewrite import Written
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.advice import Advice
    from swizzle_sim.search.history import Attempt
    from swizzle_sim.search.loop import Run

TOP = 5


@dataclass(frozen=True)
class End:
    """A run at its end: ranked, what to do next, the rewritten kernel, and the draws of its finalists."""

    run: Run
    advice: Advice
    written: Written | None = None
    stability: dict[str, Any] | None = None
    why_better: tuple[str, ...] = ()  # what the best order changes in the misses
    verbose: bool = False


def _counts(run: Run) -> dict[str, int]:
    refused = sum(not a.verdict.get("bijective", False) for a in run.attempts)
    scored = sum(a.score is not None for a in run.attempts)
    duplicates = len(run.attempts) - scored - refused
    return {"tried": len(run.attempts), "scored": scored, "refused": refused, "duplicates": duplicates}


def _top(run: Run) -> list[Attempt]:
    """Best candidates without the launch order, which has a row of its own."""
    return [attempt for attempt in run.ranked if attempt.number != run.baseline.number][:TOP]


def _entry(attempt: Attempt, places: Mapping[int, str]) -> dict[str, Any]:
    return {
        "place": places.get(attempt.number),
        "number": attempt.number,
        "name": attempt.name,
        "source": attempt.source,
        "verdict": attempt.judged.proof,
        "score": attempt.score,
    }


def print_run_json(end: End, scorer: Scorer) -> None:
    """Print a run as one JSON document."""
    run = end.run
    places = run.ranking.places(run.attempts)
    print_json(
        {
            **scored_on(scorer),
            "advice": end.advice,
            "why_better": end.why_better,
            "objectives": [one.name for one in run.ranking.objectives],
            "run": str(run.folder),
            **_counts(run),
            "baseline": _entry(run.baseline, places),
            "best": [_entry(attempt, places) for attempt in _top(run)],
            "slower": [attempt.name for attempt in run.ranking.slower(run.attempts)],
            "uncertainty": end.stability,
            **(end.written.as_dict() if end.written else {}),
        }
    )


def print_table(end: End, scorer: Scorer, shown: Sequence[tuple[str, str, Attempt | None]]) -> None:
    """Print advice, and a row for each label, name and attempt; where each holds, if that is not every grid."""
    from swizzle_sim.language.lattice import unconditional

    print_advice(end.advice)
    for said in end.why_better:
        line(said)
    domains = [str(a.verdict["domain"]) if a and a.score else "-" for _, _, a in shown]
    conditional = end.verbose and not all(unconditional(domain) or domain == "-" for domain in domains)
    rows = [
        (label, name, *([domain] if conditional else []), a and a.score)
        for (label, name, a), domain in zip(shown, domains, strict=True)
    ]
    heads = ["", "swizzle", *(["valid where"] if conditional else [])]
    ties = "; '=': a tie, not told apart" * any(label.startswith("=") for label, _, _ in shown)
    brief = f"{COUNTED[scorer.replay]}{ties}"
    note = simulated(scorer.gpu.name, scorer.replay, scorer.work_class) if end.verbose else brief
    columns = SCORE_COLUMNS if end.verbose else IN_BRIEF
    score_table(title_of(scorer.kernel, scorer.gpu), heads, rows, note, columns=columns)


def print_run(end: End, scorer: Scorer, remarks: Sequence[str] = ()) -> None:
    """Print a run: advice first, then the table, remarks and files."""
    run, places = end.run, end.run.ranking.places(end.run.attempts)
    print_table(end, scorer, [("", "launch order", run.baseline), *((places[a.number], a.name, a) for a in _top(run))])
    print_end(end, scorer, remarks if end.verbose else ())


def print_end(end: End, scorer: Scorer, remarks: Sequence[str]) -> None:
    """Print what stands below the table: the answer again, commands; how it was found, if that is asked for."""
    from swizzle_sim.pricing.access_patterns import emulated, emulated_note

    written = end.written
    lines = [*(_details(end) if end.verbose else ()), *remarks]
    lines += [one for one in [emulated_note(emulated(scorer.kernel, scorer.gpu), scorer.gpu)] if one]
    if (end.run.folder / "best.txt").is_file():  # not after a Ctrl-C
        report = "report.html, " if (end.run.folder / "report.html").is_file() else ""
        lines.append(f"written: {end.run.folder}/ ({report}best.txt, best_triton.py, best.hip)")
    lines += written.lines if written and (end.verbose or written.path) else ()
    for said in lines:
        line(said)
    print_last(end.advice)


def _details(end: End) -> list[str]:
    """How orders were ranked, what is above the launch order though predicted slower, counts, and draws."""
    from swizzle_sim.report.rank_stability import stability_lines

    run, counts = end.run, _counts(end.run)
    names = [attempt.name for attempt in run.ranking.slower(run.attempts)]
    slower = f"ranked above the launch order, though predicted slower: {', '.join(names[:TOP])}"
    return [
        run.ranking.sentence(),
        *([slower] if names else []),
        f"{counts['tried']} candidates tried: {counts['scored']} scored, "
        f"{counts['duplicates']} repeat another's permutation, {counts['refused']} refused",
        *(stability_lines(end.stability) if end.stability else ()),
    ]
