"""Pinned orders beside the one that is edited, and the timed replay of them all, as parts of the page."""

from __future__ import annotations

from typing import Any

from dash import html

from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Pinned, Result
from swizzle_sim.explore.timed_jobs import Job
from swizzle_sim.language import is_spec

LONGEST_NAME = 60
TIMED = "Simulated in the timed replay, not measured: workgroups drift apart as their misses delay them."


def name_of(text: str) -> str:
    """What an order is called: a specification as it is, a text by its last line."""
    if is_spec(text):
        return text.strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    last = show.shown_text(lines[-1] if lines else "(empty)")
    return last if len(last) <= LONGEST_NAME else last[:LONGEST_NAME] + " ..."


def side_by_side(result: Result) -> list[Any]:
    """Order in view and the pinned ones, each with its map and figures; nothing without pins."""
    if not result.pinned:
        return []
    now = Pinned(text=result.state.swizzle, tiles=result.after, score=result.score)
    cards = [_card(result, now, "in view", [])]
    for at, one in enumerate(result.pinned):
        both = [_button("Edit", {"edit": at}), _button("Remove", {"unpin": at})]
        cards.append(_card(result, one, "pinned", both))
    return [html.Div(cards, className="compared")]


def _card(result: Result, one: Pinned, role: str, buttons: list[Any]) -> html.Article:
    before, score = result.baseline, one.score
    rows = [
        ("L2 hits", show.percent(score.l2_hit_rate) if score else show.NONE),
        ("HBM", show.cells(score)[2]),
        ("Time", show.time_text(score.time_us) if score else show.NONE),
        ("change", show.changes(before, score)[3][0]),
    ]
    lines: list[Any] = []
    for name, value in rows:
        lines += [html.Dt(name), html.Dd(value)]
    picture = show.map_image(one.tiles, result) if one.tiles is not None else html.Div("no map", className="empty")
    head = html.H3([html.Span(role, className="soft"), html.Code(name_of(one.text))])
    problem = [html.P(show.shown_text(one.problem), className="soft")] if one.problem else []
    return html.Article([head, picture, html.Dl(lines), *problem, html.Div(buttons, className="under")])


def _button(text: str, name: dict[str, int]) -> html.Button:
    return html.Button(text, id=name, className="button small", type="button")


def timed(job: Job, xcd: int | None) -> list[Any]:
    """Timed replay of a page: how far it is, or its figures.

    Parameters
    ----------
    job : Job
    xcd : int or None
        The XCD that is looked at alone.
    """
    if job.error:
        return [html.P(f"No timed replay: {show.shown_text(job.error)}", className="notice")]
    if job.result is None:
        return [_progress(job)]
    result = job.result
    if result.problem is not None and result.baseline is None:
        return [html.P(show.shown_text(result.problem.message), className="notice")]
    parts = [show.table(result, "timed-figures"), *_pinned_rows(result)]
    if xcd is not None and result.baseline is not None and xcd < result.num_xcds:
        rates = [one.per_xcd_l2_hit_rate[xcd] for one in (result.baseline, result.score) if one]
        said = " to ".join(show.percent(rate) for rate in rates)
        parts.append(html.P(f"XCD {xcd} alone, L2 hit rate: {said}"))
    took = f" It took {result.seconds:.1f} s." if result.seconds > 0.1 else ""  # nothing, of a state seen before
    return [*parts, html.P(TIMED + took, className="soft")]


def _pinned_rows(result: Result) -> list[Any]:
    """Table of the pinned orders."""
    if not result.pinned:
        return []
    rows = []
    for one in result.pinned:
        time_us = show.time_text(one.score.time_us) if one.score else show.NONE
        rate, change = show.cells(one.score)[0], show.changes(result.baseline, one.score)[3][0]
        cells = [html.Td(cell, className="n") for cell in (rate, time_us, change)]
        rows.append(html.Tr([html.Th(html.Code(name_of(one.text)), scope="row"), *cells]))
    head = [html.Th(text, scope="col", className="n") for text in ("pinned", "L2 hit rate", "time", "to launch order")]
    return [html.Table([html.Thead(html.Tr(head)), html.Tbody(rows)], id="timed-pins")]


def _progress(job: Job) -> html.Div:
    """Bar of the order under way."""
    share = job.done / job.total if job.total else 0.0
    left = f", about {job.left_s:.0f} s left of this order" if job.left_s is not None else ""
    of = f": {job.done:,} of {job.total:,} workgroups{left}" if job.total else ""
    name = job.what if job.what == "launch order" else name_of(job.what)
    said = f"replaying {name}{of}" if job.what else "starting, or waiting for another page's replay"
    bar = html.Span(html.Span(style={"width": f"{100 * share:.1f}%"}), className="bar", **show.HIDDEN)
    return html.Div([bar, html.P(said, id="timed-says", className="soft")], className="progress")
