"""A number of a GPU description: value, status and source, how it is written in TOML, and the rules it must keep."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from xcd_model.errors import SpecError

STATUSES = ("documented", "measured", "fitted", "assumed")
FORM = "{ value = ..., status = ..., source = ... }"
RANGE_FORM = "{ value = ..., low = ..., high = ..., status = ..., source = ... }"
_KEYS = {form: frozenset(word for word in form.split() if word.isalpha()) for form in (FORM, RANGE_FORM)}
_ZERO_ALLOWED = ("compute_spread", "dispatch_offset", "prefetch_lines")
_TYPES: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool}
_EXPECTED = {"int": "a whole number", "float": "a finite number", "str": "a string", "bool": "true or false"}


@dataclass(frozen=True, kw_only=True)
class Range:
    """A number that is known only to lie between two others, with the one in between to use."""

    low: float  # more than 0, in rising order; equal is allowed
    value: float
    high: float

    def __post_init__(self):
        check_types(self)
        at_most("low", self.low, "value", self.value)
        at_most("value", self.value, "high", self.high)

    def scaled(self, factor: float) -> Range:
        """All three times ``factor``."""
        return Range(low=self.low * factor, value=self.value * factor, high=self.high * factor)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One value of a description, with how it is known and where from."""

    value: Any
    # ``documented``, ``measured`` (a microbenchmark or a counter shows it), ``fitted`` (chosen by how well the model
    # then meets measured rows) or ``assumed``
    status: str
    source: str  # the public document or measurement; for a fitted or assumed value, how it was chosen
    low: float | None = None  # both or neither: the range in which the value is taken to lie
    high: float | None = None
    # for a fitted value only, and then at least one: ids of measured rows, with ``*`` as in `fnmatch`, such as
    # ``paper/stencil_2d@*``, or a table of calibration data, such as ``data/machine/h200_ncu.csv``
    fitted_to: tuple[str, ...] = ()

    def __post_init__(self):
        if self.low is not None or self.high is not None:
            self.range()
        one_of("status", self.status, STATUSES)
        if not isinstance(self.source, str) or not self.source.strip():
            raise SpecError(f"source = {self.source!r} must be a sentence that says where the value comes from")
        rows = self.fitted_to
        if not isinstance(rows, list | tuple) or not all(isinstance(row, str) and row.strip() for row in rows):
            raise SpecError(f"fitted_to = {rows!r} must be a list of row ids")
        if bool(rows) != (self.status == "fitted"):
            rule = "leave it out" if rows else "name the rows that the value was fitted to"
            raise SpecError(f"fitted_to = {list(rows)} with status = {self.status!r}: {rule}")
        object.__setattr__(self, "fitted_to", tuple(rows))

    def range(self) -> Range:
        """The value with its range."""
        return Range(low=self.low, value=self.value, high=self.high)  # type: ignore[arg-type]  # Range checks


def take_facts(prefix: str, table: Mapping[str, Any], facts: dict[str, Fact], form: str = FORM) -> dict[str, Fact]:
    """Read the facts of a table, file each in ``facts`` under its dotted key, and return them by bare key."""
    taken = {}
    for key, item in table.items():
        if not isinstance(item, dict) or set(item) - {"fitted_to"} != _KEYS[form]:
            raise SpecError(f"{prefix}{key} = {item!r} must be {form}")
        try:
            taken[key] = facts[prefix + key] = Fact(**item)
        except SpecError as error:
            raise SpecError(f"{prefix}{key}: {error}") from error
    return taken


def take_values(prefix: str, table: Mapping[str, Any], facts: dict[str, Fact]) -> dict[str, Any]:
    """Take the bare values out of a table of facts, and file the facts."""
    return {key: fact.value for key, fact in take_facts(prefix, table, facts).items()}


def check_table(key: str, table: Any) -> None:
    """Refuse what is not a TOML table."""
    if not isinstance(table, dict):
        raise SpecError(f"{key} = {table!r} must be a table, [{key}]")


def check_keys(prefix: str, table: Mapping[str, Any], cls: type, forms: Mapping[str, str] | None = None) -> None:
    """Refuse keys that ``cls`` does not have, and the lack of those that it needs; ``forms`` says how to add them."""
    known = {f.name: f for f in fields(cls) if f.name != "facts"}
    for key in table:
        if key not in known:
            raise SpecError(f"{prefix}{key} is not a known key; known here: {', '.join(sorted(known))}")
    for key, field in known.items():
        if key not in table and field.default is dataclasses.MISSING:
            form = (forms or {}).get(key, f"{key} = {FORM}")
            raise SpecError(f"{prefix}{key} is missing; add {form}")


def check_types(instance: Any) -> None:
    """Check each int, float, str and bool field of a dataclass against its annotation."""
    for field in fields(instance):
        value, kind = getattr(instance, field.name), str(field.type)
        if kind.removesuffix(" | None") in _EXPECTED and not (value is None and kind.endswith(" | None")):
            check_value(field.name, value, kind.removesuffix(" | None"))


def check_value(key: str, value: Any, kind: str) -> None:
    """Refuse a value of the wrong kind, beyond 64 bits, not finite, negative, empty, or a zero without sense."""
    types = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
        raise SpecError(f"{key} = {value!r} must be {_EXPECTED[kind]}, not {type(value).__name__}")
    if isinstance(value, int) and value.bit_length() > 63:  # not shown: it may have thousands of digits
        raise SpecError(f"{key} does not fit the 64 bits of an integer in TOML")
    if kind == "float" and not math.isfinite(value):
        raise SpecError(f"{key} = {value} must be {_EXPECTED[kind]}")
    if kind in ("int", "float") and (value < 0 or (value == 0 and key not in _ZERO_ALLOWED)):
        raise SpecError(f"{key} = {value} must be {'at least' if key in _ZERO_ALLOWED else 'more than'} 0")
    if kind == "str" and not value:
        raise SpecError(f"{key} = '' must not be empty")


def one_of(key: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value outside ``choices``."""
    if value not in choices:
        raise SpecError(f"{key} = {value!r} is not known; accepted: {', '.join(choices)}")


def divides(key: str, value: int, what: str, total: int) -> None:
    """Refuse a ``value`` that does not divide ``total``."""
    if total % value:
        raise SpecError(f"{key} = {value} must divide {what} = {total}")


def at_most(key: str, value: float, what: str, bound: float) -> None:
    """Refuse a ``value`` above ``bound``."""
    if value > bound:
        raise SpecError(f"{key} = {value} must be at most {what} = {bound}")
