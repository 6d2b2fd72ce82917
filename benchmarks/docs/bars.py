"""Vertical bars in a cell of a Markdown table."""

from __future__ import annotations

import re


def with_bars(cell: str) -> str:
    """Cell whose bars do not end it, in code too; GitHub and Python-Markdown agree on entities alone."""
    in_code = re.sub(r"`([^`]*\|[^`]*)`", lambda found: f"<code>{_escaped(found[1])}</code>", cell)
    return in_code.replace("|", "&#124;")


def _escaped(code: str) -> str:
    return code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
