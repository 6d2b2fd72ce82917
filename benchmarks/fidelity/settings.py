"""Constants typed for one run: ``gpu.key=value``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from swizzle_sim.uncertainty.perturbed_scorer import with_constants
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.errors import SpecError, UnknownName


def read_sets(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read ``gpu.key=value`` words; values are JSON, or text where they are none.

    Raises
    ------
    SpecError
        If a word is not of this form.
    UnknownName
        If it names no GPU or constant.
    """
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, _, value = word.partition("=")
        device, _, key = name.partition(".")
        if not value or not key:
            raise SpecError(f"{word!r}: write GPU.KEY=VALUE, such as mi300x.hbm.latency_ns=400")
        if device not in gpu_names():
            raise UnknownName("GPU", device, gpu_names())
        _check_key(gpu(device), key)
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        found.setdefault(device, {})[key] = tuple(parsed) if isinstance(parsed, list) else parsed
    return found


def overridden(gpu: Gpu, values: Mapping[str, Any]) -> Gpu:
    """GPU with other constants, by dotted key such as ``l2.latency_ns``.

    Raises
    ------
    SpecError
        If a value breaks a rule.
    UnknownName
        If the GPU has no such constant.
    """
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        _check_key(gpu, key)
        part, _, name = key.rpartition(".")
        parts.setdefault(part, {})[name] = value
    own = parts.pop("", {})
    changed = {part: with_constants(getattr(gpu, part), inner) for part, inner in parts.items()}
    return dataclasses.replace(gpu, **own, **changed)


def _check_key(gpu: Gpu, key: str) -> None:
    """Refuse a key that names no constant of a GPU or of one of its parts."""
    part, _, name = key.rpartition(".")
    parts = {f.name: held for f in dataclasses.fields(gpu) if dataclasses.is_dataclass(held := getattr(gpu, f.name))}
    if part and part not in parts:
        raise UnknownName(f"part of {gpu.name}", part, parts)
    known = [f.name for f in dataclasses.fields(parts[part] if part else gpu)]
    if name not in known:
        raise UnknownName(f"constant of {part or gpu.name}", name, known)
