"""Figure 2: ten kernels as launched and with the best order of each arm, beside what was printed and counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper import counted
from benchmarks.paper.formulas import FORMULAS
from benchmarks.paper.jobs import Job
from benchmarks.paper.published import ARMS, PRINTED
from benchmarks.paper.recorded import recorded_runs
from benchmarks.paper.searches import arms_job, arms_name, texts_job
from benchmarks.paper.settings import GPU, Settings
from swizzle_sim.kernels import kernel
from swizzle_sim.suite import PAPER
from swizzle_sim.swizzle import Swizzle
from xcd_model import gpu

Found = Mapping[str, Mapping[str, Any]]


def jobs(settings: Settings) -> list[Job]:
    """Families and search of each kernel, and the best of each recorded model once more."""
    made = []
    for name in PAPER:
        made.append(arms_job(settings, name))
        if texts := {arm: run.best.source for arm, run in _runs(settings, name).items()}:
            made.append(texts_job(_texts_name(name), settings.kernel(name), texts))
    return made


def gather(settings: Settings, found: Found) -> dict[str, Any]:
    """Numbers of the figure."""
    return {
        "gpu": GPU,
        "quick": settings.quick,
        "kernels": [_kernel(settings, name, found) for name in PAPER],
        "orders": counted.same_orders(PAPER, settings),
        "orders_replay": counted.REPLAY,
    }


def _kernel(settings: Settings, name: str, found: Found) -> dict[str, Any]:
    arms = found[arms_name(name)]
    return {
        "kernel": name,
        **{key: arms[key] for key in ("problem", "grid", "replay", "evaluations", "launched")},
        **{arm: _shown(arms[arm]) for arm in ("families", "search")},
        "models": {arm: None for arm in ARMS} | _models(settings, name, found),
        "measured": counted.measured(name),
        "printed": _printed(name),
    }


def _shown(arm: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: arm[key] for key in ("name", "source", "domain", "score")}, "replayed": len(arm["rates"])}


def _models(settings: Settings, name: str, found: Found) -> dict[str, Any]:
    runs = _runs(settings, name)
    scores = found[_texts_name(name)]["texts"] if runs else {}
    return {
        arm: {"run": run.run, "models": run.models, "name": run.best.name, "proposals": len(run.rates), **scores[arm]}
        for arm, run in runs.items()
    }


def _runs(settings: Settings, name: str) -> dict[str, Any]:
    """Recorded run of each context at the size drawn; of several the first by name, that of the study of contexts."""
    problem = dict(settings.kernel(name).problem)
    found = reversed(recorded_runs(settings.studies))
    return {run.context: run for run in found if (run.kernel, run.problem, run.gpu) == (name, problem, GPU)}


def _texts_name(name: str) -> str:
    return f"models' best on {name}"


def _printed(name: str) -> dict[str, Any] | None:
    """What the paper says, and of the formula it prints: whether it is a bijection at the size it was measured at.

    ``from_pct`` and ``to_pct`` are measured with that formula where a log has it; else the lowest rate as launched.
    """
    said = PRINTED.get(name)
    if said is None:
        return None
    low = (counted.measured(name)["range_pct"] or [None])[0]
    more: dict[str, Any] = {"words": said.words, "from_pct": low, "to_pct": None, "bijective": None}
    for formula in (one for one in FORMULAS if one.label == said.formula):
        work = kernel(formula.kernel, **formula.sizes)
        found = Swizzle.parse(formula.text).verify(work.grid, gpu(GPU).xcds, work.problem, lattice=[])
        more = {"bijective": found.bijective, "tiles_computed": found.distinct_tiles, "tiles": found.n_workgroups}
        more |= {"words": formula.claim, "from_pct": formula.baseline_pct or low, "to_pct": formula.measured_pct}
    return {"gain": said.gain, "speedup": said.speedup, "formula": said.formula, **more}
