"""A `Result` as parts of the page. Every text goes in as a child of an element, which Dash writes as text."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from dash import html

from swizzle_sim.display.colours import AFTER, BEFORE, BOUND, xcd_colour
from swizzle_sim.display.tiles import MAX_SIDE, map_png
from swizzle_sim.explore.evaluate import Result
from swizzle_sim.explore.figures import COLUMNS, NONE, cells, changes, percent, verdict_words
from swizzle_sim.explore.gallery import Card

MARKS = {"good": "✓", "bad": "✕", "none": "!"}  # besides the colour: it is read without one, too
NOBODY = 255  # what the browser reads of a tile that no XCD computes
WIDEST, TALLEST = 2.5, 1.6  # of a map's sides, beyond which its tiles are no squares


HIDDEN: dict[str, Any] = {"aria-hidden": "true"}  # from who reads with the ears: the words beside say the same


def verdict(result: Result) -> list[Any]:
    """Verdict, or what is wrong with the input."""
    tone, head, lines = verdict_words(result)
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


def score(result: Result) -> list[Any]:
    """Bars of the hit rate under its bounds, and the table of figures."""
    return [_bars(result), _table(result)]


def _bars(result: Result) -> html.Div:
    before, after = result.baseline, result.score
    rows: list[tuple[str, float | None, str, str]] = [
        ("as launched", before.l2_hit_rate if before else None, BEFORE, "bar"),
        ("this swizzle", after.l2_hit_rate if after else None, AFTER, "bar"),
        ("bound, these XCDs", result.assigned_bound, BOUND, "bar thin"),
        ("bound, any order", before.bound_l2_hit_rate if before else None, BOUND, "bar thin"),
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


def _table(result: Result) -> html.Table:
    before, after = result.baseline, result.score
    change = changes(before, after)
    rows = []
    for name, one, other, (text, tone) in zip(COLUMNS, cells(before), cells(after), change, strict=True):
        tones = {1: "n better", -1: "n worse", 0: "n"}
        rows.append(html.Tr([html.Th(name, scope="row"), *_figures(one, other), html.Td(text, className=tones[tone])]))
    speedup = [NONE if one is None else f"{one.speedup:.3f} ×" for one in (before, after)]
    rows.append(html.Tr([html.Th("Speedup, predicted", scope="row"), *_figures(*speedup), html.Td("")]))
    limiter = [NONE if one is None else one.limiter for one in (before, after)]
    rows.append(html.Tr([html.Th("Limited mostly by", scope="row"), *_figures(*limiter), html.Td("")]))
    head = html.Tr(
        [html.Th(text, scope="col", className="n") for text in ("", "as launched", "this swizzle", "change")]
    )
    return html.Table([html.Thead(head), html.Tbody(rows)], id="figures")


def _figures(*texts: str) -> list[html.Td]:
    return [html.Td(text, className="n") for text in texts]


def maps(result: Result) -> list[Any]:
    """Maps of XCDs side by side, as launched and with the swizzle, and their legend."""
    xcds = [
        html.Li([html.Span(style={"background": xcd_colour(x)}, className="swatch"), str(x)])
        for x in range(result.num_xcds)
    ]
    both = [_map("as launched", result.before, result), _map("this swizzle", result.after, result)]
    return [html.Div(both, className="maps"), html.Ul(xcds, className="legend", title="XCD")]


def _map(title: str, xcd: np.ndarray | None, result: Result) -> html.Figure:
    if xcd is None:
        return html.Figure([html.Figcaption(html.B(title)), html.Div("no map", className="empty")])
    rows, columns = xcd.shape
    part = xcd[:MAX_SIDE, :MAX_SIDE]
    high, wide = part.shape
    unit = f"lines of {columns} workgroups" if result.ribbon else "tiles"
    size = f"{rows} × {columns} tiles" if not result.ribbon else f"{rows} {unit}"
    size += f"; the first {high} × {wide}" if part.size < xcd.size else ""
    flat = np.where(part < 0, NOBODY, part).astype(np.uint8).tobytes()
    data: dict[str, Any] = {"data-rows": str(high), "data-columns": str(wide)}
    data["data-xcd"] = base64.b64encode(flat).decode()
    picture = html.Img(
        src="data:image/png;base64," + base64.b64encode(map_png(part, result.num_xcds)).decode(),
        alt=f"XCD of each tile, {title}: {size}",
        id={"map": title},
        className="map",
        style={"aspectRatio": f"{min(max(wide / high, 1 / TALLEST), WIDEST):.4f}"},
        **data,
    )
    return html.Figure([html.Figcaption([html.B(title), html.Span(size)]), picture])


def gallery(cards: Sequence[Card]) -> list[Any]:
    """Buttons of the families."""
    return [
        html.Button(
            [
                html.Img(src="data:image/png;base64," + base64.b64encode(card.png).decode(), alt=""),
                html.Span(_breakable(card.name)),
            ],
            id={"family": card.name},
            className="card",
            title=f"{card.spec} ({card.kind})\n{card.summary}\nFrom: {card.source}",
            type="button",
        )
        for card in cards
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
    return "Simulated in the lockstep replay, not measured; time is a roofline lower bound."
