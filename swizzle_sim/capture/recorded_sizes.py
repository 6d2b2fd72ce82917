"""What a recorded launch would be at other sizes: sides, strides and grid as expressions of its integer arguments.

A recording has numbers. A side that equals the argument ``M`` is taken for M, arguments that are equal are scaled
together, a side of the grid may be a quotient of the source. At the recorded sizes all is as recorded; at others this
is a guess, which the bounds checks of a capture test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Sizes = Mapping[str, int]
Expression = Callable[[Sizes], int]
PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


@dataclass(frozen=True)
class Layout:
    """Sides and strides of a tensor as expressions.

    Parameters
    ----------
    sides, strides : tuple of callable
        Each ``expression(sizes) -> int``.
    """

    sides: tuple[Expression, ...]
    strides: tuple[Expression, ...]


class RecordedSizes:
    """Sizes of a recorded launch, and what depends on them.

    Parameters
    ----------
    scalars : mapping of str to int
        Integer arguments.
    tensors : mapping of str to (shape, strides)
    fixed : set of str
        Tensors whose values are recorded, so their shape stays.
    grid : sequence of int
    quotients : sequence of callable
        ``quotient(values) -> int or None``, counts of tiles in the kernel's source, of arguments by name.
    """

    def __init__(
        self,
        scalars: Sizes,
        tensors: Mapping[str, tuple[Sequence[int], Sequence[int]]],
        fixed: set[str],
        grid: Sequence[int],
        quotients: Sequence[Callable[[Mapping[str, int]], int | None]] = (),
    ):
        self.defaults: dict[str, int] = {}
        self._scalars, self._quotients = scalars, quotients
        for name, value in scalars.items():
            if value >= 2 and "stride" not in name.lower() and value not in self.defaults.values():
                self.defaults[name] = value
        explained = [any(q(scalars) == side for q in quotients) for side in grid]
        for axis, (side, known) in enumerate(zip(grid, explained, strict=True)):
            is_side = any(side in shape for name, (shape, _) in tensors.items() if name not in fixed)
            if side >= 2 and is_side and not known and side not in self.defaults.values():
                self.defaults[f"programs_{'xyz'[axis]}"] = side
        self.layouts = {name: self._layout(shape, strides, name in fixed) for name, (shape, strides) in tensors.items()}
        self.scalars = {name: self._scalar(name, value) for name, value in scalars.items()}
        self.grid = tuple(self._side_of_grid(side) for side in grid)

    def values(self, sizes: Sizes) -> dict[str, int]:
        """Integer arguments at given sizes."""
        return {name: expression(sizes) for name, expression in self.scalars.items()}

    def _named(self, value: int) -> Expression | None:
        """Size or product of two with a value."""
        for name, size in self.defaults.items():
            if size == value:
                return lambda s, name=name: s[name]  # type: ignore[misc]
        for one, other in combinations(self.defaults, 2):
            if self.defaults[one] * self.defaults[other] == value:
                return lambda s, one=one, other=other: s[one] * s[other]  # type: ignore[misc]
        return None

    def _layout(self, shape: Sequence[int], strides: Sequence[int], is_fixed: bool) -> Layout:
        sides = [None if is_fixed else self._named(side) for side in shape]
        whole = [found or _literal(side) for found, side in zip(sides, shape, strict=True)]
        steps: list[Expression] = [_literal(stride) for stride in strides]
        before: tuple[int, Expression] = (1, _literal(1))  # length of the axes inside, as recorded and at other sizes
        for axis in sorted(range(len(shape)), key=lambda k: (strides[k], shape[k])):
            if strides[axis] and shape[axis] > 1:
                length, inside = before
                if strides[axis] % length == 0:
                    steps[axis] = _times(_literal(strides[axis] // length), inside)
                before = (strides[axis] * shape[axis], _times(steps[axis], whole[axis]))
        return Layout(tuple(whole), tuple(steps))

    def _scalar(self, name: str, value: int) -> Expression:
        """Integer argument: a size, or a stride or length of a tensor."""
        if "stride" not in name.lower() and value in self.defaults.values():
            found = self._named(value)
            assert found is not None
            return found
        if value < 2:
            return _literal(value)
        strides = [one for layout in self.layouts.values() for one in layout.strides]
        lengths = [
            _product(layout.sides[axis:]) for layout in self.layouts.values() for axis in range(len(layout.sides))
        ]
        return self._only(value, [strides, lengths]) or _literal(value)

    def _side_of_grid(self, side: int) -> Expression:
        if side < 2:
            return _literal(side)
        counts: list[Expression] = [lambda s, q=q: q({**s, **self.values(s)}) or 0 for q in self._quotients]  # type: ignore[misc]
        names = [_size(name) for name in self.defaults]
        pairs = [_times(one, other) for one, other in combinations(counts, 2)]
        triples = [_times(_times(one, other), name) for one, other in combinations(counts, 2) for name in names]
        mixed = [_times(one, name) for one in counts for name in names]
        sides = [
            _times(one, other)
            for layout in self.layouts.values()
            for one, other in combinations(layout.sides, 2)
        ]  # fmt: skip
        return self._only(side, [counts, pairs, names, mixed, sides, triples]) or _literal(side)

    def _only(self, value: int, groups: Sequence[Sequence[Expression]]) -> Expression | None:
        """The first expression of the first group that has a value; None where that group has several that differ."""
        scaled = {name: size * prime for (name, size), prime in zip(self.defaults.items(), PRIMES * 4, strict=False)}
        for group in groups:
            fitting = [one for one in group if one(self.defaults) == value]
            if fitting:
                return fitting[0] if len({one(scaled) for one in fitting}) == 1 else None
        return None


def _literal(value: int) -> Expression:
    return lambda s: value


def _size(name: str) -> Expression:
    return lambda s: s[name]


def _times(one: Expression, other: Expression) -> Expression:
    return lambda s: one(s) * other(s)


def _product(factors: Sequence[Expression]) -> Expression:
    def product(s: Sizes) -> int:
        found = 1
        for factor in factors:
            found *= factor(s)
        return found

    return product
