"""The kernel of a launch, loaded from its file and called with handles in place of tensors."""

from __future__ import annotations

import inspect
import linecache
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from swizzle_sim.capture.kernel_file import LANGUAGE_NAMES, constant, line_of, load_function, words_of
from swizzle_sim.capture.language import Language
from swizzle_sim.capture.memory import AddressSpace
from swizzle_sim.capture.process import untested
from swizzle_sim.workload.launch import Array, Launch
from xcd_model.errors import CaptureError


class LoadedKernel:
    """A launch that can be run, one workgroup or many at a time."""

    def __init__(self, language: Language, launch: Launch, space: AddressSpace):
        self.language, self.launch, self.space = language, launch, space
        jit = load_function(launch.path, launch.function, launch.sliced_for, launch.text_from or "")
        self.function = jit.rewrite()
        language.patch(jit.fn)
        self.parameters = inspect.signature(jit.fn).parameters
        self._check_names(inspect.signature(jit.fn))
        self.grid = (*launch.grid, *(1,) * (3 - len(launch.grid)))

    def _check_names(self, signature: inspect.Signature) -> None:
        given = {**self.launch.arguments, **self.launch.constexprs}
        extra = [name for name in given if name not in {*signature.parameters, *self.launch.pointed_to}]
        missing = [p.name for p in signature.parameters.values() if p.name not in given and p.default is p.empty]
        for words, names in (("has no parameter", extra), ("is not given", missing)):
            if names:
                raise CaptureError(
                    f"{self.launch.path.name}: {self.launch.function}({', '.join(signature.parameters)}) {words} "
                    f"{', '.join(names)}",
                    code="arguments",
                )

    def run(self, builder: Any) -> Counter[str]:
        """Run the kernel once on a builder, and count what its matrix products do."""
        self.language.builder = builder
        builder.options = SimpleNamespace(**{**vars(builder.options), "num_warps": self.launch.num_warps})
        self.language.products.taken()
        try:
            with np.errstate(all="ignore"):
                self.function(**self._arguments(builder))
        except Exception as error:
            raise self._explain(error) from error
        return self.language.products.taken()

    def _arguments(self, builder: Any) -> dict[str, Any]:
        hold = getattr(builder, "hold", lambda handle: handle)
        tl, interpreter = self.language.tl, self.language.interpreter
        found: dict[str, Any] = {}
        for name, value in self.launch.arguments.items():
            if name in self.launch.pointed_to and name not in self.parameters:
                continue
            if isinstance(value, Array):
                base = self.space.address(name, value)
                kind = tl.pointer_type(getattr(tl, LANGUAGE_NAMES.get(value.dtype, value.dtype)))
                handle = interpreter.TensorHandle(np.array([base], np.uint64), kind)
                pointer = tl.tensor(hold(handle), kind)
                found[name] = self._descriptor(pointer, value, hold) if value.block else pointer
                continue
            made = interpreter._implicit_cvt(value)
            found[name] = tl.tensor(hold(made.handle), made.type) if isinstance(made, tl.tensor) else made
        for name, setting in self.launch.constexprs.items():
            found[name] = constant(setting)
        return found

    def _descriptor(self, pointer: Any, array: Array, hold: Any) -> Any:
        """Host tensor descriptor, as the launcher makes it of a tensor."""
        tl, interpreter = self.language.tl, self.language.interpreter

        def scalar(value: int) -> Any:
            made = interpreter._implicit_cvt(value)
            return tl.tensor(hold(made.handle), made.type)

        strides = [scalar(one) for one in array.item_strides[:-1]]
        return interpreter.interpreter_semantic.make_tensor_descriptor(
            pointer,
            [scalar(one) for one in array.shape],
            [*strides, tl.constexpr(1)],
            [tl.constexpr(one) for one in array.block or ()],
            "zero",
        )

    def _explain(self, error: BaseException) -> CaptureError:
        chain = [error]
        while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(cause)
        own = next((e for e in chain if isinstance(e, CaptureError)), None)
        if own is not None:
            return own
        place = next((p for p in map(self._place, reversed(chain)) if ":" in p), self.launch.path.name)
        return CaptureError(f"{place}: the kernel raises {words_of(chain[-1])}{untested()}", code="kernel-raised")

    def _place(self, error: BaseException) -> str:
        linecache.checkcache()
        return line_of(error, self.launch.text_from or self.launch.path)
