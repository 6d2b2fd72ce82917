"""The rules that a GPU description is held to; each refusal names key, value and rule."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from xcd_model.errors import SpecError

_ZERO_ALLOWED = ("compute_spread", "dispatch_offset", "prefetch_lines")
_TYPES: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool}
_EXPECTED = {"int": "a whole number", "float": "a finite number", "str": "a string", "bool": "true or false"}


def check_types(instance: Any) -> None:
    """Check each int, float, str and bool field of a dataclass against its annotation."""
    for field in fields(instance):
        value, kind = getattr(instance, field.name), str(field.type)
        if kind.removesuffix(" | None") in _EXPECTED and not (value is None and kind.endswith(" | None")):
            check_value(field.name, value, kind.removesuffix(" | None"))


def check_value(key: str, value: Any, kind: str) -> None:
    """Refuse a value of the wrong kind, not finite, negative, empty, or zero where zero makes no sense."""
    types = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
        raise SpecError(f"{key} = {value!r} must be {_EXPECTED[kind]}, not {type(value).__name__}")
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
