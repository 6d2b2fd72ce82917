"""Figure 16: models beside each other, from whatever runs were recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.jobs import Job
from benchmarks.paper.published import MODEL_KERNELS, MODEL_WORDS, MODELS
from benchmarks.paper.recorded import Recorded, recorded_runs
from benchmarks.paper.searches import arms_job, arms_name, texts_job
from benchmarks.paper.settings import GPU, Settings
from swizzle_sim.swizzle import Swizzle
from xcd_model.errors import LanguageError

REPLIES = Path(__file__).parents[2] / "tests" / "agent" / "replies_smollm2.json"


def jobs(settings: Settings) -> list[Job]:
    """Families and search of each kernel, and the best of each recorded model once more."""
    made = []
    for name in MODEL_KERNELS:
        made.append(arms_job(settings, name))
        if texts := {model: run.best.source for model, run in _runs(settings, name).items()}:
            made.append(texts_job(f"models on {name}", settings.kernel(name), texts))
    return made


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Best of each model, families and search beside it; and what of recorded replies could be read."""
    kernels = []
    for name in MODEL_KERNELS:
        arms, runs = found[arms_name(name)], _runs(settings, name)
        scores = found[f"models on {name}"]["texts"] if runs else {}
        models = {m: {"run": run.run, "proposals": len(run.rates), **scores[m]} for m, run in runs.items()}
        kernels.append(
            {
                "kernel": name,
                "replay": arms["replay"],
                "launched": arms["launched"]["l2_hit_rate"],
                "bound": arms["launched"]["bound_l2_hit_rate"],
                **{arm: arms[arm]["score"]["l2_hit_rate"] for arm in ("families", "search")},
                "models": {**dict.fromkeys(MODELS), **models},
                "words": MODEL_WORDS[name],
            }
        )
    return {"gpu": GPU, "quick": settings.quick, "kernels": kernels, "replies": replies()}


def _runs(settings: Settings, name: str) -> dict[str, Recorded]:
    """Recorded run of each model alone, with the paper's context, at the size drawn; the last by name."""
    problem = dict(settings.kernel(name).problem)
    return {
        run.models[0].rpartition("/")[2]: run
        for run in recorded_runs(settings.studies)
        if (run.kernel, run.problem, run.gpu, run.context) == (name, problem, GPU, "aware") and len(run.models) == 1
    }


def replies(path: Path = REPLIES) -> dict[str, Any] | None:
    """What a recording of bare replies comes to: how many proposals there are, and how many hold a swizzle."""
    if not path.is_file():
        return None
    recorded = json.loads(path.read_text(encoding="utf-8"))
    proposals = [one["text"] for one in recorded["replies"] if one["purpose"] == "propose"]
    return {"model": recorded["model"], "proposals": len(proposals), "readable": sum(map(_is_readable, proposals))}


def _is_readable(text: str) -> bool:
    try:
        Swizzle.parse(json.loads(text)["swizzle"])
    except (ValueError, KeyError, TypeError, LanguageError):  # cut off, without a swizzle, or no formula
        return False
    return True
