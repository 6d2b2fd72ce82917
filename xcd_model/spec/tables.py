"""From TOML tables to values: which keys a table may hold, and the one form in which a fact is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.spec.parts import Fact

FORM = "{ value = ..., status = ..., source = ... }"
RANGE_FORM = "{ value = ..., low = ..., high = ..., status = ..., source = ... }"
_KEYS = {form: frozenset(word for word in form.split() if word.isalpha()) for form in (FORM, RANGE_FORM)}


def take_facts(prefix: str, table: Mapping[str, Any], facts: dict[str, Fact], form: str = FORM) -> dict[str, Fact]:
    """Read the facts of a table, file each in ``facts`` under its dotted key, and return them by bare key."""
    taken = {}
    for key, item in table.items():
        if not isinstance(item, dict) or set(item) != _KEYS[form]:
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
