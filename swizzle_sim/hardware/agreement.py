"""Predicted against measured: per candidate, by rank, and whether the winner is the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swizzle_sim.hardware.measurement import Measurement
from swizzle_sim.hardware.results import measurements_of


@dataclass(frozen=True)
class Figure:
    """One quantity of which there is a prediction and a measurement.

    Parameters
    ----------
    name, unit : str
    predicted, measured : str
        Fields of `swizzle_sim.scoring.Score` and of `Measurement`.
    better : {+1, -1}
        Whether more or less is better.
    vendors : tuple of str
        Whose counters have it.
    """

    name: str
    unit: str
    predicted: str
    measured: str
    better: int
    vendors: tuple[str, ...] = ("amd", "nvidia")


SECTOR_BYTES = 32  # what an NVIDIA L2 counts in
FIGURES = (
    Figure("L2 hit rate", "", "l2_hit_rate", "l2_hit_rate", +1),
    Figure("L2 misses", "requests", "l2_misses", "l2_misses", -1, ("amd",)),
    Figure("memory reads", "bytes", "hbm_read_bytes", "read_bytes", -1, ("nvidia",)),
    Figure("time, cold", "us", "time_us", "time_cold_us", -1),
)


@dataclass(frozen=True)
class Comparison:
    """One figure over the candidates of a bundle that have both numbers.

    Parameters
    ----------
    figure : Figure
    candidates : tuple of str
    predicted, measured : tuple of float
    rank_correlation : float or None
        Spearman's, ties at their mean rank; None with fewer than three candidates or all equal.
    same_winner : bool
        The candidate predicted best is the measured best, or equal to it.
    """

    figure: Figure
    candidates: tuple[str, ...]
    predicted: tuple[float, ...]
    measured: tuple[float, ...]
    rank_correlation: float | None
    same_winner: bool

    @property
    def nothing_to_rank(self) -> str:
        """Why no winner can be named, in words; empty where one can."""
        for values, where in ((self.measured, ""), (self.predicted, " in the prediction")):
            if len(set(values)) == 1:
                return f"all orders equal{where}: nothing to rank"
        return ""


@dataclass(frozen=True)
class Agreement:
    """What one result says of its predictions.

    Parameters
    ----------
    manifest, result : mapping
    measurements : tuple of Measurement
    predicted : mapping of str to mapping or None
        Simulated figures by candidate.
    comparisons : tuple of Comparison
    """

    manifest: Mapping[str, Any]
    result: Mapping[str, Any]
    measurements: tuple[Measurement, ...]
    predicted: Mapping[str, Mapping[str, float] | None]
    comparisons: tuple[Comparison, ...]

    @property
    def kind(self) -> str:
        """``measured`` or ``replayed``."""
        return self.result["kind"]


def agreement(
    manifest: Mapping[str, Any],
    result: Mapping[str, Any],
    predict: Callable[[str | None], Mapping[str, Any]] | None = None,
) -> Agreement:
    """Hold a result against the predictions in its bundle.

    Parameters
    ----------
    manifest, result : mapping
        Of one bundle, checked.
    predict : callable, optional
        ``predict(source) -> score`` for candidates of which the bundle has no prediction; ``source`` is None for the
        order as launched.
    """
    measured = tuple(measurements_of(result))
    predicted: dict[str, Mapping[str, Any] | None] = {}
    for one in manifest["candidates"]:
        known = one["predicted"]
        predicted[one["id"]] = predict(one["source"]) if known is None and predict is not None else known
    vendor = manifest["gpu"]["vendor"]
    if vendor == "nvidia":
        predicted |= {one.candidate: _as_sm_reads(predicted[one.candidate], one) for one in measured}
    found = [_compare(figure, predicted, measured) for figure in FIGURES if vendor in figure.vendors]
    return Agreement(manifest, result, measured, predicted, tuple(one for one in found if one is not None))


def _as_sm_reads(score: Mapping[str, Any] | None, one: Measurement) -> Mapping[str, Any] | None:
    """Put the hit rate of the reads that SMs make, in sectors, in place of that of all requests, in lines.

    A missed line is all of its sectors: the rate is what memory did not have to deliver of the bytes SMs asked for. How
    many those are is taken from the counters. Of an L2 of two sides the counter calls a hit only what the SM's own side
    held, so this rate is higher.
    """
    if score is None:
        return None
    asked = (one.l2_hits or 0) + (one.l2_misses or 0)
    rate = max(0.0, 1 - score["hbm_read_bytes"] / (SECTOR_BYTES * asked)) if asked else None
    return {**score, "l2_hit_rate": rate}


def _compare(
    figure: Figure,
    predicted: Mapping[str, Mapping[str, Any] | None],
    measured: Sequence[Measurement],
) -> Comparison | None:
    rows = []
    for one in measured:
        score, value = predicted[one.candidate], getattr(one, figure.measured)
        guess = None if score is None else score[figure.predicted]
        if guess is not None and value is not None and one.right in ("bitwise", "tolerance"):
            rows.append((one.candidate, float(guess), float(value)))
    if not rows:
        return None
    names, guesses, values = zip(*rows, strict=True)
    best = max(range(len(rows)), key=lambda i: figure.better * guesses[i])
    winner = max(figure.better * value for value in values)
    return Comparison(figure, names, guesses, values, spearman(guesses, values), figure.better * values[best] == winner)


def ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value from 1, ties at their mean."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where it does not exist."""
    if len(one) < 3:
        return None
    a, b = ranks(one), ranks(other)
    mean = (len(a) + 1) / 2
    spread = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    if not spread:
        return None
    return sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True)) / spread
