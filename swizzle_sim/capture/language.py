"""Lets kernels run on our handles: what Triton's interpreter patches of the language, patched once more.

All private parts of Triton that capture reaches into are found here; only the worker process imports Triton, since
whether it interprets is fixed on import.

Triton's own handles keep Triton's own behaviour, so the real interpretation that checks a capture is not touched.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import math
import os
import sys
from collections import Counter
from functools import reduce, wraps
from inspect import signature
from typing import Any

import numpy as np

from swizzle_sim.capture.device_library import answers_truth, give_results, on_data
from swizzle_sim.capture.process import check_installed
from swizzle_sim.capture.scalars import give_aggregates_methods, give_scalars_methods, join_blocks
from swizzle_sim.capture.values import Unknown, Value, agree, known, refuse, source_line
from xcd_model.errors import CaptureError


class Language:
    """The patched language of this process, and the module of Triton's interpreter."""

    def __init__(self) -> None:
        self.version = check_installed()
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise CaptureError("the worker needs TRITON_INTERPRET=1")
        load: Any = importlib.import_module
        self.tl, self.interpreter = load("triton.language"), load("triton.runtime.interpreter")
        give_scalars_methods(self.interpreter)
        give_aggregates_methods(self.interpreter)
        join_blocks(self.interpreter)
        self._done: set[int] = set()
        self.products = Products(self.interpreter.interpreter_semantic)
        self._patch = self.interpreter._patch_lang
        self.interpreter._patch_lang = self.patch
        self._reduce, self._scan = self.interpreter.ReduceOps.apply, self.interpreter.ScanOps.apply
        self.interpreter.ReduceOps.apply = lambda ops, given: self._fold(ops, given, self._reduce, self._reduced)
        self.interpreter.ScanOps.apply = lambda ops, given: self._fold(ops, given, self._scan, lambda ops, t: t.type)

    @property
    def builder(self) -> Any:
        """The builder that all operations go to."""
        return self.interpreter.interpreter_semantic.builder

    @builder.setter
    def builder(self, builder: Any) -> None:
        self.interpreter.interpreter_semantic.builder = builder

    def patch(self, function: Any) -> Any:
        """Patch the language as seen from a function's module; in place of ``_patch_lang``."""
        scope = self.interpreter._LangPatchScope()  # restores nothing: this process only captures
        if id(function.__globals__) in self._done:
            return scope
        modules = [m for m in function.__globals__.values() if inspect.ismodule(m) and m in (self.tl, self.tl.core)]
        if not modules:  # the names were imported one by one
            function.__globals__["_triton_language"] = self.tl
        self._patch(function)
        self.interpreter._patch_builtin(self.tl.extra.cuda, self.builder, scope)  # num_warps(), num_threads()
        give_results(function.__globals__, self._device_function)
        self._done.add(id(function.__globals__))
        tensor = self.tl.core.tensor
        whole, truth, transposed = tensor.__index__, tensor.__bool__, tensor.T
        if not getattr(whole, "is_ours", False):
            tensor.__index__ = _marked(lambda t: self.scalar(t, "a trip count") if _ours(t) else whole(t))
            tensor.__bool__ = lambda t: self._truth(t) if _ours(t) else truth(t)
            tensor.T = property(lambda t: self._transpose(t) if _ours(t) else transposed.fget(t))
        self.tl.range = self.tl.static_range = self.range
        if "range" not in function.__globals__:
            function.__globals__["range"] = self.range
        for name, pick in (("min", self.tl.minimum), ("max", self.tl.maximum)):
            function.__globals__.setdefault(name, self._extreme(getattr(builtins, name), pick))
        return scope

    def _device_function(self, name: str, stub: Any) -> Any:
        if getattr(stub, "is_ours", False):
            return stub

        def device_function(*given: Any) -> Any:
            like = next(t for t in given if isinstance(t, self.tl.core.tensor))
            whole = self.tl.core.block_type(self.tl.int32, like.shape) if like.shape else self.tl.int32
            kind = whole if answers_truth(name) else like.type
            if _ours(like):
                return self.tl.core.tensor(Unknown(f"what {name} gives at {source_line()}"), kind)
            if not getattr(self.builder, "is_without_data", False):
                return on_data(name, given, self.interpreter)
            zeros = np.zeros(like.handle.data.shape, np.int32 if kind is whole else like.handle.data.dtype)
            return self.tl.core.tensor(self.interpreter.TensorHandle(zeros, kind.scalar), kind)

        return _marked(device_function)

    def scalar(self, tensor: Any, what: str) -> int:
        """The one number a tensor holds in all workgroups; they part where they do not agree."""
        return agree(self._column(tensor, what))

    def _truth(self, tensor: Any) -> bool:
        caller = sys._getframe(2).f_code.co_filename
        if caller.endswith(("semantic.py", "core.py")) and "triton" in caller:  # tests whether there is a tensor at all
            return True
        return bool(self.scalar(tensor, "this branch"))

    def _column(self, tensor: Any, what: str) -> Any:
        value = known(tensor.handle, what)
        table = self.builder._table
        pattern = table[value.p] if not isinstance(value.p, np.ndarray) else None
        if (pattern is not None and pattern.size != 1) or (pattern is None and table[int(value.p[0])].size != 1):
            refuse(f"{what} is decided by a block of more than one item")
        if value.kind.kind in "iu":
            return value.u
        if pattern is None:
            return np.array([table[int(p)].flat[0] for p in value.p]).astype(np.int64)
        if value.kind.kind != "b":
            refuse(f"{what} is a float")
        return pattern.flat[0].item()

    def range(self, first: Any, end: Any = None, step: Any = None, **hints: Any) -> Any:
        """``range`` whose start may differ between workgroups; they part where the number of trips does."""
        first, end = (0, first) if end is None else (first, end)
        step = 1 if step is None else step
        given = [
            getattr(value, "value", value) if isinstance(value, self.tl.constexpr) else value
            for value in (first, end, step)
        ]
        if not any(_ours(value) for value in given):
            return builtins.range(*given)
        step = given[2].__index__()
        start, stop = (self._column(v, "a trip count") if _ours(v) else v.__index__() for v in given[:2])
        trips = agree(np.maximum(0, -((np.asarray(start) - stop) // step))) if np.ndim(start - stop) else None
        if not isinstance(start, np.ndarray):
            stop = stop if trips is None else start + trips * step
            return builtins.range(int(start), int(stop), step)
        count = trips if trips is not None else len(builtins.range(int(start), int(stop), step))
        return (self._whole(start + i * step) for i in builtins.range(count))

    def _whole(self, values: np.ndarray) -> Any:
        kind = "int32" if values.min() >= -(2**31) and values.max() < 2**31 else "int64"
        return self.tl.core.tensor(self.builder.integer(values, kind), getattr(self.tl, kind))

    def _extreme(self, plain: Any, pick: Any) -> Any:
        def extreme(*values: Any, **options: Any) -> Any:
            if options or len(values) < 2 or not any(_ours(value) for value in values):
                return plain(*values, **options)
            return reduce(pick, values)

        return extreme

    def _transpose(self, tensor: Any) -> Any:
        order = list(builtins.range(len(tensor.shape)))
        order[-2:] = reversed(order[-2:])
        shape = [tensor.shape[axis] for axis in order]
        handle = self.builder.create_trans(tensor.handle, order)
        return self.tl.core.tensor(handle, self.tl.core.block_type(tensor.dtype, shape))

    def _fold(self, ops: Any, given: Any, real: Any, type_of: Any) -> Any:
        tensors = given if isinstance(given, tuple) else (given,)
        if not all(_ours(tensor) for tensor in tensors):
            return real(ops, given)
        types = [type_of(ops, tensor) for tensor in tensors]
        handles = [tensor.handle for tensor in tensors]

        def one(i):
            def work(*data):
                following, self.builder = self.builder, self.builder._real
                try:
                    found = real(ops, tuple(self.tl.core.tensor(d, t.type) for d, t in zip(data, tensors, strict=True)))
                finally:
                    self.builder = following
                return found[i].handle

            unknown = next((h for h in handles if isinstance(h, Unknown)), None)
            return unknown or self.builder.later_exact(work, handles, "a reduction or scan")

        found = tuple(self.tl.core.tensor(one(i), kind) for i, kind in enumerate(types))
        return found if isinstance(given, tuple) else found[0]

    def _reduced(self, ops: Any, tensor: Any) -> Any:
        shape = list(tensor.shape)
        if ops.axis is None:
            shape = [1] * len(shape) if ops.keep_dims else []
        else:
            shape[ops.axis : ops.axis + 1 or None] = [1] if ops.keep_dims else []
        return self.tl.core.block_type(tensor.dtype, shape) if shape else tensor.dtype


def _ours(value: Any) -> bool:
    return isinstance(getattr(value, "handle", None), Value)


def _marked(function: Any) -> Any:
    function.is_ours = True
    return function


# Operations of a kernel's matrix products, ``tl.dot`` and ``tl.dot_scaled``, by the type that they run in.
#
# Counted as the kernel is captured: multiplications and additions of whole tiles, masked items included. What a kernel
# multiplies otherwise (``tl.sum(a * b)``) is not counted.

OF_FORMATS = {"e4m3": "fp8", "e5m2": "fp8", "e2m1": "fp8"}  # of ``tl.dot_scaled``; no GPU here has a rate of 4 bits
PACKED = "e2m1"  # two items in a byte


class Products:
    """Counts what Triton's interpreter multiplies."""

    def __init__(self, semantic: Any):
        self._flops: Counter[str] = Counter()
        dot, dot_scaled = semantic.dot, semantic.dot_scaled

        @wraps(dot)
        def counted(lhs: Any, rhs: Any, *rest: Any) -> Any:
            found = dot(lhs, rhs, *rest)
            self._add(found, int(lhs.shape[-1]), lhs.dtype.name)
            return found

        names = signature(dot_scaled)

        @wraps(dot_scaled)
        def counted_scaled(*given: Any) -> Any:
            found, of = dot_scaled(*given), names.bind(*given).arguments
            lhs, kind = of["lhs"], of["lhs_format"]
            depth = int(lhs.shape[-1]) * (2 if kind == PACKED and of["lhs_k_pack"] else 1)
            self._add(found, depth, OF_FORMATS.get(kind, kind))
            return found

        semantic.dot, semantic.dot_scaled = counted, counted_scaled

    def _add(self, product: Any, depth: int, kind: str) -> None:
        kind = "fp8" if kind.startswith("fp8") else kind.removeprefix("u")
        self._flops[kind] += 2 * math.prod(map(int, product.shape)) * depth

    def taken(self) -> Counter[str]:
        """Operations of one workgroup by type, since they were last taken."""
        taken, self._flops = self._flops, Counter()
        return taken
