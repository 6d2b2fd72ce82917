"""Launches of a candidate whose sizes have several values each: every choice gets a share of the work.

Seven chunks and seven groups are 49 choices. Each is tried past its own period, on launches drawn evenly from those
that can refute, so that all choices together cost what a candidate without sizes does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Binary, Form, Name
from swizzle_sim.testing.expression import read_expression
from swizzle_sim.testing.refuting import grids, with_xcds

if TYPE_CHECKING:
    from swizzle_sim.testing.directive import Options

_OF_A_LAUNCH = 350  # workgroups that take as long as what a launch costs by itself
_SMALL = 72  # workgroups: half of a share is for launches up to this
_ANY_BLOCK = 16
Launch = tuple[Grid, int, dict[str, int]]
Sides = tuple[tuple[str, str], tuple[str, str]]  # size and block of each side


def launches_of_choices(
    form: Form,
    kind: str,
    choices: Sequence[Mapping[str, int]],
    counts: tuple[int, ...],
    most: int,
    holds: Callable[[Grid, int], bool],
) -> Iterator[Launch]:
    """Yield launches with their XCD count and sizes."""
    share = most // len(choices)
    for k, choice in enumerate(choices):
        found = [one for one in with_xcds(grids(form, kind, tuple(choice.values())), counts) if holds(*one)]
        small = [one for one in found if one[0].num_pids <= _SMALL]
        large = [one for one in found if _SMALL < one[0].num_pids <= share // 4]
        for part in (small, large):
            yield from ((grid, count, dict(choice)) for grid, count in _thinned(part, share // 2, k))


def _thinned(found: list[tuple[Grid, int]], most: int, first: int) -> list[tuple[Grid, int]]:
    """Every so many-th of the launches, beginning elsewhere for each choice, so that their cost stays below a bound."""
    cost = sum(grid.num_pids + _OF_A_LAUNCH for grid, _ in found)
    step = -(-cost // most) if most else len(found)
    return found[first % step :: step] if step > 1 else found


def sizes_of_quotients(launch: str, options: Options) -> Sides | None:
    """Size and block of each side of a launch ``cdiv(M, BM) * cdiv(N, BN)`` in which nothing fixes M or N."""
    product = read_expression(launch)
    if not (isinstance(product, Binary) and product.op == "*"):
        return None
    found = []
    for side in (product.left, product.right):
        match side:
            case Binary("cdiv", Name(size), Name(block)) if size not in options.sizes and size != block:
                found.append((size, block))
    return (found[0], found[1]) if len(found) == 2 and len({name for pair in found for name in pair}) == 4 else None


def sized(launch: Launch, sides: Sides, names: Sequence[str]) -> Launch:
    """A launch of tiles with sizes that give it: whole tiles, and every second time one element less."""
    grid, count, choice = launch
    values = dict(choice)
    for (size, block), tiles in zip(sides, grid.shape or (1, 1), strict=True):
        width = values.setdefault(block, _ANY_BLOCK)
        values[size] = tiles * width - (tiles % 2 if width > 1 else 0)
    return grid, count, {name: value for name, value in values.items() if name in names}
