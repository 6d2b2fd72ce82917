"""Hypothesis strategies for grids, GPUs and swizzles; all shrink towards the smallest and plainest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from swizzle_sim.testing.extra import need_hypothesis

need_hypothesis("swizzle_sim.testing's strategies")

from hypothesis import strategies as st  # noqa: E402 - after the check that says how to install it

from swizzle_sim.swizzle.families import FAMILIES, family  # noqa: E402
from swizzle_sim.swizzle.families.family import Family  # noqa: E402
from swizzle_sim.swizzle.grid import Grid  # noqa: E402
from swizzle_sim.swizzle.swizzle import Swizzle  # noqa: E402
from xcd_model import Gpu, gpu, gpu_names  # noqa: E402
from xcd_model.errors import OptionError  # noqa: E402

KINDS = ("line", "tiles", "plane", "box")
_AXES = {"line": 1, "tiles": 2, "plane": 2, "box": 3}
_SMALL = 20  # longest side of a third of the grids drawn
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


def grids(*kinds: str, max_workgroups: int = 4096) -> st.SearchStrategy[Grid]:
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
    given = []
    for name, rule in one.parameters.items():
        top = min(rule.high, max(rule.low, _LARGEST_PARAMETER))
        given.append(f"{name}={draw(st.integers(rule.low, top))}")
    return f"{one.name}({', '.join(given)})" if given else one.name


def swizzles(kind: str = "line", *, always: bool = True) -> st.SearchStrategy[Swizzle]:
    """Strategy for swizzles: published families, their parameters drawn, and compositions of them.

    Parameters
    ----------
    kind : {"line", "tiles", "plane", "box"}
        Grids that they have to run on: ``line`` takes placements alone, ``tiles`` and ``plane`` orders of tiles too,
        ``box`` orders of boxes.
    always : bool
        Only those that are bijections on every grid of the kind. Otherwise those with a condition too, which
        `swizzle_sim.swizzle.holds` decides for a grid by the swizzle's ``name``.

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
    return _swizzles(placements, tuple(_of_axes(fitting, axes)))


def _of_axes(families: Iterable[Family], axes: tuple[int, ...]) -> list[Family]:
    return [one for one in families if one.axes in axes]
