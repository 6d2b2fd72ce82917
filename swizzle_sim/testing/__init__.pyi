from swizzle_sim.testing.bijective import BijectionError, assert_bijective
from swizzle_sim.testing.candidate import Candidate, as_candidate
from swizzle_sim.testing.grids_to_try import Point
from swizzle_sim.testing.hit_rate import HitRateError, assert_hit_rate
from swizzle_sim.testing.trials import Outcome, try_points
from swizzle_sim.triton_source.prologue import Prologue, read_prologue

__all__ = [
    "BijectionError",
    "Candidate",
    "HitRateError",
    "Outcome",
    "Point",
    "Prologue",
    "as_candidate",
    "assert_bijective",
    "assert_hit_rate",
    "read_prologue",
    "try_points",
]
