"""Predicted against measured: per candidate, by rank, and whether the winner is the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from swizzle_sim.hardware.node.manifest import RIGHT
from swizzle_sim.hardware.results import Measurement, measurements_of


@dataclass(frozen=True)
class Figure:
    """One quantity of which there is a prediction and a measurement."""

    name: str
    unit: str
    predicted: str  # fields of `swizzle_sim.pricing.scoring.Score` and of `Measurement`
    measured: str
    better: int  # whether more or less is better
    vendors: tuple[str, ...] = ("amd", "nvidia")  # whose counters have it


STEADY = 0.97  # a clock that falls lower than this share of its highest moves times more than orders often do
SECTOR_BYTES = 32  # what an NVIDIA L2 counts in
FIGURES = (
    Figure("L2 hit rate", "", "l2_hit_rate", "l2_hit_rate", +1),
    Figure("L2 misses", "requests", "l2_misses", "l2_misses", -1, ("amd",)),
    Figure("memory reads", "bytes", "hbm_read_bytes", "read_bytes", -1, ("nvidia",)),
    Figure("time, cold", "us", "time_us", "time_cold_us", -1),
)


@dataclass(frozen=True)
class Comparison:
    """One figure over the candidates of a bundle that have both numbers."""

    figure: Figure
    candidates: tuple[str, ...]
    predicted: tuple[float, ...]
    measured: tuple[float, ...]
    same_winner: bool  # the candidate predicted best is the measured best, or equal to it
    spread: tuple[tuple[float, float], ...] = ()  # of each measurement: lowest and highest, or quartiles of times

    @property
    def pairs(self) -> tuple[int, int]:
        """Pairs of orders that differ by more than their spread, and how many of them were predicted right."""
        right = apart = 0
        for i, j in combinations(range(len(self.measured)), 2):
            (_, below), (above, _) = sorted((self.spread[i], self.spread[j]))
            if below < above:
                apart += 1
                right += (self.predicted[i] - self.predicted[j]) * (self.measured[i] - self.measured[j]) > 0
        return apart, right

    def sentence(self, orders: int) -> str:
        """How well the figure is predicted over the candidates that have it, of so many orders."""
        over = f"over {len(self.candidates)} of {orders} orders"
        if len(set(self.predicted)) == 1:
            return f"{self.figure.name}: all orders equal in the prediction, {over}"
        apart, right = self.pairs
        told = (
            f"{right} of {apart} pairs beyond the spread the right way round" if apart else "no two beyond the spread"
        )
        return f"{self.figure.name}: {told}, {'the same' if self.same_winner else 'another'} winner, {over}"


@dataclass(frozen=True)
class Agreement:
    """The predictions of one bundle compared with one result."""

    manifest: Mapping[str, Any]
    result: Mapping[str, Any]
    measurements: tuple[Measurement, ...]
    predicted: Mapping[str, Mapping[str, float] | None]  # simulated figures by candidate
    comparisons: tuple[Comparison, ...]

    @property
    def kind(self) -> str:
        """``measured`` or ``replayed``."""
        return self.result["kind"]

    @property
    def sentences(self) -> list[str]:
        """How well each figure is predicted, and what came of the choice."""
        return [*(one.sentence(len(self.measurements)) for one in self.comparisons), *outcome(self)]

    @property
    def doubts(self) -> list[str]:
        """What may be wrong with the measurements, each said once."""
        said = [f"doubt: {one.name}: {text}" for one in self.measurements for text in one.doubts]
        clock = ((self.result.get("timing") or {}).get("board") or {}).get("clock_mhz")
        if clock and clock["lowest"] < STEADY * clock["highest"]:
            said.append(
                f"doubt: the clock was {clock['lowest']:.0f} to {clock['highest']:.0f} MHz while orders were timed"
            )
        return list(dict.fromkeys(said))


def outcome(found: Agreement) -> list[str]:
    """Whether the first candidate did what was predicted of it, what choosing it loses, and who is level with the best.

    The reference is the launch order as rewritten code where the bundle has it: another text is compiled otherwise.
    """
    times = {one.candidate: one for one in found.measurements if "time_cold_us" in one.spreads and one.right in RIGHT}
    still = [
        one["id"]
        for one in found.manifest["candidates"]
        if one["id"] in times and not one.get("moved", one.get("order"))
    ]
    moved = [one["id"] for one in found.manifest["candidates"] if one["id"] in times and one["id"] not in still]
    if not still or not moved:
        return []
    reference, choice = times[still[-1]], times[moved[0]]
    best = min(times.values(), key=lambda one: one.time_cold_us or math.inf)
    took, stood, least = (one.time_cold_us or math.inf for one in (choice, reference, best))
    first, second = ((found.predicted[one.candidate] or {}).get("time_us", 0.0) for one in (choice, reference))
    low, high = (choice.spreads["time_cold_us"][i] / reference.spreads["time_cold_us"][1 - i] for i in (0, 1))
    words = f"{choice.name}: {took / stood:.3f} of the time of {reference.name} ({low:.3f} to {high:.3f})"
    if first and second:
        came = "came true" if (first < second) == (high < 1) else "did not come true"
        words += f", predicted {first / second:.3f}: {'cannot be told apart' if low <= 1 <= high else came}"
    most = best.spreads["time_cold_us"][1]
    level = [one.name for one in times.values() if one is not best and one.spreads["time_cold_us"][0] <= most]
    lost = f"choosing it loses {100 * took / least - 100:.1f} % of the fastest, {best.name}"
    return [words, lost + (f"; not told apart from that: {', '.join(level)}" if level else "")]


def agreement(
    manifest: Mapping[str, Any],
    result: Mapping[str, Any],
    predict: Callable[[str | None], Mapping[str, Any]] | None = None,
) -> Agreement:
    """Compare a result with the predictions in its bundle."""
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

    A missed line is all of its sectors: the rate is the share of the bytes that SMs requested, by the counters, that
    memory did not deliver. With a partitioned L2 the counter's hits are those of the SM's own partition only, so this
    rate is higher.
    """
    if score is None:
        return None
    requested = (one.l2_hits or 0) + (one.l2_misses or 0)
    rate = max(0.0, 1 - score["hbm_read_bytes"] / (SECTOR_BYTES * requested)) if requested else None
    return {**score, "l2_hit_rate": rate}


def _compare(
    figure: Figure, predicted: Mapping[str, Mapping[str, Any] | None], measured: Sequence[Measurement]
) -> Comparison | None:
    rows: list[tuple[str, float, float, tuple[float, float]]] = []
    for one in measured:
        score, value = predicted[one.candidate], getattr(one, figure.measured)
        guess = None if score is None else score[figure.predicted]
        if guess is not None and value is not None and one.right in RIGHT:
            spread = one.spreads.get(figure.measured, (float(value), float(value)))
            rows.append((one.candidate, float(guess), float(value), spread))
    if not rows:
        return None
    names, guesses, values, spreads = zip(*rows, strict=True)
    chosen = max(rows, key=lambda row: figure.better * row[1])[2]
    best = max(values) if figure.better > 0 else min(values)
    return Comparison(figure, names, guesses, values, chosen == best, spreads)
