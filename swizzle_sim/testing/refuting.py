"""Launches that can refute: past every period that a text has, with ragged remainders, along both axes.

A formula with a group of 32 rows is wrong first at 33; one with chunks of 32 on 8 XCDs behind tile 256. So the sides
come from the literals of the text and their products, each a little less, the same, and a little more, beside sides
that are awkward for any formula. Small launches are tried with every count of XCDs, large ones with a few.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import prod
from typing import TYPE_CHECKING

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Binary, Form, Name, literals, nodes
from swizzle_sim.testing.expression import read_expression

if TYPE_CHECKING:
    from swizzle_sim.testing.directive import Options

XCDS = (*range(1, 17), 32)
LARGEST = 2**20  # workgroups of a launch
_EVERY = (*range(1, 65),)  # counts that a few small launches are tried with: a text may compare with any
_USUAL = (1, 2, 4, 8)  # counts of XCDs that each launch of middling size is tried with
_SIDES = (1, 2, 3, 5, 7, 8, 12, 13, 16, 17, 24, 28, 31, 33, 37, 48, 61, 64, 65, 96, 127, 129, 257)
_SMALL, _MIDDLING = 72, 1200  # workgroups: up to these with all, with several counts of XCDs; above with two
_MOST_PERIODS = 24
_MOST_BITS = 10  # of a literal that may be the length of a shift
_CORNERS = 6  # of the periods: both sides at one, where conditions such as m <= 64 and n <= 8 end
_MOST_PLANES = 220  # of two sides, beside the small ones
_OF_A_LAUNCH = 350  # workgroups that take as long as what a launch costs by itself
_ANY_BLOCK = 16
Launch = tuple[Grid, int, dict[str, int]]
Sides = tuple[tuple[str, str], tuple[str, str]]  # size and block of each side


def periods(form: Form, sizes: tuple[int, ...] = ()) -> list[int]:
    """Literals of a text and products of two and three, smallest first: where its behaviour can repeat."""
    written = literals(form.body)
    if any(isinstance(node, Binary) and node.op in ("<<", ">>") for node in nodes(form.body)):
        written += [1 << value for value in written if 1 <= value <= _MOST_BITS]
    single = sorted({value for value in (*written, *sizes) if 2 <= value <= LARGEST})
    if sizes and form.reads_num_xcds:
        single = sorted({*single, 8})
    found = set(single) | {value + 1 for value in single if value & (value + 1) == 0}
    base = sorted(found)[:8]
    for count in (2, 3):
        for chosen in combinations_with_replacement(base, count):
            total = prod(chosen)
            if total <= LARGEST // 4:
                found.add(total)
    kept = sorted(found)
    # the literals themselves and the smallest products: a text with many literals has more than can be tried
    return sorted({*single[:_MOST_PERIODS], *kept[:_MOST_PERIODS]})


def lines(form: Form, sizes: tuple[int, ...] = ()) -> list[int]:
    """Lengths of launches of one axis."""
    found = {*range(1, 73), 96, 97, 100, 120, 127, 128, 129, 192, 216, 255, 256, 257, 288, 304, 500, 512, 513, 1000}
    for period in periods(form, sizes):
        for times, off in product((1, 2, 3), (-1, 0, 1, 5)):
            found.add(times * period + off)
    found |= {1024, 2049, 4097, 10007, 65537, 2**20 - 3, 2**20}
    return sorted(value for value in found if 1 <= value <= LARGEST)


def planes(form: Form, sizes: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Sides of launches of two axes: small ones all, then those past each period, one side short or long."""
    small = {(a, b) for a in range(1, 11) for b in range(1, 11)}
    near = {
        side
        for period in periods(form, sizes)
        if period <= 2048
        for side in (period - 1, period, period + 1, 2 * period + 1)
    }
    sides = sorted({*_SIDES, *near} - {0})
    drawn = [(a, b) for a in near for b in (1, 2, 3, 5, 8)]
    for period in periods(form, sizes):
        for a in (2, 3, 5, 7, 8, 12, 17, 33):
            drawn += [(a, period // a + more) for more in (0, 1, 2)]
            drawn += [(a, 2 * period // a + 1)]
    draw = random.Random(0)
    drawn += [(draw.choice(sides), draw.choice(sides)) for _ in range(_MOST_PLANES)]
    draw.shuffle(drawn)
    both = [pair for a, b in drawn for pair in ((a, b), (b, a)) if min(a, b) >= 1 and a * b <= LARGEST]
    usual = [(a, b) for a, b in product(_SIDES, repeat=2) if a * b <= 600]
    few = [value for value in periods(form, sizes) if value <= 512][:_CORNERS]
    corners = [(a, b) for a, b in product(few, repeat=2) if a * b <= _MIDDLING]
    chosen = {*small, *usual[::3], *corners, *both[:_MOST_PLANES], (1024, 1024), (1023, 1021)}
    return sorted(chosen, key=lambda one: one[0] * one[1])


def boxes(form: Form, sizes: tuple[int, ...] = ()) -> list[tuple[int, int, int]]:
    """Sides of launches of three axes."""
    low = range(1, 5)
    found = {(a, b, c) for a in low for b in low for c in low}
    found |= {(2, 3, 5), (5, 3, 2), (8, 2, 2), (2, 8, 2), (2, 2, 8), (8, 8, 8), (7, 5, 3)}
    near = {side for period in periods(form, sizes) if period <= 512 for side in (period - 1, period, period + 1)}
    sides = sorted({*_SIDES[:16], *near} - {0})
    draw = random.Random(0)
    found |= {(draw.choice(sides), draw.choice(sides), draw.choice(sides)) for _ in range(120)}
    found |= {(side, a, b) for side in near - {0} for a, b in ((1, 1), (3, 2))}
    found |= {(rest, side, 2) for side in near - {0} for rest in (1, 3)}
    return sorted((one for one in found if one[0] * one[1] * one[2] <= 2**17), key=lambda one: one[0] * one[1] * one[2])


def grids(form: Form, kind: str, sizes: tuple[int, ...] = ()) -> list[Grid]:
    """Launch grids of a kind, smallest first, past every period of a text with these values of its sizes."""
    if kind == "line":
        return [Grid((n,)) for n in lines(form, sizes)]
    if kind == "box":
        return [Grid(sides) for sides in boxes(form, sizes)]
    if kind == "tiles":
        return [Grid((m * n,), (m, n)) for m, n in planes(form, sizes)]
    return [Grid(sides) for sides in planes(form, sizes)]


def with_xcds(found: Iterable[Grid], counts: tuple[int, ...] = XCDS) -> Iterator[tuple[Grid, int]]:
    """Launches with their XCD counts: all of a small grid, fewer the larger it is, every count in turn."""
    for k, grid in enumerate(found):
        if grid.num_pids <= _SMALL or len(counts) <= 2:
            chosen = set(_EVERY if counts == XCDS and k % 11 == 10 else counts)
        else:
            usual = {count for count in _USUAL if count in counts} if grid.num_pids <= _MIDDLING else {counts[-1]}
            usual |= {8} & set(counts)
            chosen = usual | {counts[k % len(counts)]}
        yield from ((grid, count) for count in sorted(chosen))


def launches_of_choices(
    form: Form,
    kind: str,
    choices: Sequence[Mapping[str, int]],
    counts: tuple[int, ...],
    most: int,
    holds: Callable[[Grid, int], bool],
) -> Iterator[Launch]:
    """Yield launches with their XCD count and sizes: every choice of values for the sizes gets a share of the work.

    Seven chunks and seven groups are 49 choices. Each is tried past its own period, on launches drawn evenly from those
    that can refute, so that all choices together cost what a candidate without sizes does.
    """
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
