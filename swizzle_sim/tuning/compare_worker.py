"""Runs pairs of launches in Triton's interpreter and compares what they leave in memory; a process of its own."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from swizzle_sim.capture.language import Language
from swizzle_sim.rewrite.check_worker import POISONS, Different, NotRun, _filled, _run, _run_original, loaded
from swizzle_sim.workload.launch import Array, Launch

STEPS = 8  # of an output's type at its largest value that sums in another order may differ by, of fp32 64 more
MANTISSA = {"fp16": 10, "bf16": 7, "fp32": 23, "fp64": 52}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run every case of the request and say what was found."""
    language = Language()
    try:
        return {"cases": [_found(language, case) for case in request["cases"]]}
    except Exception as error:  # a kernel raises what it likes: the caller gets its name and words
        return {"error": f"{type(error).__name__}: {error}"}


def _found(language: Language, case: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"largest": _compared(language, case)}
    except NotRun as error:
        return {"not_run": str(error)}
    except Different as error:
        return {"different": str(error)}


def _compared(language: Language, case: dict[str, Any]) -> float:
    """Largest difference of outputs, over the largest output of its tensor; raises where it is too large."""
    original, instance = (loaded(language, Launch.from_dict(described)) for described in case["launches"])
    with np.load(case["inputs"]) as stored:
        given = {int(name): items for name, items in stored.items()}
    space, largest = original.space, 0.0
    for byte in POISONS:
        wanted, memory = (_filled(space.arrays, given, byte) for _ in range(2))
        _run_original(original, wanted, range(prod(original.launch.grid)), case)
        _run(instance, memory, range(prod(instance.launch.grid)))
        for i, items in memory.items():
            what = f"{case['what']}: {space.names[i]}"
            largest = max(largest, _difference(what, space.arrays[i], wanted[i], items))
    return largest


def _difference(what: str, array: Array, wanted: np.ndarray, found: np.ndarray) -> float:
    bits = [memory.view(np.uint8).reshape(memory.size, -1) for memory in (wanted, found)]
    differs = (bits[0] != bits[1]).any(axis=1)
    if not differs.any():
        return 0.0
    at, kind = int(np.argmax(differs)), array.dtype
    words = f"{what} differs in {int(differs.sum())} items, the first at {at}"
    if kind not in MANTISSA:
        raise Different(f"{words}: {wanted[at]} before, {found[at]} after")
    before, after = (_numbers(memory, kind) for memory in (wanted, found))
    one_wrote = np.isfinite(before) != np.isfinite(after)
    scale = float(np.abs(before[np.isfinite(before)]).max(initial=0.0))
    far = np.abs(np.where(differs & ~one_wrote, before - after, 0.0))
    far[np.isnan(far)] = np.inf
    allowed = STEPS * 2.0 ** -MANTISSA[kind] + 64 * 2.0**-23
    if (differs & one_wrote).any() or float(far.max()) > allowed * scale:
        raise Different(f"{words}, by {float(far.max()):.3g} where the largest is {scale:.3g}")
    return float(far.max()) / scale if scale else 0.0


def _numbers(memory: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bf16":
        return (memory.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return memory.astype(np.float64)
