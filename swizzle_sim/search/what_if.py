"""`what_if`: a GPU that does not exist, as a known one with some numbers changed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from xcd_model import Gpu
from xcd_model.errors import SpecError, UnknownName

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "k": 10**3, "M": 10**6}
_NUMBER = re.compile(r"(-?[0-9][0-9_]*(?:\.[0-9]+)?)\s*(KiB|MiB|GiB|k|M)?")
FIXED = ("facts", "energy", "peak_tflops", "name", "title", "arch", "partition", "memory_mode")


def what_if(gpu: Gpu, changes: Mapping[str, Any]) -> Gpu:
    """A GPU with some of its numbers changed.

    Parameters
    ----------
    gpu : Gpu
    changes : mapping of str to number or str
        By dotted key, such as ``{"l2.size_bytes": 8 * 2**20, "xcds": 16}``. All of one cache are changed together, so
        that its rules are checked once.

    Returns
    -------
    gpu : Gpu
        Its name says what was changed; facts of changed keys are gone.

    Raises
    ------
    UnknownName
        If there is no such key; the message offers the nearest.
    SpecError
        If the values break a rule of `Gpu`.
    """
    if not changes:
        return gpu
    keys = _keys(gpu)
    top: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        if key not in keys:
            raise UnknownName(f"number of {gpu.name}", key, keys)
        part, _, name = key.rpartition(".")
        (parts.setdefault(part, {}) if part else top)[name] = value
    for part, values in parts.items():
        try:
            top[part] = replace(getattr(gpu, part), **values)
        except SpecError as error:
            raise SpecError(f"{gpu.name} with {_said(changes)}: {part}.{error}") from None
    try:
        facts = {key: fact for key, fact in gpu.facts.items() if key not in changes}
        return replace(gpu, **top, name=f"{gpu.name}[{_said(changes)}]", title=f"{gpu.title}, changed", facts=facts)
    except SpecError as error:
        raise SpecError(f"{gpu.name} with {_said(changes)}: {error}") from None


def _said(changes: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in changes.items())


def _keys(gpu: Gpu) -> list[str]:
    """Dotted keys that can be changed."""
    found = []
    for one in fields(gpu):
        value = getattr(gpu, one.name)
        if one.name in FIXED or (value is None and one.type not in ("int | None", "float | None")):
            continue
        found += [f"{one.name}.{inner.name}" for inner in fields(value)] if is_dataclass(value) else [one.name]
    return found


def read_changes(words: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``key=value[,value...]`` words, values such as ``8MiB``, ``16``, ``2.1`` or ``modulo``."""
    changes: dict[str, list[Any]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        values = [value.strip() for value in text.split(",")]
        if not equals or not key.strip() or not all(values):
            raise SpecError(f"{word!r}: a change is written key=value or key=value,value, such as l2.size_bytes=8MiB")
        if key.strip() in changes:
            raise SpecError(f"{key.strip()} is set twice: write its values with commas, as in xcds=4,8,16")
        changes[key.strip()] = [_value(value) for value in values]
    return changes


def _value(text: str) -> Any:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)
    number, unit = found[1].replace("_", ""), _UNITS[found[2] or ""]
    return float(number) * unit if "." in number else int(number) * unit


def hypothetical(gpu: Gpu, changes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[dict[str, Any], Gpu]]:
    """Every combination of values, with what was changed."""
    for values in itertools.product(*changes.values()):
        one = dict(zip(changes, values, strict=True))
        yield one, what_if(gpu, one)
