"""Polynomials of several variables with integer coefficients: the terms in which a proof is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

MOST_TERMS, MOST_DEGREE = 4000, 16
Monomial = tuple[str, ...]  # names in order, one for each power; () is the constant


class TooLarge(Exception):
    """A product has more terms, or a higher degree, than a proof is looked for with."""


class Poly:
    """A polynomial; immutable, and equal by value."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]):
        self.terms = {key: value for key, value in terms.items() if value}
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __add__(self, other: Poly | int) -> Poly:
        terms = dict(self.terms)
        for key, value in poly(other).terms.items():
            terms[key] = terms.get(key, 0) + value
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({key: -value for key, value in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -poly(other)

    def __mul__(self, other: Poly | int) -> Poly:
        return _product(self, poly(other))

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return " + ".join(f"{value}{'*' if key else ''}{'*'.join(key)}" for key, value in self.terms.items()) or "0"

    @property
    def constant(self) -> int | None:
        """Its value where it has no variable, None otherwise."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    @property
    def names(self) -> set[str]:
        """Its variables."""
        return {name for key in self.terms for name in key}

    def solved(self, allowed: Iterable[str]) -> tuple[str, Poly] | None:
        """A variable and what it equals where the polynomial is 0: the first of ``allowed`` that stands alone."""
        for name in allowed:
            coefficient = self.terms.get((name,), 0)
            if abs(coefficient) == 1 and sum(name in key for key in self.terms) == 1:
                rest = Poly({key: value for key, value in self.terms.items() if key != (name,)})
                return name, rest * -coefficient
        return None

    def with_value(self, name: str, value: Poly) -> Poly:
        """Put a polynomial in the place of a variable."""
        if not any(name in key for key in self.terms):
            return self
        found = Poly({key: value for key, value in self.terms.items() if name not in key})
        for key, coefficient in self.terms.items():
            if name in key:
                part = Poly({tuple(one for one in key if one != name): coefficient})
                for _ in range(key.count(name)):
                    part = part * value
                found = found + part
        return found

    def folded(self, names: tuple[str, ...], product: str) -> Poly:
        """Put a variable in the place of a product."""
        terms: dict[Monomial, int] = {}
        for key, value in self.terms.items():
            times = min(map(key.count, names))
            left = list(key)
            for name in names * times:
                left.remove(name)
            whole = tuple(sorted([*left, *[product] * times]))
            terms[whole] = terms.get(whole, 0) + value
        return Poly(terms)

    def renamed(self, names: Mapping[str, str]) -> Poly:
        """Give variables other names."""
        return Poly({tuple(sorted(names.get(one, one) for one in key)): value for key, value in self.terms.items()})


def poly(value: Poly | int) -> Poly:
    """An integer as a polynomial."""
    return value if isinstance(value, Poly) else Poly({(): value})


def variable(name: str) -> Poly:
    """The polynomial of one variable."""
    return Poly({(name,): 1})


@lru_cache(maxsize=100_000)
def _product(left: Poly, right: Poly) -> Poly:
    if len(left.terms) * len(right.terms) > MOST_TERMS:
        raise TooLarge(f"a product of more than {MOST_TERMS} terms")
    if sum(max(map(len, one.terms), default=0) for one in (left, right)) > MOST_DEGREE:
        raise TooLarge(f"a product of degree above {MOST_DEGREE}")
    terms: dict[Monomial, int] = {}
    for a, x in left.terms.items():
        for b, y in right.terms.items():
            key = tuple(sorted(a + b)) if a and b else a or b
            terms[key] = terms.get(key, 0) + x * y
    return Poly(terms)
