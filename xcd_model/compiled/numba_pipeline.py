"""numba's compiler for kernels, without the passes and the look-ups that they do not need.

A quarter of the time before a first timed replay was numba's passes for closures, contexts, errors that are raised,
expressions of whole arrays and loops over tuples, none of which kernels have, and its search, once for each ``+``,
through all that can be added. Nor do kernels count references, for which numba notes where a variable is read last.
Its classes are not in numba's public interface; `numba_setup` does without them where it must.

An index of an array counts from the front alone: kernels have no ``a[-1]``, and numba's question at each access whether
an index is below 0 was 6 to 10 % of a replay. With ``NUMBA_BOUNDSCHECK=1`` a negative one is an IndexError.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]  # compiled: it has no stubs
from numba.core import config, errors, typed_passes, untyped_passes
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import register_default
from numba.core.datamodel.models import OpaqueModel
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering
from numba.core.types import Array, BaseTuple, Dispatcher, Function, Integer, UniTuple, uint64, unliteral
from numba.core.typing import Context

import xcd_model.compiled.numba_reference  # noqa: F401 - tells numba of the tuples that kernels take by reference

_UNUSED = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.IRLegalization,
    typed_passes.NopythonRewrites,
    typed_passes.DumpParforDiagnostics,
)


# numba marks up the message of each error that it makes, and makes ten thousand while it finds out what a kernel means,
# nearly all to catch them: where colorama is installed that takes a fiftieth of the time, for no colour at all.
_highlighted: Any = getattr(errors, "HighlightColorScheme", None)
if _highlighted and getattr(config, "COLOR_SCHEME") == "no_color":  # noqa: B009  (it is, unless a user chose another)
    _highlighted._markup = lambda scheme, message, *colours: message


def _from_the_front(signature: Any) -> Any:
    """Let an access to an array take unsigned integers, of which numba does not ask whether they are below 0."""
    array, index, *value = signature.args
    each: Any = index if isinstance(index, BaseTuple) else (index,)
    if not all(isinstance(one, Integer) for one in each):
        return signature
    unsigned = UniTuple(uint64, len(each)) if isinstance(index, BaseTuple) else uint64
    return signature.replace(args=(array, unsigned, *value))


class _Remembered(Function):
    """An operator or a built-in function that is asked once for what it gives of some types."""

    def __init__(self, function: Function) -> None:
        self.__dict__ = function.__dict__
        self._given: dict[Any, Any] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        key = args, tuple(kws.items())
        if key not in self._given:
            self._given[key] = super().get_call_type(context, args, kws)
            if self.typing_key in (operator.getitem, operator.setitem) and isinstance(args[0], Array):
                self._given[key] = _from_the_front(self._given[key])
        return self._given[key]

    def augment(self, other: Any) -> Any:
        """A function of numba's own, with what was registered since."""
        return Function(self.templates).augment(other)


register_default(_Remembered)(OpaqueModel)


@functools.lru_cache
class _Remembering(Context):
    """A typing context of numba's, with `_Remembered` functions and what each attribute of a type is."""

    def __init__(self, context: Context) -> None:
        self.__dict__ = context.__dict__
        self._functions_given: dict[Any, Any] = {}
        self._attributes_given: dict[Any, Any] = {}

    def _lookup_global(self, value: Any) -> Any:
        kind = super()._lookup_global(value)
        if type(kind) is not Function:
            return kind
        if id(kind) not in self._functions_given:
            self._functions_given[id(kind)] = _Remembered(kind), kind  # which keeps its id from another
        return self._functions_given[id(kind)][0]

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """As numba does, but a function is not typed and lowered anew for each literal that it is called with."""
        if isinstance(func, Dispatcher):
            args = tuple(unliteral(one) for one in args)
        return super().resolve_function_type(func, args, kws)

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        key = kind, name
        if self._attributes_given.get(key) is None:  # what is not there may yet be registered
            self._attributes_given[key] = super().resolve_getattr(kind, name)
        return self._attributes_given[key]


class KernelCompiler(CompilerBase):
    """numba's compiler of nopython mode without `_UNUSED`; a kernel's expressions are typed as any other's."""

    def __init__(self, context: Context, *others: Any) -> None:
        super().__init__(_Remembering(context), *others)
        self.state.targetctx.typing_context = self.state.typingctx

    def lowering(self, kind: Any) -> Any:
        """Pass that takes the place of one of numba's."""
        return kind

    def define_pipelines(self) -> list[Any]:
        """Numba's passes but for `_UNUSED`."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(self.lowering(kind), name) for kind, name in manager.passes if kind not in _UNUSED]
        manager.finalize()
        return [manager]


class Kept(FunctionCache):
    """Compiled code on disk. To load it, numba would first register all that it can compile, SciPy's BLAS among it."""

    def __init__(self, function: Any, *, counted: bool):
        super().__init__(function)
        self._counted = counted

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Code of a signature, or None; what counts references calls numba's runtime."""
        if self._counted:
            rtsys.initialize(target)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)


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


class Uncompiler(KernelCompiler):
    """The compiler of kernels with `_LowerUncompiled` in place of numba's lowering."""

    def lowering(self, kind: Any) -> Any:
        """Pass that takes the place of one of numba's."""
        return _LowerUncompiled if kind is NativeLowering else kind
