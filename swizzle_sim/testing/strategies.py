"""Hypothesis strategies for grids, GPUs and swizzles, and a candidate tried on launches that hypothesis draws.

All shrink towards the smallest and plainest.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import Any

from swizzle_sim.base.release import install_hint
from xcd_model.errors import MissingExtra

if importlib.util.find_spec("hypothesis") is None:
    raise MissingExtra(
        "swizzle_sim.testing's strategies need hypothesis, which is not installed: "
        f"{install_hint('testing')}; assert_bijective without strategies works without it"
    )

from hypothesis import HealthCheck, Verbosity, assume, given, settings
from hypothesis import strategies as st

from swizzle_sim.language.families import FAMILIES, Family, family
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import EVERY_GRID_TRIED, REFUTED, UNNAMED
from swizzle_sim.testing.candidate import Candidate
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.grids_to_try import (
    Point,
    Where,
    as_grid,
    condition,
    each_size,
    kind_of,
    need_launch,
    xcd_counts,
    xcds_of,
)
from swizzle_sim.testing.trials import Outcome
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.errors import OptionError

KINDS = ("line", "tiles", "plane", "box")
_AXES = {"line": 1, "tiles": 2, "plane": 2, "box": 3}
_SMALL = 20  # longest side of a third of the grids drawn
_MOST_WORKGROUPS = 4096  # of a grid, by default
_LARGEST_PARAMETER = 16  # of a family, where it allows more: a group larger than the grid is one group


@st.composite
def _grids(draw: st.DrawFn, kinds: tuple[str, ...], max_workgroups: int) -> Grid:
    kind = draw(st.sampled_from(kinds))
    longest = draw(st.sampled_from((_SMALL, 4 * _SMALL, max_workgroups)))
    sides: list[int] = []
    left = max_workgroups
    for _ in range(_AXES[kind]):
        # cut to what is left, not drawn from it: bounds that depend on earlier draws do not shrink
        sides.append(min(draw(st.integers(1, longest)), left))
        left //= sides[-1]
    if kind == "tiles":
        return Grid((sides[0] * sides[1],), (sides[0], sides[1]))
    return Grid(tuple(sides))


def grids(*kinds: str, max_workgroups: int = _MOST_WORKGROUPS) -> st.SearchStrategy[Grid]:
    """Strategy for launch grids.

    Parameters
    ----------
    *kinds : {"line", "tiles", "plane", "box"}
        One axis; one axis decoded into tiles row by row; two axes; three. All of them by default.
    max_workgroups : int
        Most workgroups of a grid.

    Returns
    -------
    SearchStrategy of Grid
        Sides up to 20, up to 80 and up to ``max_workgroups`` are drawn equally often. Shrinks to one workgroup, and to
        the first kind named.

    Raises
    ------
    OptionError
        If a kind is none of these, or ``max_workgroups`` is below 1.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError(f"grids: {kind!r} is no kind of grid; there is {', '.join(KINDS)}")
    if max_workgroups < 1:
        raise OptionError(f"grids: max_workgroups = {max_workgroups}: at least 1")
    return _grids(kinds or KINDS, max_workgroups)


@st.composite
def _gpus(draw: st.DrawFn, shipped: tuple[Gpu, ...], vary: bool) -> Gpu:
    found = draw(st.sampled_from(shipped))
    if not vary or not draw(st.booleans()):
        return found
    xcds, cus = draw(st.integers(1, 16)), draw(st.integers(1, 64))
    ways = found.l2.ways - draw(st.integers(0, found.l2.ways - 1))
    l2 = dataclasses.replace(found.l2, ways=ways, size_bytes=found.l2.size_bytes // found.l2.ways * ways)
    offset = draw(st.integers(0, xcds - 1))
    name = f"{found.name}-varied"
    return dataclasses.replace(found, name=name, xcds=xcds, cus_per_xcd=cus, dispatch_offset=offset, l2=l2, facts={})


def gpus(*names: str, vary: bool = True) -> st.SearchStrategy[Gpu]:
    """Strategy for GPUs.

    Parameters
    ----------
    *names : str
        Shipped GPUs to draw from, such as ``"mi300x"``; all of them by default, the MI300X first.
    vary : bool
        Whether to draw GPUs that do not exist too: other numbers of XCDs (1 to 16) and CUs (1 to 64), another dispatch
        offset, an L2 with fewer ways. These carry no facts.

    Returns
    -------
    SearchStrategy of Gpu
        Shrinks to the first name, as shipped.

    Raises
    ------
    UnknownName
        If there is no such GPU.
    """
    chosen = names or tuple(sorted(gpu_names(), key=lambda name: (name != "mi300x", name)))
    return _gpus(tuple(gpu(name) for name in chosen), vary)


@st.composite
def _swizzles(draw: st.DrawFn, placements: tuple[Family, ...], orders: tuple[Family, ...]) -> Swizzle:
    chosen = draw(st.lists(st.sampled_from(placements), max_size=2))
    if draw(st.booleans()) and orders:
        chosen.append(draw(st.sampled_from(orders)))
    parts = [_spec(draw, one) for one in chosen]
    spec = "+".join(parts) or "identity"
    return Swizzle.parse(family(spec), name=spec, filename=f"<{spec}>")


def _spec(draw: st.DrawFn, one: Family) -> str:
    values = []
    for name, rule in one.parameters.items():
        top = min(rule.high, max(rule.low, _LARGEST_PARAMETER))
        values.append(f"{name}={draw(st.integers(rule.low, top))}")
    return f"{one.name}({', '.join(values)})" if values else one.name


def swizzles(kind: str = "line", *, always: bool = True) -> st.SearchStrategy[Swizzle]:
    """Strategy for swizzles: published families, their parameters drawn, and compositions of them.

    Parameters
    ----------
    kind : {"line", "tiles", "plane", "box"}
        Grids that they have to run on: ``line`` takes placements alone, ``tiles`` and ``plane`` orders of tiles too,
        ``box`` orders of boxes.
    always : bool
        Only those that are bijections on every grid of the kind. Otherwise those with a condition too, which
        `swizzle_sim.language.holds` decides for a grid by the swizzle's ``name``.

    Returns
    -------
    SearchStrategy of Swizzle
        Its ``name`` is its spec, such as ``contiguous+group_m(size=4)``. Shrinks to ``identity``.

    Raises
    ------
    OptionError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise OptionError(f"swizzles: {kind!r} is no kind of grid; there is {', '.join(KINDS)}")
    axes = {"line": (), "tiles": (2,), "plane": (2,), "box": (3,)}[kind]
    fitting = [one for one in FAMILIES.values() if not always or one.condition == "always"]
    placements = tuple(one for one in fitting if one.axes == 0)
    return _swizzles(placements, tuple(one for one in fitting if one.axes in axes))


class _Failed(Exception):
    """Tells hypothesis to shrink."""


def try_drawn(candidate: Candidate, options: Options, grids: Any, xcds: Any, where: Where) -> Outcome:
    """Let hypothesis draw launches and shrink the first that fails."""
    need_launch(candidate.form, options.sizes, "", candidate.name)
    kind, holds = kind_of(candidate.form), condition(where or options.where)
    of_grids, of_xcds = _of_kind(grids, kind), _xcds(candidate, xcds)
    failed: list[tuple[Point, Any]] = []
    tried, largest = 0, 0

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(of_grids, of_xcds, st.sampled_from(each_size(options)))
    def draw(drawn: Any, num_xcds: int, sizes: dict[str, int]) -> None:
        nonlocal tried, largest
        point = Point(as_grid(drawn, kind), num_xcds, sizes)
        assume(holds(point.grid, num_xcds))
        tried, largest = tried + 1, max(largest, point.grid.num_pids)
        found = candidate.counterexample(point.grid, num_xcds, point.sizes)
        if found:
            failed[:] = [min([*failed, (point, found)], key=lambda one: one[0].rank)]
            raise _Failed

    try:
        draw()
    except _Failed:
        return Outcome(candidate.name, tried, *failed[0], UNNAMED, largest, REFUTED)
    return Outcome(candidate.name, tried, None, None, EVERY_GRID_TRIED, largest)


def _of_kind(grids: Any, kind: str) -> st.SearchStrategy:
    if grids is None:
        return _grids((kind,), _MOST_WORKGROUPS)
    return grids if isinstance(grids, st.SearchStrategy) else st.sampled_from([as_grid(one, kind) for one in grids])


def _xcds(candidate: Candidate, xcds: Any) -> st.SearchStrategy:
    if isinstance(xcds, st.SearchStrategy):
        return xcds.map(xcds_of)
    return st.sampled_from(xcd_counts(candidate.form, xcds))
