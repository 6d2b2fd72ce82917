"""Constants typed for one run: ``gpu.key=value``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from xcd_model.errors import SpecError, UnknownName
from xcd_model.gpu import Gpu, gpu_names
from xcd_model.hbm_rows import HbmRows
from xcd_model.parts import Cache, EnergyRates, InstructionCache, Limits, Memory, Range

PARTS: dict[str, Any] = {
    "": Gpu,
    **dict.fromkeys(("l1", "l2", "mall"), Cache),
    **{"l1i": InstructionCache, "hbm": Memory, "hbm_rows": HbmRows, "limits": Limits, "energy": EnergyRates},
}


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
        part, _, field = key.rpartition(".")
        if not value or not field:
            raise SpecError(f"{word!r}: write GPU.KEY=VALUE, such as mi300x.hbm.latency_ns=400")
        if device not in gpu_names():
            raise UnknownName("GPU", device, gpu_names())
        if part not in PARTS:
            raise UnknownName("part of a GPU", part, [name for name in PARTS if name])
        known = PARTS[part].__dataclass_fields__
        if field not in known:
            raise UnknownName(f"constant of {part or 'a GPU'}", field, known)
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
        If the GPU has no such constant, or the value breaks a rule.
    """
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        part, _, name = key.rpartition(".")
        if part and getattr(gpu, part, None) is None:
            raise SpecError(f"{key}: {gpu.name} has no {part}")
        parts.setdefault(part, {})[name] = value
    own = parts.pop("", {})
    try:
        changed = {part: _changed(getattr(gpu, part), inner) for part, inner in parts.items()}
        return dataclasses.replace(gpu, **own, **changed)
    except TypeError as error:
        raise SpecError(f"{gpu.name} does not have all of {', '.join(values)}: {error}") from None


def _changed(part: Any, values: Mapping[str, Any]) -> Any:
    """A part with other constants; of one that has a range, the value in it."""
    within = dict(values)
    for name, value in values.items():
        held = getattr(part, name, None)
        if isinstance(held, Range):
            try:
                within[name] = dataclasses.replace(held, value=value)
            except SpecError as error:
                raise SpecError(f"{name}: {error}") from None
    return dataclasses.replace(part, **within)
