"""Small pieces of the page's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def pct(rate: float | None, digits: int = 1) -> str:
    """A rate of 0 to 1 in per cent, without the sign."""
    return "-" if rate is None else f"{100 * rate:.{digits}f}"


def points(gain: float) -> str:
    """A difference of rates, given in points."""
    return f"{0.0 if abs(gain) < 0.05 else gain:+.1f}"


def listed(words: Iterable[str], *, empty: str = "none") -> str:
    """``a, b and c``."""
    found = list(words)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found) or empty


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Markdown table; the first ``left`` columns are words."""
    lines = [heads, ["---"] * left + ["---:"] * (len(heads) - left), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(name: str) -> str:
    """A specification as code; the order as launched in words."""
    return "as launched" if name == "identity" else f"`{name}`"


def counted(n: int, one: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
