"""The corpus judged: the verdict without any hint, then whether the true domain is proved.

python -m swizzle_benchmarks.evidence.remaps        # the table, and the time to each verdict
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from swizzle_sim.language.verdict import EVERY_GRID, PROVED, REFUTED
from swizzle_sim.testing import as_candidate, try_points
from swizzle_sim.testing.settle import settle
from swizzle_sim.testing.trials import Outcome, points_of

from .corpus import EVERY, PUBLIC, WRONG, Remap
from .printed import PRINTED

REMAPS = (*PUBLIC, *WRONG, *PRINTED)


@dataclass(frozen=True)
class Judged:
    """One remap with its verdicts."""

    remap: Remap
    outcome: Outcome  # with no hint
    within: Outcome | None  # where it is right, of a remap that is wrong elsewhere
    seconds: float  # processor time to the verdict with no hint

    @property
    def as_it_should(self) -> bool:
        """Whether what is right everywhere is proved, and what is not is refuted."""
        if self.remap.right == EVERY:
            return (self.outcome.status, self.outcome.domain) == (PROVED, EVERY_GRID)
        return self.outcome.status == REFUTED

    @property
    def domain_proved(self) -> bool:
        """Whether its true domain is proved, where it has one."""
        return self.within is None or self.within.status == PROVED


def judge(remap: Remap) -> Judged:
    """Take the verdicts of one remap."""
    begin = time.process_time()
    candidate, options = as_candidate(remap.text, remap.sizes)
    outcome = settle(candidate, try_points(candidate, points_of(candidate, options)), options)
    seconds = time.process_time() - begin
    within = None
    if remap.right not in ("", EVERY):
        tried = try_points(candidate, points_of(candidate, options, where=remap.right))
        within = settle(candidate, tried, options, remap.right)
    return Judged(remap, outcome, within, seconds)
