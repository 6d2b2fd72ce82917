"""Titles on the dots and bars of a picture: what a browser shows where the pointer rests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.text import cut, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 160
_MARKER = re.compile(r"<use ([^>]*)/>")


def give_titles(artist: Any, titles: Sequence[str]) -> None:
    """Give an artist of matplotlib a title a marker, or one for a bar.

    Parameters
    ----------
    artist : Line2D or Patch
    titles : sequence of str
        Of anybody; they are escaped where they are written.
    """
    artist.titles = list(titles)


def name_titled(figure: Figure) -> list[list[str]]:
    """Name the artists that have titles, before the figure is written; their titles, in the order of the names."""
    found: list[Any] = figure.findobj(lambda artist: hasattr(artist, "titles"))
    for at, artist in enumerate(found):
        artist.set_gid(f"titled-{at}")
    return [artist.titles for artist in found]


def with_titles(svg: str, name: str, titles: Sequence[Sequence[str]]) -> str:
    """Put titles into an SVG text.

    Parameters
    ----------
    svg : str
        Whose artists have the ids ``NAME-titled-0`` and on.
    name : str
    titles : sequence
        As `name_titled` gave them. An artist of whose markers some are not drawn gets none, rather than wrong ones.
    """
    for at, mine in enumerate(titles):
        begin = svg.find(f'<g id="{name}-titled-{at}">')
        if begin < 0:  # drawn as an image
            continue
        head = svg.index(">", begin) + 1
        after = svg.find("<g id=", head)
        end = after if after >= 0 else len(svg)
        body, said = svg[head:end], [_title(one) for one in mine]
        if len(_MARKER.findall(body)) == len(said):
            each = iter(said)
            body = _MARKER.sub(lambda use, each=each: f"<use {use[1]}>{next(each)}</use>", body)  # type: ignore[misc]
        elif len(said) == 1 and "<use" not in body:
            body = said[0] + body
        svg = svg[:head] + body + svg[end:]
    return svg


def _title(text: str) -> str:
    from markupsafe import escape

    return f"<title>{escape(cut(visible(text), LONGEST))}</title>"
