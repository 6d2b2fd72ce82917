"""How candidates are ranked: objectives, what hardware says of each, and ties."""

from swizzle_sim.search.ranking.evidence import READS_LESS, Evidence, evidence_of, times_note, times_rank
from swizzle_sim.search.ranking.objectives import (
    OBJECTIVES,
    BestSoFar,
    Objective,
    chosen_objectives,
    default_objectives,
    pareto_front,
    read_objectives,
)
from swizzle_sim.search.ranking.ranking import Ranking, ranking_of

__all__ = [
    "OBJECTIVES",
    "READS_LESS",
    "BestSoFar",
    "Evidence",
    "Objective",
    "Ranking",
    "chosen_objectives",
    "default_objectives",
    "evidence_of",
    "pareto_front",
    "ranking_of",
    "read_objectives",
    "times_note",
    "times_rank",
]
