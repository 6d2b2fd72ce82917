"""`Span`: one number with its range, and the constant that moves it most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xcd_model import Traffic

Figures = Mapping[str, float | None]
QUANTITIES = ("l2_hit_rate", "mall_hit_rate", "l2_misses", "hbm_bytes", "time_us")
PAIRED = ("l2_hit_rate", "hbm_bytes", "speedup")


@dataclass(frozen=True, kw_only=True)
class Span:
    """A number, its lowest and highest over all draws, and what moves it most on its own.

    Parameters
    ----------
    value, low, high : float or None
        None where the number does not exist.
    moved_by : str
        Key of the constant whose ends move it furthest; empty if none moves it.
    moved_low, moved_high : float or None
        Lowest and highest with that constant alone changed, the value in use counted in.
    """

    value: float | None
    low: float | None
    high: float | None
    moved_by: str = ""
    moved_low: float | None = None
    moved_high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def figures_of(traffic: Traffic, time_us: float) -> Figures:
    """Figures that a study takes from one replay, by `QUANTITIES`."""
    mall = traffic.mall_hit_rate
    return {
        "l2_hit_rate": traffic.l2_hit_rate,
        "mall_hit_rate": None if math.isnan(mall) else mall,
        "l2_misses": traffic.l2_misses,
        "hbm_bytes": traffic.hbm_read_bytes + traffic.hbm_write_bytes,
        "time_us": time_us,
    }


def paired(before: Figures, after: Figures) -> Figures:
    """An order against another under the same constants, by `PAIRED`.

    Rates are subtracted (after - before), bytes divided (after / before), and so are times (before / after).
    """
    rate, was = after["l2_hit_rate"], before["l2_hit_rate"]
    return {
        "l2_hit_rate": None if rate is None or was is None else rate - was,
        "hbm_bytes": _ratio(after["hbm_bytes"], before["hbm_bytes"]),
        "speedup": _ratio(before["time_us"], after["time_us"]),
    }


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


def span_of(name: str, figures: Sequence[Figures], keys: Sequence[str]) -> Span:
    """Span of one quantity.

    Parameters
    ----------
    name : str
    figures : sequence
        With the constants in use, then one for each of ``keys``, then the draws of all together.
    keys : sequence of str
        The constant that each one-at-a-time draw changes.
    """
    values = [one[name] for one in figures]
    known = [value for value in values if value is not None]
    nominal = values[0]
    if nominal is None or not known:
        return Span(value=None, low=None, high=None)
    alone: dict[str, list[float]] = {}
    for key, value in zip(keys, values[1:], strict=False):
        if value is not None:
            alone.setdefault(key, [nominal]).append(value)
    most = max(alone, key=lambda key: max(abs(value - nominal) for value in alone[key]), default="")
    if not most or max(abs(value - nominal) for value in alone[most]) == 0:
        return Span(value=nominal, low=min(known), high=max(known))
    return Span(
        value=nominal,
        low=min(known),
        high=max(known),
        moved_by=most,
        moved_low=min(alone[most]),
        moved_high=max(alone[most]),
    )
