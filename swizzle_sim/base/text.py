"""Values and foreign texts as people read them, on a terminal and on a page: units, percentages, visible characters."""

from __future__ import annotations

import math


def cut(text: str, longest: int) -> str:
    """Shorten a text that somebody else wrote."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def visible(text: str) -> str:
    """Spell out characters that a browser would hide or obey, such as those that turn the direction of a line."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):x}}}" for c in str(text))


def one_line(name: str) -> str:
    """Name of a file, which may hold any character, as one line."""
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


def percent(rate: float | None) -> str:
    """Write a rate of 0 to 1 as a percentage; a dash where there is none."""
    return "–" if rate is None or math.isnan(rate) else f"{100 * rate:.1f} %"


def points(difference: float) -> str:
    """Write a difference of rates in percentage points."""
    return f"{round(100 * difference, 1) + 0.0:.1f}"  # no "-0.0" from rounding


def gigabytes(count_bytes: int) -> str:
    """Write bytes in units of 10**9 bytes."""
    return f"{count_bytes / 1e9:.3g}" if count_bytes < 1e11 else f"{count_bytes / 1e9:,.0f}"


def joules(energy_j: float) -> str:
    """Write an energy; a dash where there is none."""
    return "–" if math.isnan(energy_j) else f"{energy_j:.3g}"


def microseconds(time_us: float) -> str:
    """Write a time, in more digits where it is short."""
    return f"{time_us:,.0f}" if time_us >= 1000 else f"{time_us:.1f}" if time_us >= 10 else f"{time_us:.2f}"
