"""Tables and figures of the generated page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..statistics import Summary

SUMMARY = ("rows", "mean abs. error", "median", "worst", "Spearman", "signs right")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def figure(value: float | None) -> str:
    """Four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.4e}"


def summary_cells(found: Summary) -> list[str]:
    """Cells of a summary, in the order of `SUMMARY`."""
    return [
        str(found.rows),
        f"{found.mean_abs:.2f}",
        f"{found.median_abs:.2f}",
        f"{found.worst:.1f}",
        "-" if found.spearman is None else f"{found.spearman:.3f}",
        f"{found.signs[0]} of {found.signs[1]}" if found.signs[1] else "-",
    ]
