"""The page: everything it shows, gathered for the template, and the template filled in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swizzle_sim.base import text as written
from swizzle_sim.base.text import visible
from swizzle_sim.pricing.access_patterns import uncoalesced
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import content
from swizzle_sim.report.pictures import NAMES, Drawing, Replayed, most_misses, slider_data
from swizzle_sim.report.rank_stability import stored_lines
from swizzle_sim.report.spending import Spending
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import Ranking, times_note, times_rank
from xcd_model import Gpu

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST_COLOURED = 60_000  # characters that are coloured: a lexer takes a microsecond or two for each
VALUES = ("percent", "points", "gigabytes", "joules", "microseconds")  # filters of the template
CLASSES = {
    "Keyword": "k", "Name.Builtin": "k", "Comment": "c", "Literal.String": "s", "Literal.Number": "m",
    "Name.Function": "f", "Name.Decorator": "f", "Operator.Word": "k",
}  # fmt: skip


def frame(
    scorer: Scorer, history: History, attempts: Sequence[Attempt], ranking: Ranking, spending: Spending
) -> dict[str, Any]:
    """The part of a page that needs no result."""
    kernel, gpu, about = scorer.kernel, scorer.gpu, history.about
    results, fault = content.measured_in(history.folder)
    return {
        "about": about,
        "settings": _settings(about),
        "state": history.state,
        "kernel": kernel,
        "sizes": ", ".join(f"{name} = {value}" for name, value in kernel.problem.items()),
        "grid": str(kernel.grid),
        "occupancy": scorer.occupancy,
        "gpu": gpu,
        "uncoalesced": [str(one) for one in uncoalesced(scorer.trace)],
        "counts": content.counts(attempts),
        "listed": content.listed(attempts, ranking),
        "spending": spending,
        "ranked": ranking.sentence(),
        "measured": results,
        "measured_fault": fault,
        "times": times_note(gpu.name, scorer.replay, scorer.work_class),
        "times_rank": times_rank(gpu.name, scorer.replay, scorer.work_class),
        "advice": None,
        "result": None,
    }


def result(
    scorer: Scorer,
    folder: Path,
    attempts: Sequence[Attempt],
    ranking: Ranking,
    replayed: tuple[Replayed, Replayed],
    drawn: Mapping[str, Drawing],
    scores: tuple[Score, Score],
    sources: Mapping[str, str],
) -> dict[str, Any]:
    """The rest of a page that has a best swizzle; replays and scores are of the launch order and of the best."""
    best, (before, after) = ranking.order(attempts)[0], replayed
    return {
        "result": {
            "baseline": scores[0],
            "score": scores[1],
            "rows": content.best_rows(attempts, scores[0], ranking),
            "stability": stored_lines(folder),
            "has_energy": any(one.name == "energy" for one in ranking.objectives),
            "best": best,
            "price": scores[1].price,
            "verdict": content.verdict_lines(best.verdict, scorer.gpu.xcds),
            "sources": sources,
            "code": content.rewritten(scorer.kernel, best.source, scorer.gpu, folder),
        },
        "reproduced": all(one.traffic.l2_hit_rate == s.l2_hit_rate for one, s in zip(replayed, scores, strict=True)),
        "drawn": drawn,
        "is_partitioned": scorer.gpu.l2_partitions is not None,
        "time_bars": content.time_bars(before.time, after.time),
        "heat_most": f"{most_misses(replayed):,.0f}",
        "misses": [_misses(name, one, scorer.gpu) for name, one in zip(NAMES, replayed, strict=True)],
        "slider": slider_data(scorer.kernel.grid, (before.schedule, after.schedule)),
    }


def _settings(about: Mapping[str, Any]) -> str:
    """Options of the models' requests; those that were not given are left out."""
    given = {key: value for key, value in sorted(about.get("settings", {}).items()) if value not in (None, False, 0)}
    words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in given.items()}
    return "; ".join(f"{key} = {value}" for key, value in words.items())


def _misses(name: str, one: Replayed, gpu: Gpu) -> dict[str, str]:
    """L2 misses in whole lines, estimated and counted: an L2 may fetch halves of them."""
    counted = one.traffic.l2_misses * gpu.l2.fetch_bytes // gpu.l2.line_bytes
    return {"name": name, "estimated": f"{one.misses.sum():,.0f}", "counted": f"{counted:,}"}


def render(page: Mapping[str, Any]) -> str:
    """HTML of a page; every value is escaped and its hidden characters spelled out, as nobody who wrote one is trusted.

    Style and script are the package's own; the policy in the head names them by hash, so nothing else is obeyed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible(value)

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    for name in VALUES:
        said = getattr(written, name)
        environment.filters[name] = lambda value, said=said: "–" if value is None else said(value)
    # "visible" for what becomes markup in the template itself
    environment.filters |= {"visible": visible, "cut": written.cut, "coloured": coloured}
    environment.filters |= {"figure": _figure, "verdict": content.verdict_of, "outcome": content.outcome}
    style, script = _own("page.css"), _own("page.js")
    given = {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _digest(style),
        "script_hash": _digest(script),
        "slider_json": Markup(json.dumps(page.get("slider"))),
    }
    return environment.from_string(_own("page.html")).render({**page, **given})


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _own(name: str) -> str:
    return resources.files("swizzle_sim.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Source expression of a Content-Security-Policy for an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def coloured(text: str, language: str) -> Markup:
    """Markup of a text of code; nothing of the text becomes an element."""
    from markupsafe import Markup, escape
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  (slow to import, and only a report needs it)

    text = visible(text)
    if len(text) > LONGEST_COLOURED:
        return escape(text)
    parts: list[Markup] = []
    for _, kind, piece in get_lexer_by_name(language).get_tokens_unprocessed(text):
        name = str(kind).removeprefix("Token.")
        style = next((style for token, style in CLASSES.items() if name.startswith(token)), "")
        shown = escape(piece)
        parts.append(Markup('<span class="{}">{}</span>').format(style, shown) if style and piece.strip() else shown)
    return Markup("").join(parts)
