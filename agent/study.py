"""`run_study`: the paper's experiments over contexts, models, iterations and sizes, as sets of runs, and their picture.

A study is a folder of run folders. A finished run is used as it is, an interrupted one is resumed, and only a missing
one needs a model; so a study over recorded runs needs none.

Source: figures 2 (contexts), 14 (progression), 15 (sizes) and 16 (models) of SwizzlePerf (arXiv 2508.20258).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.colours import XCDS
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import FILE, Attempt, History
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.recorded import at_sizes
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu
from xcd_model.errors import ModelError, SizeError

from .contexts import CONTEXTS
from .loop import LLM, propose
from .settings import Inputs, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STUDIES = ("contexts", "models", "progression", "sizes")
LAUNCH_ORDER = "0.7"  # grey
SERIES = XCDS[1:]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison: what is varied, for which kernels.

    Parameters
    ----------
    which : {"contexts", "models", "progression", "sizes"}
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
        for context in CONTEXTS if study.which != "sizes" else ("aware",):
            settings = study.settings and replace(study.settings, context=context)
            runs.append(StudyRun(one, context, study.folder / f"{stem_of(one)}-{context}", settings))
    return runs


def _model_runs(study: Study, one: Kernel) -> list[StudyRun]:
    if study.settings is None:
        found = sorted(path.parent for path in study.folder.glob(f"{stem_of(one)}-model-*/{FILE}"))
        return [StudyRun(one, _about(path)["settings"]["models"][0], path, None) for path in found]
    return [
        StudyRun(
            one, model, study.folder / f"{stem_of(one)}-model-{_slug(model)}", replace(study.settings, models=(model,))
        )
        for model in study.settings.models
    ]


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
    rows = []
    for run in runs:
        say(f"{run.folder.name}: {'recorded' if _finished(run.folder) else 'running'}")
        attempts = _attempts(study, run)
        rows += _size_rows(study, run, attempts) if study.which == "sizes" else [_row(run, attempts)]
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
        propose(run.kernel, study.gpu, run.folder, run.settings, **options, objective="l2_hit_rate")  # its figures
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


def draw_study(found: Mapping[str, Any], path: Path) -> Path:
    """Draw the result of `run_study`: bars for contexts and models, lines for progression and sizes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    by_kernel: dict[str, list[Mapping[str, Any]]] = {}
    for row in found["rows"]:
        by_kernel.setdefault(row["kernel"], []).append(row)
    panels = 1 if found["which"] in ("contexts", "models") else len(by_kernel)
    figure = Figure(figsize=(max(5.0, 3.6 * panels), 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    if panels == 1 and found["which"] in ("contexts", "models"):
        _bars(axes[0], by_kernel)
    else:
        draw = _progression if found["which"] == "progression" else _sizes
        for panel, (name, rows) in zip(axes, by_kernel.items(), strict=True):
            draw(panel, rows)
            panel.set_title(name)
    for panel in axes:
        panel.set_ylabel("L2 hit rate [%]")
        panel.set_ylim(0, 100)
        panel.grid(axis="y", alpha=0.3)
        panel.legend(fontsize="small")
    figure.suptitle(f"{found['which']} on {found['gpu']}, {found['replay']} replay, simulated")
    figure.savefig(path, metadata={"Software": None})
    return path


def _pct(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else 100 * v for v in values], float)


def _bars(axes: Axes, by_kernel: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    labels = list(dict.fromkeys(row["label"] for rows in by_kernel.values() for row in rows))
    width, at = 0.8 / (len(labels) + 1), np.arange(len(by_kernel))
    launched = [rows[0]["baseline_l2_hit_rate"] for rows in by_kernel.values()]
    axes.bar(at, _pct(launched), width, color=LAUNCH_ORDER, label="launch order")
    for i, label in enumerate(labels):
        best = [next((r["best_l2_hit_rate"] for r in rows if r["label"] == label), None) for rows in by_kernel.values()]
        axes.bar(at + (i + 1) * width, _pct(best), width, color=SERIES[i % len(SERIES)], label=label)
    axes.set_xticks(at + 0.4 - width / 2, list(by_kernel), rotation=30, ha="right")


def _progression(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    for i, row in enumerate(rows):
        colour = SERIES[i % len(SERIES)]
        each = _pct(row["l2_hit_rate_of_each"])
        best = np.fmax.accumulate(np.concatenate([_pct([row["baseline_l2_hit_rate"]]), each]))
        axes.plot(range(1, each.size + 1), each, ":", marker=".", color=colour)
        axes.plot(range(best.size), best, color=colour, label=row["label"])
    axes.set_xlabel("candidate")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _sizes(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    at = range(len(rows))
    axes.plot(at, _pct([r["baseline_l2_hit_rate"] for r in rows]), color=LAUNCH_ORDER, marker="o", label="launch order")
    axes.plot(at, _pct([r["best_l2_hit_rate"] for r in rows]), color=SERIES[0], marker="o", label=rows[0]["label"])
    changing = [name for name in rows[0]["problem"] if len({r["problem"][name] for r in rows}) > 1]
    names = ["\n".join(f"{name}={r['problem'][name]}" for name in changing) for r in rows]
    axes.set_xticks(list(at), names, fontsize="x-small")
