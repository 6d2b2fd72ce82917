"""`write_report`, `write_best`: the page, the pictures and the best swizzle of a run, from its history alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.text import percent
from swizzle_sim.language.emit import emit_triton
from swizzle_sim.language.emit_hip import emit_hip
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import pictures
from swizzle_sim.report.bottleneck import why_better
from swizzle_sim.report.page import frame, render, result
from swizzle_sim.report.spending import spending_of
from swizzle_sim.search.advice import advise_run
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import ranking_of
from swizzle_sim.search.recorded import recorded_scorer
from xcd_model.errors import RunError

PAGE = "report.html"
BIN_FS = 1_000_000  # the replay doubles it until a kernel has 2048 to 4096 bins, which the chart puts together


def write_report(history: History, scorer: Scorer | None = None, *, refresh_s: int = 0) -> Path:
    """Write ``report.html``, the pictures and the best swizzle into the folder of a run.

    A browser loads the page of a run that is not over anew every ``refresh_s``, of 0 never.
    """
    about, attempts, folder = history.about, list(history), history.folder
    scorer = scorer or recorded_scorer(about)
    scorer.bin_fs = BIN_FS
    ranking, spending = ranking_of(about, folder), spending_of(folder)
    files: dict[str, bytes] = {}
    page = frame(scorer, history, attempts, ranking, spending)
    if ordered := ranking.order(attempts):
        best = ordered[0]
        baseline = attempts[0].score if attempts[0].number == 0 else None  # lost, it is computed anew
        scores, sources = (baseline or scorer.baseline, _score_of(best)), best_sources(best, about)
        replayed = pictures.replay_pair(scorer, scorer.permutation(best.swizzle))
        drawn = pictures.drawings(scorer, attempts, ranking, replayed, scores)
        files = pictures.files(drawn, f"simulated, {scorer.replay} replay")
        files |= {name: text.encode() for name, text in sources.items()}
        page |= result(scorer, folder, attempts, ranking, replayed, drawn, scores, sources)
        # by its name alone: the page is the same wherever the folder lies, and however it was typed
        page["advice"] = advice = advise_run(scorer, ranking, attempts, folder.resolve().name)
        page["why_better"] = why_better(scorer, attempts, advice.order)
    written = time.strftime("%H:%M:%S UTC", time.gmtime()) if refresh_s else ""  # a page that stays has the same bytes
    files[PAGE] = render({**page, "refresh_s": refresh_s, "written": written}).encode("utf-8", "replace")
    for name, data in files.items():  # the page last: where it is new, all is
        write_whole(folder / name, data)
    return folder / PAGE


def write_best(history: History) -> None:
    """Write the best swizzle alone into the folder of a run as text, Triton and HIP; nothing where none was scored."""
    for best in ranking_of(history.about, history.folder).order(list(history))[:1]:
        for name, text in best_sources(best, history.about).items():
            write_whole(history.folder / name, text.encode())


def best_sources(best: Attempt, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the best swizzle as files: its own text, Triton and HIP."""
    swizzle = best.swizzle
    # No name in the note: a proposer chooses it, and a line break in it would end the comment.
    rate = percent(_score_of(best).l2_hit_rate)
    note = (
        f"attempt {best.number} on kernel {about['kernel']}, {about['gpu']}; L2 hit rate {rate}, simulated, "
        f"{about['replay']} replay, swizzle-sim {about['version']}"
    )
    return {
        "best.txt": best.source,
        "best_triton.py": f"# {note}\n{emit_triton(swizzle.form)}",
        "best.hip": f"// {note}\n{emit_hip(swizzle.form, cluster=about.get('cluster', 1))}",
    }


def _score_of(attempt: Attempt) -> Score:
    if attempt.score is None:  # `rank` gives none of these
        raise RunError(f"attempt {attempt.number} has no score, so it is no best")
    return attempt.score
