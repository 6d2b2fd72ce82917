"""The page: everything it shows, gathered for the template, and the template filled in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from swizzle_sim.history import Attempt, History
from swizzle_sim.report import content, listing
from swizzle_sim.report.bars import time_bars, xcd_bars
from swizzle_sim.report.charts import capacity_chart, over_time_chart, progress_chart
from swizzle_sim.report.colours import XCDS
from swizzle_sim.report.maps import cropped, heat_image, heat_scale, slider_data, xcd_image
from swizzle_sim.report.measured import measured_in
from swizzle_sim.report.ranking import Ranking
from swizzle_sim.report.replays import MOST_TOUCHES, Replayed
from swizzle_sim.report.rewritten import diff_lines, rewritten
from swizzle_sim.report.spending import Spending
from swizzle_sim.report.told_apart import told_apart
from swizzle_sim.scoring import Score, Scorer
from xcd_model import Gpu, xcd_of

TITLES = ("as launched", "best swizzle")


@dataclass(frozen=True)
class Best:
    """The best attempt, its score, and its text as files."""

    attempt: Attempt
    score: Score
    sources: Mapping[str, str]


def frame(
    scorer: Scorer, history: History, attempts: Sequence[Attempt], ranking: Ranking, spending: Spending
) -> dict[str, Any]:
    """What every page says, with or without a result."""
    kernel, gpu, about = scorer.kernel, scorer.gpu, history.about
    results, fault = measured_in(history.folder)
    shown = listing.listed(attempts, ranking)
    return {
        "about": about,
        "settings": _settings(about),
        "state": history.state,
        "kernel": kernel,
        "sizes": ", ".join(f"{name} = {value}" for name, value in kernel.problem.items()),
        "grid": str(kernel.grid),
        "occupancy": scorer.occupancy,
        "gpu": gpu,
        "facts": content.gpu_facts(gpu),
        "counts": listing.counts(attempts),
        "listed": listing.rows(shown, spending),
        "spent": spending.sentences(),
        "ranked": ranking.sentence(),
        "measured": results,
        "measured_fault": fault,
        "versions": content.versions(),
        "result": None,
    }


def result(
    scorer: Scorer,
    folder: Path,
    attempts: Sequence[Attempt],
    ranking: Ranking,
    replayed: tuple[Replayed, Replayed],
    baseline: Score,
    best: Best,
) -> dict[str, Any]:
    """What a page with a best swizzle says besides."""
    before, after = replayed
    rates = (before.traffic.l2_hit_rate, after.traffic.l2_hit_rate)
    charts = [over_time_chart(before.traffic, after.traffic), progress_chart(attempts, ranking, baseline)]
    if before.curve and after.curve:
        l2 = scorer.gpu.l2
        charts.append(capacity_chart(before.curve, after.curve, l2.size_bytes, l2.ways))
    code = rewritten(scorer.kernel, best.attempt.source, scorer.gpu, folder)
    return {
        "result": {
            "cards": content.cards(baseline, best.score, ranking),
            "rows": content.best_rows(attempts, baseline, ranking),
            "told_apart": told_apart(folder),
            "has_energy": any(one.name == "energy" for one in ranking.objectives),
            "name": content.cut(best.attempt.name, listing.LONGEST_NAME),
            "number": best.attempt.number,
            "proposer": best.attempt.proposer,
            "is_baseline": best.attempt.number == 0,
            "verdict": content.verdict_lines(best.attempt.verdict, scorer.gpu.xcds),
            "sources": best.sources,
            "code": code,
            "diff": diff_lines(code.diff),
        },
        "reproduced": rates == (baseline.l2_hit_rate, best.score.l2_hit_rate),
        "charts": {chart.name: chart for chart in charts},
        "most_touches": f"{MOST_TOUCHES:,}",
        "two_sides": scorer.gpu.l2_sides is not None,
        "xcd_bars": xcd_bars(baseline, best.score),
        "time_bars": time_bars(before.time, after.time),
        **_maps(scorer, replayed),
    }


def _settings(about: Mapping[str, Any]) -> str:
    """What the models were asked with; options that were not given are left out."""
    given = {key: value for key, value in sorted(about.get("settings", {}).items()) if value not in (None, False, 0)}
    words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in given.items()}
    return "; ".join(f"{key} = {value}" for key, value in words.items())


def _lines(misses: int, gpu: Gpu) -> str:
    """Misses in whole lines: an L2 may fetch halves."""
    return f"{misses * gpu.l2.fetch_bytes // gpu.l2.line_bytes:,}"


def _maps(scorer: Scorer, replayed: tuple[Replayed, Replayed]) -> dict[str, Any]:
    kernel, gpu = scorer.kernel, scorer.gpu
    grid, xcd, most = kernel.grid, xcd_of(kernel.grid.num_pids, gpu, kernel.programs), _most(replayed)
    of_tile = [xcd[one.order.argsort()] for one in replayed]
    return {
        "maps": [xcd_image(grid, x, title, gpu.xcds) for x, title in zip(of_tile, TITLES, strict=True)],
        "heats": [heat_image(grid, one.misses, t, most) for one, t in zip(replayed, TITLES, strict=True)],
        "heat_scale": heat_scale(),
        "heat_most": f"{most:,.0f}",
        "misses": [
            {
                "title": title,
                "estimated": f"{one.misses.sum():,.0f}",
                "counted": _lines(one.traffic.l2_misses, gpu),
            }
            for one, title in zip(replayed, TITLES, strict=True)
        ],
        "legend": [(f"x{i % len(XCDS)}", f"XCD {i}") for i in range(gpu.xcds)],
        "cropped": cropped(grid),
        "slider": slider_data(grid, tuple(one.schedule for one in replayed)),
    }


def _most(replayed: tuple[Replayed, Replayed]) -> float:
    """End of the colour scale: the most that a tile misses, the odd tile apart."""
    from numpy import concatenate, quantile  # noqa: PLC0415

    return float(quantile(concatenate([one.misses for one in replayed]), 0.999))


def render(page: Mapping[str, Any]) -> str:
    """HTML of a page; every value is escaped, as candidates are not to be trusted.

    Style and script are the package's own; the policy in the head names them by hash, so nothing else is obeyed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = content.visible
    style, script = _own("page.css"), _own("page.js")
    given = {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _digest(style),
        "script_hash": _digest(script),
        "slider_json": Markup(json.dumps(page.get("slider"))),
    }
    return environment.from_string(_own("page.html")).render({**page, **given})


def _own(name: str) -> str:
    return resources.files("swizzle_sim.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Source expression of a Content-Security-Policy for an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
