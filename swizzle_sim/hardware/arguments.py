"""How the node makes a launch's tensors: drawn from a seed where values do not matter, else carried as bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from swizzle_sim.launch import Array, Launch

LOOKED_AT = 1 << 26  # items up to which the kernel's own inputs are made and looked at
CARRIED = 1 << 20  # bytes up to which they travel as they are
NORMAL = {"how": "normal", "mean": 0.0, "deviation": 1.0}


def arguments_of(launch: Launch, seed: int) -> tuple[list[list[Any]], dict[str, bytes]]:
    """Run-time arguments for the manifest, and the files that some of them need.

    Parameters
    ----------
    launch : Launch
    seed : int

    Returns
    -------
    arguments : list of [name, about]
        ``about`` is ``{"value": number}`` or ``{"array": {...}}``, where ``make`` says how its values come to be:
        ``file`` (index tensors, integers, small ones), ``normal`` or ``uniform`` as the kernel's own inputs are.
    files : dict of str to bytes
    """
    made = functools.cache(lambda: dict(launch.make_inputs(seed)))
    files: dict[str, bytes] = {}
    arguments: list[list[Any]] = []
    for name, value in launch.arguments.items():
        if not isinstance(value, Array):
            arguments.append([name, {"value": value}])
            continue
        make = None if value.role == "out" else _make(name, value, made, files)
        about = {
            **{"shape": list(value.shape), "strides": list(value.item_strides), "dtype": value.dtype},
            **{"role": value.role, "n_items": value.n_items, "item_bytes": value.item_bytes, "make": make},
        }
        arguments.append([name, {"array": about}])
    return arguments, files


def _make(
    name: str, array: Array, made: Callable[[], Mapping[str, np.ndarray]], files: dict[str, bytes]
) -> dict[str, Any]:
    matters = array.is_index or not array.dtype.startswith(("fp", "bf"))
    if not matters and array.n_items > LOOKED_AT:
        return NORMAL
    values = made().get(name)
    if values is None:
        if matters:
            values = np.zeros(array.shape, np.int64)  # nobody says what they are: all zero is at least in range
        else:
            return NORMAL
    if matters or values.nbytes <= CARRIED:
        file = f"inputs/{name}.bin"
        files[file] = _bytes(values, array)
        return {"how": "file", "file": file}
    seen = values.ravel()[: 1 << 16].astype(np.float64)
    if seen.min() >= 0:
        return {"how": "uniform", "low": float(seen.min()), "high": float(seen.max())}
    return {"how": "normal", "mean": float(seen.mean()), "deviation": float(seen.std())}


def _bytes(values: np.ndarray, array: Array) -> bytes:
    """Items row-major in the tensor's own type; bf16 and fp8 come as their bits, or bf16 as numbers."""
    if array.dtype == "bf16" and values.dtype.itemsize != 2:
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        values = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    names = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}
    if array.dtype not in ("bf16", "fp8e4", "fp8e5"):
        values = values.astype(names.get(array.dtype, array.dtype))
    return np.ascontiguousarray(values.reshape(array.shape)).tobytes()
