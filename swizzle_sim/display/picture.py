"""`Picture`: a figure as a notebook shows it, with a foot that says what kind of numbers it holds."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from swizzle_sim.report.colours import OTHER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 120  # half as much again as it is shown with, and small enough to keep in a repository
SHOWN_DPI = 80


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib's object API, shown without pyplot and without a backend.

    Parameters
    ----------
    figure : Figure
    note : str
        What kind of numbers these are, such as ``simulated, timed replay``; it stands at the foot.
    """

    figure: Figure
    note: str = "simulated"

    @cached_property
    def data(self) -> bytes:
        """PNG; the same figure gives the same bytes."""
        self.figure.supxlabel(self.note, x=0.995, ha="right", fontsize=7, color=OTHER, parse_math=False)
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", dpi=DPI, facecolor="white", pil_kwargs={"optimize": True})
        return stream.getvalue()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width = int.from_bytes(self.data[16:20], "big")
        return self.data, {"width": width * SHOWN_DPI // DPI}

    def __repr__(self) -> str:
        title = self.figure.get_suptitle() or "a figure"
        return f"<Picture: {title} ({self.note})>"
