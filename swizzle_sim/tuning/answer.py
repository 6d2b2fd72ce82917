"""`Answer`: the lever that a search names, what each lever brings at equal evaluations, and the best instances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from swizzle_sim.base.text import microseconds
from swizzle_sim.search.candidates import LAUNCH_ORDER
from swizzle_sim.tuning.joint import ALIKE, Arm, Point, Tuned
from swizzle_sim.tuning.template import UNCHANGED

MOST = 0.9  # share of the gain of all levers from which one of them is the lever
BEST = 3  # configurations that are written for an autotuner
MOST_ON_FRONT = 6


@dataclass(frozen=True)
class Answer:
    """The answer of one search."""

    tuned: Tuned

    @cached_property
    def best(self) -> dict[str, Point]:
        """Best point of each arm."""
        return {arm.name: self.tuned.best(arm) for arm in self.tuned.arms}

    @cached_property
    def chosen(self) -> Point:
        """Best of all points; the kernel as it is where nothing gains."""
        return self.tuned.ranked([self.tuned.base, *self.best.values()])[0]

    @cached_property
    def lever(self) -> str:
        """The lever that alone brings `MOST` of what all bring; ``both`` or ``all`` where none does, empty for none."""
        most = self.gain(self.chosen)
        if most <= self.tuned.alike:
            return ""
        enough = [arm for arm in self.tuned.arms if self.gain(self.best[arm.name]) >= MOST * most]
        return min(enough, key=lambda arm: (len(arm.levers), -self.gain(self.best[arm.name]))).name

    def gain(self, point: Point) -> float:
        """Gain over the kernel as it is: of a rate the difference, else the logarithm of the ratio."""
        return self.tuned.levers.objective.gain(point.score, self.tuned.base.score)

    def told(self, point: Point) -> str:
        """Gain over the kernel as it is, in words."""
        objective, gain = self.tuned.levers.objective, self.gain(point)
        if objective.largest:
            return f"{objective.spoken} {100 * gain:+.1f} points"
        return f"{objective.spoken.removeprefix('predicted ')} {100 * math.expm1(-gain):+.0f} %".replace("-0 %", "0 %")

    @property
    def what(self) -> str:
        """The answer, in a sentence."""
        brings = "; ".join(f"{arm.name}: {self.told(self.best[arm.name])}" for arm in self.tuned.arms)
        if not self.lever:
            return f"leave it: no lever gains ({brings})"
        levers = next(one.levers for one in self.tuned.arms if one.name == self.lever)
        are = "is the lever" if len(levers) == 1 else "are levers together"
        return f"the {' and the '.join(levers)} {are}: {self.change(self.best[self.lever])} ({brings})"

    def change(self, point: Point) -> str:
        """What a point changes, and its predicted time."""
        text = self.tuned.levers.template.text(point.values)
        parts = [text] if text != UNCHANGED else []
        parts += [point.order] if point.order != LAUNCH_ORDER.name else []
        before, after = (microseconds(one.score.time_us) for one in (self.tuned.base, point))
        return f"{', '.join(parts) or UNCHANGED}; predicted {before} to {after} µs"

    @property
    def to_write(self) -> list[Point]:
        """The chosen point, then the best of those whose order the source keeps."""
        gaining = self.tuned.ranked([one for one in self._points() if self.gain(one) > ALIKE])
        kept = next((one for one in gaining if one.order == LAUNCH_ORDER.name), None)
        return [self.chosen, *([kept] if kept and kept is not self.chosen else [])]

    @cached_property
    def three(self) -> list[Point]:
        """The best points of the three best configurations, that of the answer first."""
        found: dict[tuple[int, ...], Point] = {}
        for point in [self.chosen, *self.tuned.ranked(self._points())]:
            found.setdefault(self.tuned.levers.template.key(point.values), point)
        return list(found.values())[:BEST]

    def _points(self) -> list[Point]:
        return [self.tuned.base, *(point for arm in self.tuned.arms for point in arm.points)]

    @cached_property
    def front(self) -> list[Point]:
        """Points that no other beats in time and LDS: what more LDS takes away, workgroups or the pipeline."""
        found: list[Point] = []
        for point in sorted(self._points(), key=lambda one: (one.resources["lds_bytes"], self.tuned.cost(one))):
            if not found or self.tuned.cost(point) < self.tuned.cost(found[-1]) - ALIKE / 4:
                found.append(point)
        return found[-MOST_ON_FRONT:]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        tuned, template = self.tuned, self.tuned.levers.template
        return {
            "lever": self.lever or None,
            "answer": self.what,
            "why": [one.words for one in tuned.findings],
            "base": tuned.base.as_dict(),
            "levers": {arm.name: self._arm(arm) for arm in tuned.arms},
            "best": self._listed(self.three),
            "front": self._listed(self.front),
            "compiles": template.compiled,
            "pruned": dict(template.pruned),
            "pruned_for_example": dict(template.why),
            "refused": dict(tuned.levers.refused),
        }

    def _listed(self, points: Iterable[Point]) -> list[dict[str, Any]]:
        return [{"changes": self.tuned.levers.template.text(one.values), **one.as_dict()} for one in points]

    def _arm(self, arm: Arm) -> dict[str, Any]:
        best = self.best[arm.name]
        gain = self.gain(best)
        gained = gain if self.tuned.levers.objective.largest else math.expm1(-gain)
        about = {"levers": list(arm.levers), "evaluations": arm.evaluations, "screened": arm.screened}
        about |= {"estimated": arm.estimated}
        return {**about, "change_pct": 100 * gained, "best": self._listed([best])[0]}
