"""`SearchPlan`: the settings of a search of templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.templates import Template
from xcd_model.errors import SearchError

EVALUATIONS = 400  # full replays of a search by default


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Settings of a search.

    Parameters
    ----------
    templates : tuple of Template
        Empty for those of the families.
    objectives : tuple of Objective
        One, or two for a Pareto front; empty for the default of the GPU and the replay.
    sampler : str
        One of `swizzle_sim.search.samplers.SAMPLERS`.
    evaluations : int
        Full replays, at least 1; at several sizes a candidate counts once.
    """

    templates: tuple[Template, ...] = ()
    objectives: tuple[Objective, ...] = ()
    sampler: str = "auto"
    evaluations: int = EVALUATIONS

    def __post_init__(self):
        if self.evaluations < 1:
            raise SearchError(f"evaluations = {self.evaluations}: at least 1", code="space")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "templates": [one.text for one in self.templates],
            "objectives": [one.name for one in self.objectives],
            "sampler": self.sampler,
            "evaluations": self.evaluations,
        }
