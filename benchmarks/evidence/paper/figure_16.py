"""Figure 16: the models of recorded runs next to each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swizzle_sim.language import Swizzle
from xcd_model.errors import LanguageError

from . import style
from .jobs import Job
from .published import MODEL_KERNELS, MODEL_WORDS, MODELS
from .recorded import Recorded, recorded_runs
from .searches import arms_job, arms_name, texts_job
from .settings import GPU, Settings
from .style import (
    FAMILIES,
    LAUNCHED,
    LIMIT,
    MODEL_COLOURS,
    NO_RUN,
    SEARCH,
    TITLES,
    listed,
    one_line,
    pct,
    table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REPLIES = Path(__file__).resolve().parents[3] / "tests" / "agent" / "replies_smollm2.json"


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


def model_bars(data: Mapping[str, Any]) -> Figure:
    """Best L2 hit rate of each model, launch order, families and search beside it."""
    names = list(dict.fromkeys(model for row in data["kernels"] for model in row["models"]))
    width = 0.86 / (3 + len(names))
    figure = style.canvas(12, 5)
    axes = figure.subplots()
    for i, row in enumerate(data["kernels"]):
        at = [i - 0.43 + (k + 0.5) * width for k in range(3 + len(names))]
        three = (("launched", LAUNCHED, "launch order"), ("families", FAMILIES, "best family"))
        for x, (key, colour, label) in zip(at, (*three, ("search", SEARCH, "two-stage search")), strict=False):
            axes.bar(x, 100 * row[key], width * 0.95, color=colour, label="" if i else f"{label}, simulated")
        axes.plot([at[0] - width / 2, at[-1] + width / 2], [100 * row["bound"]] * 2, color=LIMIT, lw=1.3,
                  label="" if i else "bound")  # fmt: skip
        for k, model in enumerate(names):
            found, x, colour = row["models"].get(model), at[3 + k], MODEL_COLOURS[k % len(MODEL_COLOURS)]
            if found is None or found["score"] is None:
                style.no_run(axes, x, 1, f"{model}: {style.NO_RUN if found is None else 'no bijection'}", size=8)
            else:
                axes.bar(x, 100 * found["score"]["l2_hit_rate"], width * 0.95, color=colour,
                         label=f"{model}, recorded; simulated")  # fmt: skip
    style.rates(axes)
    axes.set_xticks(range(len(data["kernels"])), [TITLES[row["kernel"]] for row in data["kernels"]])
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    replay = data["kernels"][0]["replay"]
    return style.finish(figure, f"Figure 16: models, {style.gpu_name(data)}, {replay} replay", quick=data["quick"])


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    names = list(dict.fromkeys(model for row in data["kernels"] for model in row["models"]))
    rows = [
        [one_line(row["kernel"]), row["words"], *(pct(row[key]) for key in ("launched", "families", "search", "bound")),
         *(_cell(row["models"].get(model)) for model in names)]
        for row in data["kernels"]
    ]  # fmt: skip
    heads = ("kernel", "the paper (no values printed)", "launch order", "best family", "search", "bound", *names)
    there = [found for row in data["kernels"] for found in row["models"].values() if found]
    head = (
        f"{len(there)} recorded runs of models, their best scored again here."
        if there
        else f"{NO_RUN.capitalize()}: of the paper's models ({listed(names)}) and of all others, on these kernels."
    )
    return "\n\n".join(
        [head + _replies(data["replies"]), table(heads, rows, left=2), "L2 hit rates in per cent, simulated."]
    )


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return NO_RUN
    return pct(found["score"]["l2_hit_rate"]) if found["score"] else "no bijection"


def _replies(replies: Mapping[str, Any] | None) -> str:
    if replies is None:
        return ""
    return (
        f" One recording of bare replies exists ({replies['model']}; `tests/agent/replies_smollm2.json`, made to test "
        f"the plumbing on a small GEMM): {replies['readable']} of its {replies['proposals']} proposals hold a "
        "readable swizzle."
    )
