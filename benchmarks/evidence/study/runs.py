"""`run_study`: the paper's experiments over contexts and models, as sets of runs of one order an answer.

A study is a folder of run folders. A finished run is used as it is, an interrupted one resumed, a missing one made.
Each is recorded as text below `RECORDED`, from which `swizzle_benchmarks.evidence.paper` draws the paper's figures.

Source: figures 2 (contexts), 14 (their progression) and 16 (models) of SwizzlePerf (arXiv 2508.20258).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swizzle_agent.contexts import CONTEXTS
from swizzle_agent.folder import Waiting
from swizzle_agent.loop import is_models, propose
from swizzle_agent.providers import ANSWERS, FOLDER, provider_of
from swizzle_agent.settings import Inputs, Settings
from swizzle_agent.tune import stem_of
from swizzle_benchmarks.evidence.recording import write_recording
from swizzle_sim.search.history import FILE, History
from swizzle_sim.search.loop import Run
from swizzle_sim.search.ranking import Ranking, ranking_of
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import ModelError

STUDIES = ("contexts", "models")
RECORDED = "recorded"  # folder of recordings in that of a study


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison: what is varied, for which kernels, in which folder.

    Settings with a picture have one arm, of hardware-aware prompts with one, in place of the contexts.
    """

    which: str  # one of `STUDIES`
    kernels: tuple[Kernel, ...]
    gpu: Gpu
    folder: Path
    settings: Settings
    inputs: Inputs
    replay: str = "timed"

    def __post_init__(self):
        if self.which not in STUDIES:
            raise ModelError(f"study {self.which!r}: there is {', '.join((*STUDIES, 'benchmark'))}", code="study")
        if not self.kernels:
            raise ModelError("name at least one kernel", code="study")
        if self.which == "models" and len(self.settings.models) < 2:
            raise ModelError("the study of models compares at least two", code="study")


@dataclass(frozen=True)
class StudyRun:
    """One run of a study."""

    kernel: Kernel
    gpu: Gpu
    label: str  # context, model or number
    folder: Path
    settings: Settings
    inputs: Inputs
    replay: str
    objective: str | None = None

    def made(self) -> Run:
        """The run, made or finished first where necessary; where answers come from a folder, it has one below."""
        if not is_finished(self.folder):
            options = {"inputs": self.inputs, "replay": self.replay, "objective": self.objective}
            settings = with_own_answers(self.settings, self.folder.name)
            return propose(
                self.kernel, self.gpu, self.folder, settings, resume=(self.folder / FILE).is_file(), **options
            )
        with History(self.folder) as history:
            return Run(self.folder, tuple(history), ranking_of(history.about))


def runs_of(study: Study) -> list[StudyRun]:
    """Runs of a study; the figures that are drawn of them have families and a search of their own."""
    given = replace(study.settings, no_compare=True)
    if study.which == "models":
        arms = {model: (f"model-{slug(model)}", replace(given, models=(model,))) for model in given.models}
    elif given.image:
        arms = {"aware, picture": ("aware-image", replace(given, context="aware"))}
    else:
        arms = {context: (context, replace(given, context=context)) for context in CONTEXTS}
    found = []
    for one in study.kernels:
        for label, (end, settings) in arms.items():
            folder = study.folder / f"{stem_of(one)}-{end}"
            inputs = study.inputs if settings.context == "overload" else replace(study.inputs, docs=None)
            found.append(StudyRun(one, study.gpu, label, folder, settings, inputs, study.replay, "l2_hit_rate"))
    return found


def with_own_answers(settings: Settings, run: str) -> Settings:
    """Settings of one run; where answers come from a folder, it has one below, and so a context of its own."""
    if not all(provider_of(model) == FOLDER for model in settings.models):
        return settings
    return replace(settings, api_base=str(Path(settings.api_base or ANSWERS) / run))


def slug(text: str) -> str:
    """Text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def run_study(study: Study, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Run the missing runs of a study and collect the figures of all, which ``study-WHICH.json`` keeps.

    Where answers come from a folder and are not there yet, the error has the code ``waiting``.
    """
    about = {"which": study.which, "gpu": study.gpu.name, "replay": study.replay, "kind": "simulated"}
    return written({**about, "rows": collected(runs_of(study), _row, say)}, study.folder)


def collected(
    runs: Iterable[StudyRun], row_of: Callable[[StudyRun, Run], Any], say: Callable[[str], None]
) -> list[Any]:
    """Rows of runs; those that wait for answers are named together, as the others may go on meanwhile."""
    rows, waiting = [], []
    for one in runs:
        say(f"{one.folder.name}: {'recorded' if is_finished(one.folder) else 'running'}")
        try:
            rows.append(row_of(one, one.made()))
        except Waiting as question:
            waiting.append(str(question))
    if waiting:
        raise ModelError("\n".join(waiting), code="waiting")
    return rows


def written(found: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the document of a study into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"study-{found['which']}.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found


def is_finished(folder: Path) -> bool:
    """Whether there is a run, and it was gone through to its end."""
    if not (folder / FILE).is_file():
        return False
    with History(folder) as history:
        return history.state == "finished"


def _row(one: StudyRun, made: Run) -> dict[str, Any]:
    write_recording(one.folder, one.folder.parent / RECORDED)
    attempts = [a for a in made.attempts if a.number == 0 or is_models(a)]
    rates = [None if a.score is None else a.score.l2_hit_rate for a in attempts]
    best = Ranking().order(attempts)[0]
    return {
        "kernel": one.kernel.name,
        "problem": dict(one.kernel.problem),
        "label": one.label,
        "baseline_l2_hit_rate": rates[0],
        "best_l2_hit_rate": best.score.l2_hit_rate if best.score else None,
        "speedup": best.score.speedup if best.score else None,
        "bound_l2_hit_rate": best.score.bound_l2_hit_rate if best.score else None,
        "l2_hit_rate_of_each": rates[1:],
        "codes": [a.verdict["code"] for a in attempts[1:]],
        "run": one.folder.name,
    }
