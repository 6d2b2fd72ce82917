"""Sensitivity of a score to unpublished hardware constants: their ranges, draws of them, and the spread of a score."""

from swizzle_sim.uncertainty.constants import Constant, constants_of, held_facts
from swizzle_sim.uncertainty.rank_stability import FINALISTS, Finalist, compare_finalists
from swizzle_sim.uncertainty.study import Span, Uncertainty, uncertainty

__all__ = [
    "FINALISTS",
    "Constant",
    "Finalist",
    "Span",
    "Uncertainty",
    "compare_finalists",
    "constants_of",
    "held_facts",
    "uncertainty",
]
