"""Writes a proof as a certificate: a document of plain numbers and names that `checker` accepts by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swizzle_sim.language.ir import AXES
from swizzle_sim.proof.execute import LIMIT
from swizzle_sim.proof.farkas import Certificate
from swizzle_sim.proof.launches import ROOT
from swizzle_sim.proof.polynomial import Poly

FORMAT = "swizzle-sim certificate 1"
Steps = Sequence[tuple]


@dataclass(frozen=True)
class Shown:
    """One piece of a text that is shown to be a bijection, and how."""

    factor: int  # no value exceeds this times the limit
    paths: tuple[Steps, ...]
    pairs: tuple[tuple[int, int, Steps], ...]  # of two paths, that equal results are those of one workgroup
    by_number: bool  # whether it knows the launch by its number of workgroups alone
    linear: bool  # whether the workgroup is one variable
    end: int = 0  # first statement of the text behind it
    result: str = ""  # name that is carried on from there; empty for the tile
    kept: tuple[int, ...] = ()  # statements before it that it needs


def document(given: Mapping[str, Any], pieces: Sequence[Shown]) -> dict[str, Any]:
    """Certificate of a text and its launches."""
    write = _Writer()
    written = [
        {
            "end": one.end,
            "result": one.result,
            "kept": list(one.kept),
            "by_number": one.by_number,
            "linear": one.linear,
            "paths": [[write.step(*step) for step in steps] for steps in one.paths],
            "pairs": [[i, j, [write.step(*step) for step in steps]] for i, j, steps in one.pairs],
        }
        for one in pieces
    ]
    table = {"polynomials": list(map(list, write.polys)), "definitions": write.definitions, "pieces": written}
    return {"format": FORMAT, **given, **table}


class _Writer:
    """Polynomials by their place in a table, variables by short names."""

    def __init__(self) -> None:
        self.polys: dict[tuple, int] = {}
        self.definitions: list[list[int]] = []
        self.names = {LIMIT: "limit", ROOT: "id"} | {f"{ROOT}_{axis}": f"id_{k}" for k, axis in enumerate(AXES)}

    def step(self, kind: str, *given: Any) -> list[Any]:
        """One step."""
        if kind in ("let", "named"):  # of a quotient and a remainder, of a divisor
            letters = "qr" if kind == "let" else "d"
            names, operands = given[: len(letters)], given[len(letters) :]
            if names[0] not in self.names:
                self.definitions.append([self.poly(one) for one in operands])
                place = len(self.definitions) - 1
                self.names |= {name: f"{letter}{place}" for name, letter in zip(names, letters, strict=True)}
            return [kind, int(self.names[names[0]][1:])]
        if kind == "new":
            (name,) = given
            self.names[name] = f"#{name[1:]}" if name.startswith("%") else f"${name}"
            return [kind, self.names[name]]
        return [kind, *(part for one in given for part in self._part(one))]

    def _part(self, one: Any) -> list[Any]:
        if isinstance(one, Certificate):
            facts = [[str(c), [self.poly(fact) for fact in used], self._key(key)] for c, used, key in one.facts]
            return [facts, [[str(c), self.poly(zero), self._key(key)] for c, zero, key in one.equalities]]
        if isinstance(one, Poly):
            return [self.poly(one)]
        return [self._name(one) if isinstance(one, str) else one]

    def poly(self, value: Poly) -> int:
        """Place of a polynomial in the table."""
        written = tuple((number, *self._key(key)) for key, number in value.terms.items())
        return self.polys.setdefault(written, len(self.polys))

    def _key(self, key: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(map(self._name, key)))

    def _name(self, name: str) -> str:
        plain = name.rstrip("'")
        return self.names.get(plain, plain) + name[len(plain) :]
