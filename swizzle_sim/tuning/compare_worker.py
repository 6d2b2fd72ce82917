"""Runs pairs of launches in Triton's interpreter and compares what they leave in memory; a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.kernel_file import load_function
from swizzle_sim.rewrite import check_worker
from swizzle_sim.rewrite.check_worker import Different, NotRun, Tensor

STEPS = 8  # of an output's type at its largest value that sums in another order may differ by, of fp32 64 more
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def main(question: str, answer: str) -> None:
    """Run every case of the request and write what was found."""
    request = json.loads(Path(question).read_text(encoding="utf-8"))
    check_worker.prepare()
    loaded: dict[tuple[str, ...], Any] = {}
    try:
        reply: dict[str, Any] = {"cases": [_found(loaded, case) for case in request["cases"]]}
    except Exception as error:  # a kernel raises what it likes: the caller gets its name and words
        reply = {"error": f"{type(error).__name__}: {error}"}
    Path(answer).write_text(json.dumps(reply), encoding="utf-8")


def _found(loaded: dict[tuple[str, ...], Any], case: dict[str, Any]) -> dict[str, Any]:
    for one in case["kernels"]:
        if (file := tuple(one["file"])) not in loaded:
            loaded[file] = check_worker._undecorated(load_function(*file))
    try:
        return {"largest": _compared([loaded[tuple(one["file"])] for one in case["kernels"]], case)}
    except NotRun as error:
        return {"not_run": str(error)}
    except Different as error:
        return {"different": str(error)}


def _compared(kernels: list[Any], case: dict[str, Any]) -> float:
    """Largest difference of outputs, over the largest output of its tensor; raises where it is too large."""
    inputs = dict(np.load(case["inputs"]))
    tensors = {name: check_worker._tensor(about) for name, about in case["tensors"].items()}
    largest = 0.0
    for byte in check_worker.POISONS:
        left: list[dict[str, np.ndarray]] = []
        for number, (kernel, one) in enumerate(zip(kernels, case["kernels"], strict=True)):
            check_worker._fill(tensors, case, inputs, byte)
            about = {**case, **one, "constexprs": [one["constexprs"]]}
            programs = list(range(int(np.prod(one["grid"]))))
            if number == 0:
                check_worker._run_original(kernel, about, tensors, programs)
            else:
                check_worker._run(kernel, about, 0, tensors, programs)
            left.append({name: tensor.memory.copy() for name, tensor in tensors.items()})
        largest = max(
            largest, *(_difference(case, name, tensors[name], *(one[name] for one in left)) for name in tensors)
        )
    return largest


def _difference(case: dict[str, Any], name: str, tensor: Tensor, wanted: np.ndarray, found: np.ndarray) -> float:
    bits = [memory.view(np.uint8).reshape(memory.size, -1) for memory in (wanted, found)]
    differs = (bits[0] != bits[1]).any(axis=1)
    if not differs.any():
        return 0.0
    at, kind = int(np.argmax(differs)), tensor.dtype.removeprefix("torch.")
    words = (
        f"{case['what']}: {name} differs in {int(differs.sum())} items, the first at {at - check_worker.GUARD_ITEMS}"
    )
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
    if kind == "bfloat16":
        return (memory.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return memory.astype(np.float64)
