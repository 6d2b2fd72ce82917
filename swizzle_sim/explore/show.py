"""A `Result` as parts of the page, and its figures in a fixed width. Texts are children of elements, never markup."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from dash import html

from swizzle_sim.base.text import gigabytes, percent, visible
from swizzle_sim.explore.evaluate import Result
from swizzle_sim.language import FAMILIES, parse_spec, spec_of
from swizzle_sim.language.lattice import claim_of
from swizzle_sim.report.display.colours import AFTER, BEFORE, BOUND, xcd_colour
from swizzle_sim.report.display.tiles import MAX_SIDE, map_png

if TYPE_CHECKING:
    from swizzle_sim.explore.request_queue import Job
    from swizzle_sim.pricing.scores import Score

NONE = "–"
MAX_MESSAGE = 1200
KINDS = {0: "placement", 2: "order", 3: "3-D order"}  # of a family, by its axes
TIMED = "Simulated in the timed replay, not measured: workgroups drift apart as their misses delay them."
MARKS = {"good": "✓", "bad": "✕", "none": "!"}  # in addition to the colour
NO_XCD = 255  # in the browser: a tile that no XCD computes
WIDEST, TALLEST = 2.5, 1.6  # of a map's sides, beyond which its tiles are no squares


HIDDEN: dict[str, Any] = {"aria-hidden": "true"}  # from screen readers: the text next to it says the same


def verdict(result: Result) -> list[Any]:
    """Verdict, or what is wrong with the input."""
    tone, head, lines = verdict_words(result)
    if result.baseline is not None and result.score is not None:  # the score first: that it is a bijection is usual
        lines = [f"{head}; {lines[0]}", *lines[1:]]
        gain, _ = _points(result.baseline.l2_hit_rate, result.score.l2_hit_rate)
        head = f"L2 hit rate {percent(result.baseline.l2_hit_rate)} to {percent(result.score.l2_hit_rate)}: {gain}"
    first = html.P([html.Span(MARKS[tone], className="mark", **HIDDEN), head], className="headline")
    if result.problem is not None:
        body: list[Any] = [html.Pre(line, className="message") for line in lines]
    else:
        body = [html.P(line) for line in lines]
    return [html.Div([first, *body], className=f"verdict {tone}", id="verdict-box")]


def starting() -> html.Div:
    """What stands in the verdict's place until the first one."""
    head = html.P("Getting ready", className="headline")
    return html.Div(
        [head, html.P("The first start compiles, which takes about half a minute; later ones take seconds.")],
        className="verdict none",
    )


def button(text: str, name: str | dict[str, int], style: str = "button small", **more: Any) -> html.Button:
    """Button of the page."""
    return html.Button(text, id=name, className=style, type="button", **more)


def score(result: Result) -> list[Any]:
    """Bars of the hit rate under its bounds, and the table of figures."""
    return [_bars(result), table(result, "figures")]


def _bars(result: Result) -> html.Div:
    before, after = result.baseline, result.score
    rows: list[tuple[str, float | None, str, str]] = [
        ("launch order", before.l2_hit_rate if before else None, BEFORE, "bar"),
        ("this swizzle", after.l2_hit_rate if after else None, AFTER, "bar"),
        ("bound, these XCDs", result.assigned_bound, BOUND, "bar thin"),
        ("bound, any mapping", before.bound_l2_hit_rate if before else None, BOUND, "bar thin"),
    ]
    parts: list[Any] = []
    for label, rate, colour, kind in rows:
        width = {"width": f"{100 * (rate or 0):.2f}%", "background": colour}
        parts += [
            html.Span(label, className="label"),
            html.Span(html.Span(style=width), className=kind, **HIDDEN),
            html.Span(percent(rate), className="n", id={"bar": label}),
        ]
    return html.Div(parts, className="bars")


def table(result: Result, table_id: str) -> html.Table:
    """Table of figures, launch order and swizzle side by side; ``table_id`` names it on the page."""
    before, after = result.baseline, result.score
    tones = {1: "n better", -1: "n worse", 0: "n"}
    both = zip(COLUMNS, cells(before), cells(after), changes(before, after), strict=True)
    rows = [_row(name, one, other, html.Td(text, className=tones[tone])) for name, one, other, (text, tone) in both]
    said = {"Speedup, predicted": lambda one: f"{one.speedup:.3f} ×", "Limited mostly by": lambda one: one.limiter}
    for name, text_of in said.items():
        rows.append(_row(name, *(NONE if one is None else text_of(one) for one in (before, after)), html.Td("")))
    heads = [html.Th(text, scope="col", className="n") for text in ("", "launch order", "this swizzle", "change")]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(rows)], id=table_id)


def _row(name: Any, *figures: str | html.Td) -> html.Tr:
    """Row of a table: its name, and figures."""
    texts = [html.Td(one, className="n") if isinstance(one, str) else one for one in figures]
    return html.Tr([html.Th(name, scope="row"), *texts])


def maps(result: Result) -> list[Any]:
    """Maps of XCDs side by side, in launch order and with the swizzle, and their legend."""
    swatches = [html.Span(style={"background": xcd_colour(x)}, className="swatch") for x in range(result.num_xcds)]
    both = [_map("launch order", result.before, result), _map("this swizzle", result.after, result)]
    xcds = [html.Li([swatch, f"XCD {x}"]) for x, swatch in enumerate(swatches)]
    return [html.Div(both, className="maps"), html.Ul(xcds, className="legend")]


def _map(title: str, xcd: np.ndarray | None, result: Result) -> html.Figure:
    if xcd is None:
        return html.Figure([html.Figcaption(html.B(title)), html.Div("no map", className="empty")])
    rows, columns = xcd.shape
    high, wide = min(rows, MAX_SIDE), min(columns, MAX_SIDE)
    unit = f"lines of {columns} workgroups" if result.ribbon else "tiles"
    size = f"{rows} × {columns} tiles" if not result.ribbon else f"{rows} {unit}"
    size += f"; the first {high} × {wide}" if high * wide < xcd.size else ""
    picture = map_image(xcd, result, f"XCD of each tile, {title}: {size}", title)
    down, across = ("line", "workgroup of the line") if result.ribbon else ("pid_m", "pid_n")
    ticks = [_ticks(down, high, "axis down"), picture, _ticks(across, wide, "axis across")]
    return html.Figure([html.Figcaption([html.B(title), html.Span(size)]), html.Div(ticks, className="plot")])


def _ticks(name: str, last: int, style: str) -> html.Div:
    """Name of an axis between its first and its last tile."""
    return html.Div([html.Span("0"), html.Span(name), html.Span(str(last - 1))], className=style, **HIDDEN)


def map_image(xcd: np.ndarray, result: Result, alt: str = "", title: str = "") -> html.Img:
    """Picture of a map; with a title it answers to the pointer."""
    part = xcd[:MAX_SIDE, :MAX_SIDE]
    high, wide = part.shape
    flat = np.where(part < 0, NO_XCD, part).astype(np.uint8).tobytes()
    data: dict[str, Any] = {"data-rows": str(high), "data-columns": str(wide)}
    data["data-xcd"] = base64.b64encode(flat).decode()
    name: dict[str, Any] = {"id": {"map": title}, "className": "map", **data} if title else {"className": "map still"}
    return html.Img(
        src="data:image/png;base64," + base64.b64encode(map_png(part, result.num_xcds)).decode(),
        alt=alt,
        style={"aspectRatio": f"{min(max(wide / high, 1 / TALLEST), WIDEST):.4f}"},
        **name,
    )


def gallery(cards: Mapping[str, bytes]) -> list[Any]:
    """Buttons of the families, with the PNG of each."""
    return [
        html.Button(
            [
                html.Img(src="data:image/png;base64," + base64.b64encode(png).decode(), alt=""),
                html.Span(_breakable(name)),
            ],
            id={"family": name},
            className="card",
            title=f"{spec_of(parse_spec(name))} ({KINDS[one.axes]})\n{one.summary}\nFrom: {one.source}",
            type="button",
        )
        for name, png in cards.items()
        for one in [FAMILIES[name]]
    ]


def _breakable(name: str) -> list[Any]:
    """Name that may be broken after an underscore."""
    first, *others = name.split("_")
    return [first, *(part for other in others for part in ("_", html.Wbr(), other))]


def note(result: Result) -> str:
    """How the figures came about, or why there are none."""
    if result.too_large:
        return f"Not replayed while you type: {result.too_large}."
    if result.baseline is None:
        return "No figures: see above."
    return "Simulated in the lockstep replay, not measured; time is a roofline by windows of turns, no bound."


def cells(score: Score | None) -> list[str]:
    """Cells of one score, in the order of `COLUMNS`."""
    return [NONE if score is None else text(of(score)) for of, text, _ in COLUMNS.values()]


def changes(before: Score | None, after: Score | None) -> list[tuple[str, int]]:
    """What changed from one score to the other: text, and 1 for better, -1 for worse, 0 for neither."""
    if before is None or after is None:
        return [(NONE, 0)] * len(COLUMNS)
    return [change(of(before), of(after)) for of, _, change in COLUMNS.values()]


def time_text(time_us: float) -> str:
    """Write a time [us] in a unit with few digits."""
    return f"{time_us / 1000:.2f} ms" if time_us >= 1000 else f"{time_us:.1f} µs"


def _signed(value: float, unit: str) -> str:
    return f"{value:+.1f} {unit}".replace("-", "−")


def _points(before: float, after: float, judged: bool = True) -> tuple[str, int]:
    if math.isnan(before) or math.isnan(after):
        return NONE, 0
    points = round(100 * (after - before), 1) + 0.0
    return _signed(points, "pt") if points else "no change", judged * ((points > 0) - (points < 0))


def _ratio(before: float, after: float) -> tuple[str, int]:
    if not before or not after or math.isnan(before) or math.isnan(after):
        return NONE, 0
    change = round(100 * (after / before - 1), 1) + 0.0
    return _signed(change, "%") if change else "no change", (change < 0) - (change > 0)


COLUMNS: dict[str, tuple[Callable[[Score], float], Callable[[Any], str], Callable[[Any, Any], tuple[str, int]]]] = {
    "L2 hit rate": (lambda one: one.l2_hit_rate, percent, _points),
    # it may drop because better L2 hit rates leave fewer requests
    "Infinity Cache hits": (lambda one: one.mall_hit_rate, percent, partial(_points, judged=False)),
    "HBM traffic": (lambda one: one.hbm_bytes, lambda count: f"{gigabytes(count)} GB", _ratio),
    "Time, predicted": (lambda one: one.time_us, time_text, _ratio),
}


def verdict_words(result: Result) -> tuple[str, str, list[str]]:
    """Tone (``good``, ``bad`` or ``none``), headline and further lines on whether the swizzle is a bijection."""
    if result.problem is not None:
        heads = {"syntax": "Not in the language", "node": "Not in the language", "call": "Not in the language"}
        heads |= {"unassigned": "Not in the language", "result": "Not in the language", "limit": "Too much"}
        heads |= {"name": "A name this kernel does not have", "unknown-name": "No such name", "size": "No such size"}
        heads |= {"gpu-spec": "No such GPU", "replay": "Cannot be replayed", "parameter": "Not a family's parameter"}
        return "none", heads.get(result.problem.code, "Cannot be shown"), [shown_text(result.problem.message)]
    verdict = result.verdict
    if verdict is None:
        return "none", "Nothing to check", []
    where = f"at {result.grid}, {result.num_xcds} XCD{'s' * (result.num_xcds != 1)}"
    lines = [f"{claim_of(verdict)}; {verdict.passed} of {verdict.tested} grids and XCD counts pass"]
    if not verdict.complete:
        lines.append("other grids took too long: untested")
    if not verdict.bijective:
        why = [shown_text(verdict.counterexample.message)] if verdict.counterexample else []
        return "bad", f"Not a bijection {where}", [*why, *lines]
    if verdict.lattice_counterexample:
        lines.append(f"elsewhere: {shown_text(verdict.lattice_counterexample.message)}")
    return "good", f"A bijection {where}", lines


def shown_text(text: str) -> str:
    """Text with hidden characters spelt out, no longer than a panel."""
    shown = visible(text)
    return shown if len(shown) <= MAX_MESSAGE else shown[:MAX_MESSAGE] + " ..."


def timed(job: Job) -> list[Any]:
    """Timed replay of a page: how far it is, or its figures."""
    if job.error:
        return [html.P(f"No timed replay: {shown_text(job.error)}", className="notice")]
    if job.result is None:
        said = f"replaying in time: {time.monotonic() - job.began_s:.0f} s so far"
        return [html.P(said, id="timed-says", className="soft")]
    result = job.result
    if result.problem is not None and result.baseline is None:
        return [html.P(shown_text(result.problem.message), className="notice")]
    took = f" It took {result.seconds:.1f} s." if result.seconds > 0.1 else ""  # nothing, of a state seen before
    return [table(result, "timed-figures"), html.P(TIMED + took, className="soft")]
