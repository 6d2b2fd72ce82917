"""Printers for IPython: its notebooks and shells show this project's nouns as tables instead of long reprs.

They are registered by name, so nothing is imported for them before the first noun is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from swizzle_sim.display.rows import TABLES, Table

_CELL = "text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0"


def register(shell: Any) -> None:
    """Teach an IPython shell to show `Score`, `Verdict`, `Swizzle`, `Kernel`, `Gpu` and `Run`."""
    formatters = shell.display_formatter.formatters
    for (module, name), table in TABLES.items():
        formatters["text/html"].for_type_by_name(module, name, _html_printer(table))
        formatters["text/plain"].for_type_by_name(module, name, _text_printer(table))


def html(table: Table) -> str:
    """HTML of a table; everything in it is escaped, since texts of candidates may come from anywhere."""
    parts = [f"<p><strong>{escape(table.caption)}</strong></p>"]
    if table.code:
        parts.append(f"<pre>{escape(table.code)}</pre>")
    lines = []
    if table.header:
        lines.append("".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in table.header))
    for row in table.rows:
        lines.append("".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row))
    if lines:
        parts.append("<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>")
    return "".join(parts)


def text(table: Table) -> str:
    """The same in characters, for shells."""
    grid = [row for row in (table.header, *table.rows) if row]
    widths = [max(len(row[at]) for row in grid) for at in range(len(grid[0]) - 1)] if grid else []
    lines = ["  " + "  ".join([*map(str.ljust, row[:-1], widths), row[-1]]) for row in grid]
    return "\n".join([table.caption, *(f"    {line}" for line in table.code.splitlines()), *lines])


def _html_printer(table: Callable[[Any], Table]) -> Callable[[Any], str]:
    return lambda noun: html(table(noun))


def _text_printer(table: Callable[[Any], Table]) -> Callable[[Any, Any, bool], None]:
    return lambda noun, printer, cycle: printer.text(text(table(noun)))
