"""`Template`: a swizzle of the closed language with declared parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from swizzle_sim.swizzle.families.condition import read_condition
from swizzle_sim.swizzle.form import Cond
from swizzle_sim.swizzle.names import GRID_NAMES
from swizzle_sim.swizzle.parse import parse_form
from swizzle_sim.templates.ranges import Range
from xcd_model.errors import LanguageError


@dataclass(frozen=True)
class Template:
    """A swizzle with parameters; giving each a value makes a candidate.

    Parameters
    ----------
    name : str
    ranges : tuple of Range
        One a parameter, in the order declared.
    requires : tuple of str
        Conditions of the language over parameters, the grid's counts and the kernel's sizes.
    body : str
        Statements of the language; they read the parameters as variables.
    called : str
        Pattern of a candidate's name, as `str.format` takes it; by default ``name(parameter=value, ...)``.
    filename : str
        What errors call the text.

    Raises
    ------
    LanguageError
        If the body is outside the language, a parameter is one of the grid's names or is not read by the body, or a
        condition is none.
    """

    name: str
    ranges: tuple[Range, ...]
    requires: tuple[str, ...]
    body: str
    called: str = ""
    filename: str = field(default="<template>", compare=False)

    def __post_init__(self):
        inputs = parse_form(self.body, self.filename).inputs
        seen: set[str] = set()
        for one in self.ranges:
            if one.name in GRID_NAMES:
                self._refuse(f"parameter {one.name}: that is a name of the grid, so rename the parameter")
            if one.name in seen:
                self._refuse(f"parameter {one.name} is declared twice")
            seen.add(one.name)
            if one.name not in inputs:
                self._refuse(
                    f"parameter {one.name} is declared, but the template does not use it: it is never read before it "
                    "is assigned"
                )
        _ = self.conditions

    def _refuse(self, message: str) -> None:
        raise LanguageError(f"template {self.name}: {message}", filename=self.filename, code="parameter")

    @cached_property
    def conditions(self) -> tuple[Cond, ...]:
        """`requires`, read."""
        return tuple(self._condition(text) for text in self.requires)

    def _condition(self, text: str) -> Cond:
        try:
            return read_condition(text)
        except LanguageError as error:
            raise LanguageError(
                f"template {self.name}: requires {text}: {error.message}", filename=self.filename, code=error.code
            ) from None

    @property
    def size(self) -> int:
        """Combinations of values, constraints left aside."""
        total = 1
        for one in self.ranges:
            total *= len(one.values)
        return total

    def source(self, values: Mapping[str, int]) -> str:
        """Text of the candidate with these values, in the closed language."""
        given = "".join(f"{one.name} = {values[one.name]}\n" for one in self.ranges)
        return f"# {self.title(values)}\n{given}{self.body}"

    def title(self, values: Mapping[str, int]) -> str:
        """Name of the candidate with these values."""
        if self.called:
            return self.called.format(**values)
        given = ", ".join(f"{one.name}={values[one.name]}" for one in self.ranges)
        return f"{self.name}({given})" if given else self.name

    @property
    def text(self) -> str:
        """The template as `read_template` takes it."""
        declared = ", ".join(f"{one.name}: {one.text}" for one in self.ranges)
        needed = "".join(f"\n    requires {condition}" for condition in self.requires)
        indented = "".join(f"    {line}\n" if line.strip() else "\n" for line in self.body.splitlines())
        return f"template {self.name}({declared}){needed}\n{indented}"
