"""How compiled functions are inlined: by LLVM, in the kernel that calls them, after numba has typed each of them once.

    @inlined                 LLVM copies it into each caller: nearly all of a kernel
    @called                  LLVM calls it, unless it finds it short: what is seldom run, or stands in many places
    @njit(inline="always")   numba copies it and types each copy: what Python calls too

With a wrapper for Python, machine code of its own and LLVM's optimization at each level of calls, or with numba's
copies of copies, the timed replay took a minute to compile. What is declared here has none of these: Python cannot call
it, and only the module of the kernel that it ends up in is optimized.

It rests on numba's ``pipeline_class`` and, as ``_nrt`` does, on what is not in its public interface. Were that to go,
``njit(inline="always")`` in place of both makes compiling slow, and no count or time another.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]  # compiled: it has no stubs
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from xcd_model.compiled.numba_pipeline import KernelCompiler
from xcd_model.compiled.numba_setup import njit

# As the entry point from Python it is called on an object that is not callable: a TypeError.
_REFUSES = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value


class _Uncompiled(JITCodeLibrary):
    """A module of LLVM that callers link in, neither optimized nor compiled by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerUncompiled(NativeLowering):
    """Lower to a library that has no code, under an entry point that refuses to be called."""

    _name = "lower_uncompiled"

    def run_pass(self, state: Any) -> bool:
        state.library = _Uncompiled(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        module, name = lowered.fndesc.lookup_module(), state.func_id.func_name
        entry = _dynfunc.make_function(module, name, "", _REFUSES, lowered.env, (state.library,))
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class _Uncompiler(KernelCompiler):
    """The compiler of kernels with `_LowerUncompiled` in place of numba's lowering."""

    def lowering(self, kind: Any) -> Any:
        return _LowerUncompiled if kind is NativeLowering else kind


_options = functools.partial(
    njit, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_Uncompiler
)
inlined: Any = _options(forceinline=True)
called: Any = _options(forceinline=False)


def inlined_twin(function: Any) -> Any:
    """The same function for kernels, of one that Python calls too."""
    return inlined(getattr(function, "py_func", function))  # without py_func where NUMBA_DISABLE_JIT is set
