"""What of a score hangs on constants that nobody has published: ranges, draws, and the spread they give."""

from swizzle_sim.uncertainty.apart import Apart, Finalist, tell_apart
from swizzle_sim.uncertainty.constants import Constant, constants_of, held_facts
from swizzle_sim.uncertainty.study import Uncertainty, uncertainty

__all__ = [
    "Apart",
    "Constant",
    "Finalist",
    "Uncertainty",
    "constants_of",
    "held_facts",
    "tell_apart",
    "uncertainty",
]
