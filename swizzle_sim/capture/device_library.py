"""Functions of the device library, which Triton's interpreter has only as empty stubs, computed by numpy and scipy.

Close to what the GPU's library gives, not bit for bit; both kernels of a comparison go through the same function.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from xcd_model.errors import CaptureError

_NUMPY = {name: name for name in (
    "abs", "cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "fmax", "fmin", "fmod",
    "hypot", "isinf", "isnan", "log", "log10", "log1p", "log2", "rint", "signbit", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
)} | {
    "acos": "arccos", "acosh": "arccosh", "add": "add", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "div": "divide", "divide": "divide", "finite": "isfinite", "max": "maximum",
    "min": "minimum", "mul": "multiply", "nearbyint": "rint", "pow": "power", "sub": "subtract",
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, other) for name, other in _NUMPY.items()},
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "saturate": lambda x: np.clip(x, 0, 1),
}
_SCIPY = {"erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "gammaln", "normcdf": "ndtr"}
_ENDINGS = ("_rn", "_rz", "_rd", "_ru")  # how it rounds


def give_results(names: dict[str, Any], make: Callable[[str, Any], Any]) -> None:
    """Put functions in place of the library's stubs, as a kernel's module sees them."""
    for name, value in list(names.items()):
        if inspect.ismodule(value) and value.__name__.endswith("libdevice"):
            for stub, function in inspect.getmembers(value, inspect.isfunction):
                setattr(value, stub, make(stub, function))
        elif inspect.isfunction(value) and value.__module__.endswith("libdevice"):
            names[name] = make(value.__name__, value)


def answers_truth(name: str) -> bool:
    """Whether a function answers truth values, as integers."""
    return name.startswith(("is", "finite", "signbit"))


def on_data(name: str, given: tuple[Any, ...], interpreter: Any) -> Any:
    """Tensor that a function gives for tensors that hold data."""
    function = _function(name)
    if function is None:
        raise CaptureError(f"neither Triton's interpreter nor this computes {name} of the device library")
    tl, semantic = interpreter.tl, interpreter.interpreter_semantic
    tensors = [semantic.to_tensor(one) for one in given]
    like = max(tensors, key=lambda one: len(one.shape))
    floats = [one.type.scalar for one in tensors if one.type.scalar.is_floating()]
    scalar = tl.int32 if answers_truth(name) else (floats or [like.type.scalar])[0]
    with np.errstate(all="ignore"):
        found = np.asarray(function(*map(_numbers, tensors)))
    data = np.ascontiguousarray(np.broadcast_to(_stored(found, scalar), like.handle.data.shape))
    kind = tl.block_type(scalar, like.shape) if like.shape else scalar
    return tl.tensor(interpreter.TensorHandle(data, scalar), kind)


def _function(name: str) -> Callable[..., Any] | None:
    plain = name.removeprefix("fast_")
    for ending in _ENDINGS:
        plain = plain.removesuffix(ending)
    for one in (plain, plain.removesuffix("f")):  # fast_expf, fast_dividef
        if one in _SCIPY:
            return getattr(importlib.import_module("scipy.special"), _SCIPY[one])
        if one in _FUNCTIONS:
            return _FUNCTIONS[one]
    return None


def _numbers(tensor: Any) -> np.ndarray:
    """Items as numbers: bfloat16 is held as its bits."""
    data = tensor.handle.data
    return (data.astype(np.uint32) << 16).view(np.float32) if tensor.type.scalar.is_bf16() else data


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, of two as near the even one."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _stored(found: np.ndarray, scalar: Any) -> np.ndarray:
    if scalar.is_bf16():
        return bfloat16_bits(found)
    return found.astype(f"float{scalar.primitive_bitwidth}" if scalar.is_floating() else np.int32)
