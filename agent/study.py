"""`study`: the paper's experiments over contexts, models, iterations and sizes, as sets of runs.

A study is a folder of run folders, one a cell. A finished cell is used as it is, an interrupted one goes on, and only
a missing one needs a model; so a study over recorded runs needs none.

Source: figures 2 (contexts), 14 (progression), 15 (sizes) and 16 (models) of SwizzlePerf (arXiv 2508.20258).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.contexts import CONTEXTS
from agent.inputs import Inputs
from agent.loop import LLM, propose
from agent.settings import Settings
from swizzle_sim.history import FILE, Attempt, History, rank
from swizzle_sim.kernels import Kernel, kernel
from swizzle_sim.recorded import at_sizes
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle
from xcd_model import Gpu
from xcd_model.errors import ModelError, NotBijective, SizeError

STUDIES = ("contexts", "models", "progression", "sizes")


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is to be compared.

    Parameters
    ----------
    which : {"contexts", "models", "progression", "sizes"}
    kernels : tuple of Kernel
    gpu : Gpu
    folder : Path
        Of the study; made where there is none.
    settings : Settings or None
        None where no model may be asked: all cells must be there.
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
class Cell:
    """One run of a study.

    Parameters
    ----------
    kernel : Kernel
    label : str
        Context or model.
    folder : Path
    settings : Settings or None
    """

    kernel: Kernel
    label: str
    folder: Path
    settings: Settings | None


def cells_of(study: Study) -> list[Cell]:
    """Runs that a study is made of; one of models without settings takes those it finds."""
    cells: list[Cell] = []
    for one in study.kernels:
        if study.which == "models":
            cells += _model_cells(study, one)
            continue
        for context in CONTEXTS if study.which != "sizes" else ("aware",):
            settings = study.settings and replace(study.settings, context=context)
            cells.append(Cell(one, context, study.folder / f"{stem_of(one)}-{context}", settings))
    return cells


def _model_cells(study: Study, one: Kernel) -> list[Cell]:
    if study.settings is None:
        found = sorted(path.parent for path in study.folder.glob(f"{stem_of(one)}-model-*/{FILE}"))
        return [Cell(one, _about(path)["settings"]["models"][0], path, None) for path in found]
    return [
        Cell(
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
    """Run what is missing of a study and gather its figures.

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
        With code ``study`` if cells are missing and no model may be asked.
    """
    study.folder.mkdir(parents=True, exist_ok=True)
    cells = cells_of(study)
    missing = [cell for cell in cells if cell.settings is None and not _finished(cell.folder)]
    if missing or not cells:
        names = ", ".join(str(cell.folder) for cell in missing) or f"any cell in {study.folder}"
        raise ModelError(f"not there, or not finished: {names}; name a --model to run it", code="study")
    rows = []
    for cell in cells:
        say(f"{cell.folder.name}: {'recorded' if _finished(cell.folder) else 'running'}")
        attempts = _attempts(study, cell)
        rows += _size_rows(study, cell, attempts) if study.which == "sizes" else [_row(cell, attempts)]
    found = {
        "which": study.which,
        "gpu": study.gpu.name,
        "replay": study.replay,
        "kind": "simulated",
        "rows": rows,
    }
    (study.folder / f"study-{study.which}.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found


def _finished(folder: Path) -> bool:
    if not (folder / FILE).is_file():
        return False
    with History(folder) as history:
        return history.state == "finished"


def _attempts(study: Study, cell: Cell) -> list[Attempt]:
    """Baseline and candidates of the models, from the run; the run is made or finished first if it must be."""
    if not _finished(cell.folder) and cell.settings is not None:
        resume = (cell.folder / FILE).is_file()
        inputs = study.inputs
        if inputs is not None and cell.settings.context != "overload":
            inputs = replace(inputs, docs=None)
        propose(cell.kernel, study.gpu, cell.folder, cell.settings, inputs=inputs, replay=study.replay, resume=resume)
    with History(cell.folder) as history:
        return [a for a in history if a.number == 0 or a.proposer.startswith(LLM)]


def _row(cell: Cell, attempts: Sequence[Attempt]) -> dict[str, Any]:
    rates = [None if a.score is None else a.score.l2_hit_rate for a in attempts]
    best = rank(attempts)[0]
    return {
        "kernel": cell.kernel.name,
        "problem": dict(cell.kernel.problem),
        "label": cell.label,
        "baseline_l2_hit_rate": rates[0],
        "best_l2_hit_rate": best.score.l2_hit_rate if best.score else None,
        "speedup": best.score.speedup if best.score else None,
        "bound_l2_hit_rate": best.score.bound_l2_hit_rate if best.score else None,
        "l2_hit_rate_of_each": rates[1:],
        "codes": [a.verdict["code"] for a in attempts[1:]],
        "run": cell.folder.name,
    }


def _size_rows(study: Study, cell: Cell, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """The best swizzle of a run, and the order as launched, on other problems."""
    best = rank(attempts)[0]
    swizzle = Swizzle.parse(best.source, name=best.name)
    rows = []
    for sizes in study.sizes:
        known = {k: v for k, v in sizes.items() if k in cell.kernel.problem}
        scorer = Scorer(at_sizes(cell.kernel, known, study.gpu.arch), study.gpu, replay=study.replay)
        try:
            rate = scorer.score(swizzle).l2_hit_rate
        except NotBijective:
            rate = None  # it holds on the grid it was found on, and not here
        row = {"kernel": cell.kernel.name, "problem": dict(scorer.kernel.problem), "label": best.name}
        rows.append(
            {**row, "baseline_l2_hit_rate": scorer.baseline.l2_hit_rate, "best_l2_hit_rate": rate}
            | {"bound_l2_hit_rate": scorer.bound.l2_hit_rate, "source": best.source}
        )
    return rows
