"""The pictures of a run, and the replays they show: each figure as SVG in the page, and as PNG in its folder."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.base.text import cut, visible
from swizzle_sim.language.grid import Grid
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import figures
from swizzle_sim.report.display.colours import AFTER, BEFORE, BOUND, INK, OTHER
from swizzle_sim.report.display.picture import png
from swizzle_sim.report.display.tiles import MAX_SIDE, NO_TILE, is_ribbon, plane, tile_map
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from xcd_model import Time, Traffic, xcd_of
from xcd_model.analysis.schedule import Schedule, misses_of_workgroups, sampled_touches, schedule_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 240  # of the slider
PNG_DPI = 240
NEVER = 255
LONGEST_TITLE = 160
NAMES = (figures.LAUNCHED, figures.BEST)
FILES = {"map": "map.png", "progress": "progress.png", "over_time": "over_time.png", "per_xcd": "per_xcd.png"}

# Colours of the figures that the page's style sheet chooses, lighter ones on dark paper.
_MAP_THEME = {INK: "var(--ink)", OTHER: "var(--soft)"}  # the others are XCDs there
_THEME = {**_MAP_THEME, BEFORE: "var(--before)", AFTER: "var(--after)", BOUND: "var(--bound)"}
_MARKER = re.compile(r"<use ([^>]*)/>")
_PROPERTY = re.compile(r'style="([^"]*)"')
_FONT = re.compile(r"font: (?:(bold|\d+) )?([\d.]+)px [^;\"]*")


@dataclass(frozen=True, eq=False)
class Replayed:
    """One order of a run's kernel."""

    order: np.ndarray = field(repr=False)  # (n_workgroups,) int64
    traffic: Traffic
    time: Time
    schedule: Schedule  # in lockstep, whatever the run's replay; without its instructions, which fill memory
    # (n_workgroups,) float [lines]: estimated, see `xcd_model.analysis.schedule`
    misses: np.ndarray = field(repr=False)


def replay_pair(scorer: Scorer, order: np.ndarray) -> tuple[Replayed, Replayed]:
    """Replay a kernel in launch order and under another."""
    launched, _ = np.arange(order.size), scorer.plan
    if np.array_equal(order, launched):
        found = _replayed(scorer, launched)
        return found, found
    with ThreadPoolExecutor(2) as pool:  # compiled replays hold no lock
        before, after = pool.map(lambda one: _replayed(scorer, one), (launched, order))
    return before, after


def _replayed(scorer: Scorer, order: np.ndarray) -> Replayed:
    traffic = scorer.traffic(order)
    schedule = schedule_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy)
    misses = misses_of_workgroups(scorer.plan, schedule, sampled_touches(scorer.plan, schedule))
    return Replayed(order, traffic, scorer.time(traffic), schedule.without_instructions(), misses)


@dataclass(frozen=True)
class Drawing:
    """One picture of a run."""

    name: str
    alt: str  # what it shows, in words, for those who do not see it
    make: Callable[[], Figure]
    is_map: bool = False  # whether its colours name XCDs or counts, so that no scheme may change them

    @property
    def svg(self) -> str:
        """SVG text, without the title, which the page has above it."""
        figure = self.make()
        figure.suptitle("")
        return inline_svg(figure, self.name, _MAP_THEME if self.is_map else _THEME)


def drawings(
    scorer: Scorer,
    attempts: Sequence[Attempt],
    ranking: Ranking,
    replayed: tuple[Replayed, Replayed],
    scores: tuple[Score, Score],
) -> dict[str, Drawing]:
    """Pictures of a run, by name; `FILES` names those that are PNG files too."""
    before, after = (one.traffic for one in replayed)
    rates = [f"{name} {100 * one.l2_hit_rate:.1f} %" for name, one in zip(NAMES, (before, after), strict=True)]
    each = [["idle" if math.isnan(rate) else f"{100 * rate:.1f} %" for rate in s.per_xcd_l2_hit_rate] for s in scores]
    by_xcd = [f"{name} {', '.join(rates)}" for name, rates in zip(NAMES, each, strict=True)]
    scored = sum(attempt.score is not None for attempt in attempts)
    found = [
        *_maps(scorer, replayed),
        Drawing(
            "over_time",
            f"L2 hit rate over dispatch time; overall: {', '.join(rates)}.",
            lambda: figures.over_time(before, after),
        ),
        Drawing("per_xcd", f"L2 hit rate of each XCD: {'; '.join(by_xcd)}.", lambda: figures.per_xcd(*scores)),
        Drawing(
            "progress",
            f"{ranking.main.spoken} of {scored} scored attempts, and the best so far.",
            lambda: figures.best_so_far(attempts, scores[0], ranking),
        ),
    ]
    if (old := scores[0].balance) and (new := scores[1].balance):  # an old run has none
        alt = (
            f"{scorer.work}. Makespan over ideal: {old.over_ideal:.2f} in launch order, {new.over_ideal:.2f} under "
            f"the best swizzle. End of the last XCD over that of the first: {old.last_over_first:.2f} and "
            f"{new.last_over_first:.2f}."
        )
        found.append(Drawing("balance", alt, lambda: figures.balance(scorer, old, new)))
    return {one.name: one for one in found}


def _maps(scorer: Scorer, replayed: tuple[Replayed, Replayed]) -> list[Drawing]:
    kernel, gpu, ribbon = scorer.kernel, scorer.gpu, is_ribbon(scorer.kernel.grid)
    xcd = xcd_of(kernel.grid.num_pids, gpu, kernel.programs)
    maps = [tile_map(kernel.grid, xcd, one.order) for one in replayed]
    misses, most = [plane(kernel.grid, one.misses) for one in replayed], most_misses(replayed)
    size = f"{maps[0].shape[0]} x {maps[0].shape[1]} tiles"
    missed = "; ".join(
        f"{name} {one.misses.min():,.0f} to {one.misses.max():,.0f} lines, {one.misses.mean():,.0f} a tile"
        for name, one in zip(NAMES, replayed, strict=True)
    )
    return [
        Drawing(
            "map",
            f"XCD of each of {size} over {gpu.xcds} XCDs, in launch order and under the best swizzle.",
            lambda: figures.xcd_map(*maps, title="XCD of each tile", num_xcds=gpu.xcds, ribbon=ribbon),
            is_map=True,
        ),
        Drawing(
            "misses",
            f"L2 misses of each of {size}: {missed}.",
            lambda: figures.heat_map(misses[0], misses[1], most, title="L2 misses of each tile", ribbon=ribbon),
            is_map=True,
        ),
    ]


def most_misses(replayed: tuple[Replayed, Replayed]) -> float:
    """End of the colour scale: the most that a tile misses, outliers apart."""
    return float(np.quantile(np.concatenate([one.misses for one in replayed]), 0.999))


def files(drawn: dict[str, Drawing], note: str) -> dict[str, bytes]:
    """PNG files of a run by name, for slides and mails."""
    return {file: png(drawn[name].make(), note=note, dpi=PNG_DPI) for name, file in FILES.items()}


def inline_svg(figure: Figure, name: str, theme: dict[str, str]) -> str:
    """SVG of a figure to stand within a page whose policy allows no ``style`` attributes."""
    from matplotlib import rc_context

    for at, axes in enumerate(figure.axes):
        axes.patch.set_gid(f"plot-{at}")
        axes.patch.set_facecolor("none")  # the page's paper
    stream = io.StringIO()
    titled: list[Any] = figure.findobj(lambda artist: hasattr(artist, "titles"))
    for at, artist in enumerate(titled):
        artist.set_gid(f"titled-{at}")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "swizzle-sim"}):
        figure.savefig(stream, format="svg", facecolor="none", dpi=200, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 stroke-linejoin="round">', text)
    text = _PROPERTY.sub(lambda found: _attributes(found[1]), text)
    text = re.sub(r'id="', f'id="{name}-', text)
    text = re.sub(r'(url\(|href=")#', rf"\1#{name}-", text).replace("xlink:href", "href")
    for colour, instead in theme.items():
        text = text.replace(f'"{colour}"', f'"{instead}"')
    return _with_titles(re.sub(r"\n\s*", "\n", text), name, [artist.titles for artist in titled])


def _attributes(style: str) -> str:
    """Declarations of a style as attributes; the font is the page's."""
    style = _FONT.sub(lambda font: f"font-size: {font[2]}; font-weight: {font[1] or 'normal'}", style)
    pairs = [declaration.split(":", 1) for declaration in style.split(";") if ":" in declaration]
    found = {key.strip(): value.strip() for key, value in pairs}
    found.pop("font-family", "")
    return " ".join(f'{key}="{value}"' for key, value in found.items())


def _with_titles(svg: str, name: str, titles: Sequence[Sequence[str]]) -> str:
    """Put titles into an SVG text; an artist of whose markers some are not drawn gets none, rather than wrong ones."""
    from markupsafe import escape

    for at, mine in enumerate(titles):
        begin = svg.find(f'<g id="{name}-titled-{at}">')
        if begin < 0:  # drawn as an image
            continue
        head = svg.index(">", begin) + 1
        after = svg.find("<g id=", head)
        end = after if after >= 0 else len(svg)
        body, said = svg[head:end], [f"<title>{escape(cut(visible(one), LONGEST_TITLE))}</title>" for one in mine]
        if len(_MARKER.findall(body)) == len(said):
            each = iter(said)
            body = _MARKER.sub(lambda use, each=each: f"<use {use[1]}>{next(each)}</use>", body)  # type: ignore[misc]
        elif len(said) == 1 and "<use" not in body:
            body = said[0] + body
        svg = svg[:head] + body + svg[end:]
    return svg


def slider_data(grid: Grid, schedules: tuple[Schedule, ...]) -> dict[str, Any]:
    """When each tile of the maps runs, for the page's slider: JSON-ready."""
    turns = max(one.turns for one in schedules)
    maps = [
        {"begin": _steps(grid, STEPS * one.begin // turns), "end": _steps(grid, -(-STEPS * one.end // turns))}
        for one in schedules
    ]
    rows, columns = plane(grid, schedules[0].begin)[:MAX_SIDE, :MAX_SIDE].shape
    data = {"steps": STEPS, "turns": turns, "rows": rows, "columns": columns, "never": NEVER}
    return {**data, "names": list(NAMES), "maps": maps}


def _steps(grid: Grid, step: np.ndarray) -> str:
    tiles = plane(grid, step)[:MAX_SIDE, :MAX_SIDE]
    return base64.b64encode(np.where(tiles == NO_TILE, NEVER, tiles).astype(np.uint8).tobytes()).decode("ascii")
