"""`write_report`: everything a reader wants of a run, from its history alone."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from swizzle_sim.history import Attempt, History, rank
from swizzle_sim.recorded import recorded_kernel
from swizzle_sim.report import content
from swizzle_sim.report.draw import Pictures, draw
from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.swizzle import Swizzle
from swizzle_sim.swizzle.emit_hip import emit_hip
from swizzle_sim.swizzle.emit_triton import emit_triton
from xcd_model.errors import RunError
from xcd_model.gpu import Gpu

PAGE = "report.html"


def write_report(history: History) -> Path:
    """Write ``report.html``, the pictures and the best swizzle into the folder of a run.

    Parameters
    ----------
    history : History
        Of a finished run, an interrupted one, or one with no attempt at all; then there is only the page.

    Returns
    -------
    path : Path
        The page: one file that needs no other and no network.

    Raises
    ------
    UnknownName
        If the run's kernel is not installed here.
    RunError
        If the folder cannot be written, or the kernel's file is not what it was.
    CaptureError, CompileError
        If the kernel's file cannot be captured here.
    """
    about, attempts = history.about, list(history)
    gpu = Gpu.from_dict(about["gpu_description"])
    kernel = recorded_kernel(about)
    scorer = Scorer(kernel, gpu, replay=about["replay"], seed=about["seed"], jitter_ns=about["jitter_ns"])
    files: dict[str, bytes] = {}
    page = _frame(scorer, about, history.state, attempts)
    if ranked := rank(attempts):
        baseline, best = _baseline(scorer, attempts), ranked[0]
        pictures = draw(scorer, attempts, baseline, best, _score_of(best))
        sources = best_sources(best, about)
        files = pictures.files | {name: text.encode() for name, text in sources.items()}
        page |= _result(scorer, attempts, baseline, best) | _shown(pictures, sources)
    files[PAGE] = render(page).encode("utf-8", "replace")
    for name, data in files.items():  # the page last: where it is new, all is
        write_whole(history.folder / name, data)
    return history.folder / PAGE


def best_sources(best: Attempt, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the best swizzle as files: its own text, Triton and HIP."""
    swizzle = Swizzle.parse(best.source, name=best.name)
    # No name in the note: a proposer chooses it, and a line break in it would end the comment.
    rate = content.percent(_score_of(best).l2_hit_rate)
    note = (
        f"attempt {best.number} on kernel {about['kernel']}, {about['gpu']}; L2 hit rate {rate}, simulated, "
        f"{about['replay']} replay, swizzle-sim {about['version']}"
    )
    return {
        "best.txt": best.source,
        "best_triton.py": f"# {note}\n{emit_triton(swizzle.form)}",
        "best.hip": f"// {note}\n{emit_hip(swizzle.form)}",
    }


def render(page: Mapping[str, Any]) -> str:
    """HTML of a page; every value is escaped, as candidates are not to be trusted."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (slow to import, needed here only)

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = content.visible
    template = resources.files("swizzle_sim.report").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(page)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never half of one.

    Raises
    ------
    RunError
        If the folder cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RunError(f"{path}: cannot be written ({error.strerror})") from error


def _frame(scorer: Scorer, about: Mapping[str, Any], state: str, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """What every page says, with or without a result."""
    kernel, gpu = scorer.kernel, scorer.gpu
    return {
        "about": about,
        "state": state,
        "kernel": kernel,
        "sizes": ", ".join(f"{name} = {value}" for name, value in kernel.problem.items()),
        "grid": str(kernel.grid),
        "occupancy": scorer.occupancy,
        "gpu": gpu,
        "facts": content.gpu_facts(gpu),
        "counts": content.counts(attempts),
        "versions": content.versions(),
        "result": None,
    }


def _result(scorer: Scorer, attempts: Sequence[Attempt], baseline: Score, best: Attempt) -> dict[str, Any]:
    score = _score_of(best)
    return {
        "result": {
            "cards": content.cards(baseline, score),
            "rows": content.best_rows(attempts, baseline),
            "name": content.cut(best.name, 120),
            "proposer": best.proposer,
            "is_baseline": best.number == 0,
            "verdict": content.verdict_lines(best.verdict, scorer.gpu.xcds),
            "baseline_l2": content.percent(baseline.l2_hit_rate),
            "best_l2": content.percent(score.l2_hit_rate),
            "bound_l2": content.percent(score.bound_l2_hit_rate),
        }
    }


def _shown(pictures: Pictures, sources: Mapping[str, str]) -> dict[str, Any]:
    encoded = {name: base64.b64encode(data).decode("ascii") for name, data in pictures.files.items()}
    return {"pictures": encoded, "sources": sources, "reproduced": pictures.reproduced}


def _baseline(scorer: Scorer, attempts: Sequence[Attempt]) -> Score:
    """Score as launched: the run's own, or worked out again if it was lost."""
    return attempts[0].score if attempts[0].number == 0 and attempts[0].score else scorer.baseline


def _score_of(attempt: Attempt) -> Score:
    if attempt.score is None:  # `rank` gives none of these
        raise RunError(f"attempt {attempt.number} has no score, so it is no best")
    return attempt.score
