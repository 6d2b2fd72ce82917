"""The check of a proof step: small, exact, and ignorant of how the step was found.

A step claims that no integers of at least 0 satisfy ``fact >= 0`` for every fact and ``equality == 0`` for every
equality. Its certificate is a combination, with coefficients of at least 0, of facts, products of two facts and facts
times monomials, plus any multiples of equalities, whose constant is at most -1 and whose other coefficients are at most
0. Its value is then below 0, as no variable is; and at least 0, as none of its parts is below.

Source: Handelman, Pacific Journal of Mathematics 132 (1988); Farkas' lemma where no products take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from swizzle_sim.proof.polynomial import Monomial, Poly, poly


@dataclass(frozen=True)
class Certificate:
    """Combination that cannot be at least 0."""

    # tuple of (Fraction, int, int, Monomial): coefficient, the two facts that are multiplied (the second is -1 for a
    # fact alone), and the monomial
    facts: tuple[tuple[Fraction, int, int, Monomial], ...]
    # tuple of (Fraction, int, Monomial): coefficient of either sign, the equality, and the monomial that it is
    # multiplied by
    equalities: tuple[tuple[Fraction, int, Monomial], ...]


def refutes(certificate: Certificate, facts: Sequence[Poly], equalities: Sequence[Poly]) -> bool:
    """Whether a certificate shows that facts and equalities contradict each other."""
    total: dict[Monomial, Fraction] = {}

    def add(coefficient: Fraction, term: Poly) -> None:
        for key, value in term.terms.items():
            total[key] = total.get(key, Fraction(0)) + coefficient * value

    for coefficient, first, second, monomial in certificate.facts:
        if coefficient < 0 or first < 0:
            return False
        add(coefficient, facts[first] * (facts[second] if second >= 0 else poly(1)) * Poly({monomial: 1}))
    for coefficient, index, monomial in certificate.equalities:
        add(coefficient, equalities[index] * Poly({monomial: 1}))
    return total.pop((), Fraction(0)) <= -1 and all(value <= 0 for value in total.values())
