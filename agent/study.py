"""`run_study`: the paper's experiments over contexts, models and sizes, as sets of runs of one order an answer.

A study is a folder of run folders. A finished run is used as it is, an interrupted one is resumed, and only a missing
one needs a model; so a study over recorded runs needs none. Each finished run is recorded as text below `RECORDED`,
from which `swizzle_benchmarks.evidence.paper` draws the paper's figures.

Source: figures 2 (contexts), 14 (their progression), 15 (sizes) and 16 (models) of SwizzlePerf (arXiv 2508.20258).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import FILE, Attempt, History
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.recorded import at_sizes
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu
from xcd_model.errors import ModelError, SizeError

from .contexts import CONTEXTS
from .folder import Waiting
from .loop import LLM, propose
from .providers import ANSWERS, FOLDER, provider_of
from .recording import write_recording
from .settings import Inputs, Settings

STUDIES = ("contexts", "models", "sizes")
RECORDED = "recorded"  # folder of recordings in that of a study


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison: what is varied, for which kernels.

    Parameters
    ----------
    which : {"contexts", "models", "sizes"}
    kernels : tuple of Kernel
    gpu : Gpu
    folder : Path
        Of the study; created if missing.
    settings : Settings or None
        None for a study of recorded runs: all of them must be there.
    inputs : Inputs or None
    replay : {"timed", "lockstep"}
    sizes : tuple of dict of str to int
        For ``sizes``: problems on which the best swizzle of each kernel is scored.
    """

    which: str
    kernels: tuple[Kernel, ...]
    gpu: Gpu
    folder: Path
    settings: Settings | None
    inputs: Inputs | None = None
    replay: str = "timed"
    sizes: tuple[dict[str, int], ...] = ()

    def __post_init__(self):
        if self.which not in STUDIES:
            raise ModelError(f"study {self.which!r}: there is {', '.join(STUDIES)}", code="study")
        if not self.kernels:
            raise ModelError("name at least one kernel", code="study")
        if self.which == "sizes" and not self.sizes:
            raise SizeError("the study of sizes needs problems to score on, such as --size 'M=2048 N=2048'")
        if self.which == "models" and self.settings is not None and len(self.settings.models) < 2:
            raise ModelError("the study of models compares at least two", code="study")


@dataclass(frozen=True)
class StudyRun:
    """One run of a study."""

    kernel: Kernel
    label: str  # context or model
    folder: Path
    settings: Settings | None


def runs_of(study: Study) -> list[StudyRun]:
    """Runs of a study; a study of models without settings takes those in its folder."""
    runs: list[StudyRun] = []
    for one in study.kernels:
        if study.which == "models":
            runs += _model_runs(study, one)
            continue
        image = study.settings is not None and study.settings.image
        for context in CONTEXTS if study.which != "sizes" and not image else ("aware",):
            label = f"{context}-image" if image else context
            settings = study.settings and replace(study.settings, context=context)
            runs.append(_run_of(study, one, label, settings))
    return runs


def _run_of(study: Study, one: Kernel, label: str, settings: Settings | None) -> StudyRun:
    """One run; where answers come from a folder, in a folder of its own below it, so that each has a fresh context."""
    name = f"{stem_of(one)}-{label}"
    if settings and all(provider_of(model) == FOLDER for model in settings.models):
        settings = replace(settings, api_base=str(Path(settings.api_base or ANSWERS) / name))
    return StudyRun(one, label, study.folder / name, settings)


def _model_runs(study: Study, one: Kernel) -> list[StudyRun]:
    if study.settings is None:
        found = sorted(path.parent for path in study.folder.glob(f"{stem_of(one)}-model-*/{FILE}"))
        return [StudyRun(one, _about(path)["settings"]["models"][0], path, None) for path in found]
    each = [(model, replace(study.settings, models=(model,))) for model in study.settings.models]
    return [replace(_run_of(study, one, f"model-{_slug(model)}", settings), label=model) for model, settings in each]


def stem_of(one: Kernel) -> str:
    """Name of a kernel and those of its sizes that are not the default, for a file or a table."""
    usual = {} if one.file else kernel(one.name).problem
    return "-".join([one.name, *(f"{k}{v}" for k, v in one.problem.items() if usual.get(k) != v)])


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def _about(folder: Path) -> dict[str, Any]:
    with History(folder) as history:
        return history.about


def run_study(study: Study, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Run the missing runs of a study and collect the figures of all.

    Parameters
    ----------
    study : Study
    say : callable
        Called with a line of progress.

    Returns
    -------
    found : dict
        JSON-ready: ``which``, ``gpu``, ``replay``, ``kind`` and ``rows``; also written to ``study-WHICH.json``.

    Raises
    ------
    ModelError
        With code ``study`` if runs are missing and there are no settings.
    """
    study.folder.mkdir(parents=True, exist_ok=True)
    runs = runs_of(study)
    missing = [run for run in runs if run.settings is None and not _finished(run.folder)]
    if missing or not runs:
        names = ", ".join(str(run.folder) for run in missing) or f"any run in {study.folder}"
        raise ModelError(f"missing or not finished: {names}; name a --model to run it", code="study")
    rows, waiting = [], []
    for run in runs:
        say(f"{run.folder.name}: {'recorded' if _finished(run.folder) else 'running'}")
        try:
            attempts = _attempts(study, run)
        except Waiting as one:  # the others may go on meanwhile
            waiting.append(str(one))
            continue
        rows += _size_rows(study, run, attempts) if study.which == "sizes" else [_row(run, attempts)]
    if waiting:
        raise ModelError("\n".join(waiting), code="waiting")
    found = {"which": study.which, "gpu": study.gpu.name, "replay": study.replay, "kind": "simulated", "rows": rows}
    (study.folder / f"study-{study.which}.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found


def _finished(folder: Path) -> bool:
    if not (folder / FILE).is_file():
        return False
    with History(folder) as history:
        return history.state == "finished"


def _attempts(study: Study, run: StudyRun) -> list[Attempt]:
    """Launch order and candidates of the models; the run is made or finished first where necessary."""
    if not _finished(run.folder) and run.settings is not None:
        resume = (run.folder / FILE).is_file()
        inputs = study.inputs
        if inputs is not None and run.settings.context != "overload":
            inputs = replace(inputs, docs=None)
        options = {"inputs": inputs, "replay": study.replay, "resume": resume}
        settings = replace(run.settings, no_compare=True)  # the figures have families and a search of their own
        propose(run.kernel, study.gpu, run.folder, settings, **options, objective="l2_hit_rate")  # its figures
        write_recording(run.folder, study.folder / RECORDED)
    with History(run.folder) as history:
        return [a for a in history if a.number == 0 or a.proposer.startswith(LLM)]


def _row(run: StudyRun, attempts: Sequence[Attempt]) -> dict[str, Any]:
    rates = [None if a.score is None else a.score.l2_hit_rate for a in attempts]
    best = Ranking().order(attempts)[0]
    return {
        "kernel": run.kernel.name,
        "problem": dict(run.kernel.problem),
        "label": run.label,
        "baseline_l2_hit_rate": rates[0],
        "best_l2_hit_rate": best.score.l2_hit_rate if best.score else None,
        "speedup": best.score.speedup if best.score else None,
        "bound_l2_hit_rate": best.score.bound_l2_hit_rate if best.score else None,
        "l2_hit_rate_of_each": rates[1:],
        "codes": [a.verdict["code"] for a in attempts[1:]],
        "run": run.folder.name,
    }


def _size_rows(study: Study, run: StudyRun, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """The best swizzle of a run, and the launch order, on other problems."""
    best = Ranking().order(attempts)[0]
    rows = []
    for sizes in study.sizes:
        known = {k: v for k, v in sizes.items() if k in run.kernel.problem}
        judge = Judge(Scorer(at_sizes(run.kernel, known, study.gpu.arch), study.gpu, replay=study.replay))
        score, launched = judge.judge(Candidate(best.name, best.source, LLM)).score, judge.scorer.baseline
        rows.append(
            {
                "kernel": run.kernel.name,
                "problem": dict(judge.kernel.problem),
                "label": best.name,
                "baseline_l2_hit_rate": launched.l2_hit_rate,
                "best_l2_hit_rate": score and score.l2_hit_rate,  # None where it is no bijection of that grid
                "bound_l2_hit_rate": launched.bound_l2_hit_rate,
                "source": best.source,
            }
        )
    return rows
