"""A chart as the page needs it: ticks in percent of the plot, and paths in a square of `SIDE` units.

The page stretches the square to any width, while texts and strokes keep their size; so a chart reads on a phone, and
its colours are those of the page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SIDE = 1000


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis, in percent from the left or the top."""

    at: float
    label: str


@dataclass(frozen=True)
class Drawn:
    """A line or a set of dots.

    Parameters
    ----------
    path : str
        SVG path data in `SIDE` units.
    style : str
        Class of the style sheet.
    label : str
        For the legend; empty for none.
    """

    path: str
    style: str
    label: str = ""


@dataclass(frozen=True)
class Level:
    """A straight line across the plot, at a height (or, upright, a place) in percent."""

    at: float
    style: str
    label: str
    upright: bool = False


@dataclass(frozen=True)
class Chart:
    """One chart.

    Parameters
    ----------
    name : str
        Its id on the page.
    alt : str
        What it shows, in words, for who does not see it.
    x_label, y_label : str
    x_ticks, y_ticks : tuple of Tick
    drawn : tuple of Drawn
    levels : tuple of Level
    """

    name: str
    alt: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    drawn: tuple[Drawn, ...]
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True)
class Axis:
    """Where values lie between two ends.

    Parameters
    ----------
    low, high : float
    log : bool
        Logarithm of one more than the value, so that 0 has a place.
    """

    low: float
    high: float
    log: bool = False

    def share(self, value: np.ndarray) -> np.ndarray:
        """Place of values, 0 at the low end and 1 at the high one."""
        value, low, high = np.asarray(value, float), self.low, self.high
        if self.log:
            value, low, high = np.log1p(value), math.log1p(low), math.log1p(high)
        return (value - low) / ((high - low) or 1.0)

    def ticks(self, most: int = 6, *, from_top: bool = False) -> tuple[Tick, ...]:
        """Ticks at round values."""
        values = _decades(self.low, self.high) if self.log else _round_values(self.low, self.high, most)
        digits = max(0, -math.floor(math.log10(values[1] - values[0]))) if len(values) > 1 else 0
        share = self.share(np.array(values))
        at = 100 * (1 - share if from_top else share)
        return tuple(Tick(round(float(a), 2), f"{v:,.{digits}f}") for a, v in zip(at, values, strict=True))


def _round_values(low: float, high: float, most: int) -> list[float]:
    rough = max(high - low, 1e-12) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(k for k in (1, 2, 5, 10) if k * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    values = [k * 10.0**power for power in range(math.ceil(math.log10(high + 1)) + 1) for k in (1, 3)]
    return [0.0, *(v for v in values if low < v <= high)] if low <= 0 else [v for v in values if low <= v <= high]


def line(x: np.ndarray, y: np.ndarray) -> str:
    """Path through points given as shares (0 to 1, up); a nan breaks it."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(b):
            pen = "M"
            continue
        parts.append(f"{pen}{_at(a)} {_at(1 - b)}")
        pen = "L"
    return "".join(parts)


def stairs(edges: np.ndarray, y: np.ndarray) -> str:
    """Path over bins, flat in each."""
    return line(np.repeat(edges, 2)[1:-1], np.repeat(y, 2))


def dots(x: np.ndarray, y: np.ndarray) -> str:
    """Lines without a length: round caps make them dots that no stretching bends."""
    return "".join(f"M{_at(a)} {_at(1 - b)}h0" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _at(share: float) -> str:
    return f"{SIDE * share:.1f}".rstrip("0").rstrip(".")
