"""The end of a run as ``optimize`` prints it: advice, table, what is slower or tied, files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swizzle_sim.cli.output import line, print_advice, print_json, score_table, scored_on, title_of

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
    written: Written | None
    stability: dict[str, Any] | None


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
        "score": attempt.score.as_dict() if attempt.score else None,
    }


def print_run_json(end: End, scorer: Scorer) -> None:
    """Print a run as one JSON document."""
    run = end.run
    places = run.ranking.places(run.attempts)
    print_json(
        {
            **scored_on(scorer),
            "advice": end.advice.as_dict(),
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
    domains = [str(a.verdict["domain"]) if a and a.score else "-" for _, _, a in shown]
    conditional = not all(unconditional(domain) or domain == "-" for domain in domains)
    rows = [
        (label, name, *([domain] if conditional else []), a and a.score)
        for (label, name, a), domain in zip(shown, domains, strict=True)
    ]
    heads = ["", "swizzle", *(["valid where"] if conditional else [])]
    score_table(
        title_of(scorer.kernel, scorer.gpu), heads, rows, scorer.gpu.name, scorer.replay, work_class=scorer.work_class
    )


def print_run(end: End, scorer: Scorer, remarks: Sequence[str] = ()) -> None:
    """Print a run: advice first, then the table, remarks and files."""
    from swizzle_sim.pricing.access_patterns import emulated, emulated_note

    run, counts = end.run, _counts(end.run)
    places = run.ranking.places(run.attempts)
    print_table(end, scorer, [("", "launch order", run.baseline), *((places[a.number], a.name, a) for a in _top(run))])
    lines = [
        run.ranking.sentence(),
        *slower_lines(run),
        f"{counts['tried']} candidates tried: {counts['scored']} scored, "
        f"{counts['duplicates']} repeat another's permutation, {counts['refused']} refused",
    ]
    if note := emulated_note(emulated(scorer.kernel, scorer.gpu), scorer.gpu):
        lines.append(note)
    if run.best.number == run.baseline.number:
        lines.append("no candidate beats the launch order: best.* hold the identity")
    print_end(end, [*lines, *remarks], "history")


def slower_lines(run: Run) -> list[str]:
    """A line on what is ranked above the launch order although it is predicted slower; none where nothing is."""
    names = [attempt.name for attempt in run.ranking.slower(run.attempts)]
    if not names:
        return []
    more = f" and {len(names) - TOP} more" if len(names) > TOP else ""
    return [f"predicted slower than the launch order, which they are ranked above: {', '.join(names[:TOP])}{more}"]


def print_end(end: End, lines: list[str], more_files: str) -> None:
    """Print what stands below the table: remarks, files, and where to read on."""
    from swizzle_sim.report.rank_stability import stability_lines

    folder, stability, written = end.run.folder, end.stability, end.written
    whole = (folder / "best.txt").is_file()  # not after a Ctrl-C
    names = "best.txt, best_triton.py, best.hip"
    names = f"report.html, {names}, pictures" if (folder / "report.html").is_file() else names
    files = f"written: {folder}/ ({names}, {more_files})"
    lines += stability_lines(stability) if stability else ()
    lines += [files] if whole else ()
    lines += written.lines if written else ()
    if whole:
        named = shlex.quote(str(folder))
        again = f"repeat it with no model: swizzle-sim optimize --replay {named}"
        lines += [again if more_files == "transcript" else f"next: swizzle-sim report {named} --open"]
    for said in lines:
        line(said)
