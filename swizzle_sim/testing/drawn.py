"""A candidate tried on launches that hypothesis draws and shrinks."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Verbosity, assume, given, settings
from hypothesis import strategies as st

from swizzle_sim.swizzle.verdict import EVERYWHERE, UNNAMED
from swizzle_sim.testing.candidate import Candidate
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.points import Point, Where, as_grid, condition, each_size, kind_of, need_launch, xcd_counts
from swizzle_sim.testing.strategies import grids as any_grids
from swizzle_sim.testing.trials import Outcome


class _Failed(Exception):
    """Tells hypothesis to shrink."""


def try_drawn(candidate: Candidate, options: Options, grids: Any, xcds: Any, where: Where) -> Outcome:
    """Let hypothesis draw launches and shrink the first that fails.

    Parameters
    ----------
    candidate : Candidate
    options : Options
    grids, xcds : SearchStrategy or iterable
        At least one is a strategy.
    where : str or callable or None

    Returns
    -------
    Outcome
        With the smallest failing launch met while shrinking. The draws depend on nothing but the arguments, and no
        example database is written.
    """
    need_launch(candidate.form, options.sizes, "", candidate.name)
    kind, holds = kind_of(candidate.form), condition(where or options.where)
    of_grids, of_xcds = _strategy(grids, kind), _counts(candidate, xcds)
    failed: list[tuple[Point, Any]] = []
    tried = 0

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(of_grids, of_xcds, st.sampled_from(each_size(options)))
    def draw(drawn: Any, num_xcds: int, sizes: dict[str, int]) -> None:
        nonlocal tried
        point = Point(as_grid(drawn, kind), num_xcds, sizes)
        assume(holds(point.grid, num_xcds))
        tried += 1
        found = candidate.counterexample(point.grid, num_xcds, point.sizes)
        if found:
            failed[:] = [min([*failed, (point, found)], key=lambda one: one[0].rank)]
            raise _Failed

    try:
        draw()
    except _Failed:
        return Outcome(candidate.name, tried, *failed[0], UNNAMED)
    return Outcome(candidate.name, tried, None, None, EVERYWHERE)


def _strategy(grids: Any, kind: str) -> st.SearchStrategy:
    if isinstance(grids, st.SearchStrategy):
        return grids
    return any_grids(kind) if grids is None else st.sampled_from([as_grid(one, kind) for one in grids])


def _counts(candidate: Candidate, xcds: Any) -> st.SearchStrategy:
    return xcds if isinstance(xcds, st.SearchStrategy) else st.sampled_from(xcd_counts(candidate.form, xcds))
