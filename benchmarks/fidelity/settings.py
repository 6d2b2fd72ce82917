"""Constants typed for one run: ``gpu.key=value``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.gpu import Gpu, gpu_names

PARTS = ("l1", "l1i", "l2", "mall", "hbm", "hbm_rows", "limits")


def read_sets(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read ``gpu.key=value`` words; values are JSON, or text where they are none.

    Raises
    ------
    SpecError
        If a word is not of this form, or names no GPU or key.
    """
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, _, value = word.partition("=")
        device, _, key = name.partition(".")
        part, _, field = key.rpartition(".")
        known = Gpu.__dataclass_fields__ if not part else ()
        if not value or device not in gpu_names() or (part and part not in PARTS) or not (part or field in known):
            raise SpecError(f"{word!r}: write GPU.KEY=VALUE, such as mi300x.hbm.latency_ns=400")
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
        parts.setdefault(part, {})[name] = value
    own = parts.pop("", {})
    try:
        changed = {part: dataclasses.replace(getattr(gpu, part), **inner) for part, inner in parts.items()}
        return dataclasses.replace(gpu, **own, **changed)
    except TypeError as error:
        raise SpecError(f"{gpu.name} does not have all of {', '.join(values)}: {error}") from None
