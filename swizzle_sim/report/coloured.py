"""Code in colours: each token in an element with a class of the style sheet, its text escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swizzle_sim.base.text import visible

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST = 60_000  # characters that are coloured: a lexer takes a microsecond or two for each
CLASSES = {
    "Keyword": "k", "Name.Builtin": "k", "Comment": "c", "Literal.String": "s", "Literal.Number": "m",
    "Name.Function": "f", "Name.Decorator": "f", "Operator.Word": "k",
}  # fmt: skip


def coloured(text: str, language: str) -> Markup:
    """Markup of a text of code; nothing of the text becomes an element.

    Parameters
    ----------
    text : str
        Of anybody: hidden characters are spelt out, and what is no code has no colour.
    language : str
        A lexer of Pygments: ``"python"``, also for texts of the language, or ``"cpp"``.
    """
    from markupsafe import Markup, escape
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  (slow to import, and only a report needs it)

    text = visible(text)
    if len(text) > LONGEST:
        return escape(text)
    parts: list[Markup] = []
    for _, kind, piece in get_lexer_by_name(language).get_tokens_unprocessed(text):
        name = str(kind).removeprefix("Token.")
        style = next((style for token, style in CLASSES.items() if name.startswith(token)), "")
        shown = escape(piece)
        parts.append(Markup('<span class="{}">{}</span>').format(style, shown) if style and piece.strip() else shown)
    return Markup("").join(parts)
