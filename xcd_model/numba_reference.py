"""Named tuples that compiled functions take by reference: an address in place of hundreds of numbers.

numba passes a tuple of arrays as all their fields, seven numbers an array: the state of a timed replay was hundreds of
arguments, which each function packed and each call unpacked, and most of what LLVM was given to read.

    @by_reference
    class Slots(NamedTuple): ...       made by Python, and read by kernels: ``slots.pid`` is a load from its address

What a kernel makes itself stays a value. A kernel never writes a field (of a tuple), only what an array in it holds, so
loads of fields are marked as loads of constants: LLVM moves them out of loops, past all stores.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.core.datamodel import register_default
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, unbox

Tuple = TypeVar("Tuple", bound=type)


class Reference(types.NamedTuple):
    """The type of such a tuple; its name is short, as it is part of the name of each function that takes one."""

    def __init__(self, fields: tuple[Any, ...], cls: type):
        super().__init__(fields, cls)
        self.name = f"{cls.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"


def by_reference(cls: Tuple) -> Tuple:
    """Let compiled functions take a class of named tuples by reference."""
    typeof_impl.register(cls)(lambda value, context: Reference(tuple(typeof_impl(one, context) for one in value), cls))
    return cls


@register_default(Reference)
class _ReferenceModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference):
        fields = [manager[field].get_value_type() for field in kind]
        super().__init__(manager, kind, cgutils.ir.LiteralStructType(fields).as_pointer())


@unbox(Reference)
def _unbox_reference(kind: Reference, tuple_object: Any, c: Any) -> NativeValue:
    """Put the fields into the frame of the function that Python calls; valid while the kernel runs."""
    fields = cgutils.alloca_once(c.builder, c.context.get_value_type(kind).pointee)
    is_error = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    natives = []
    for i, field in enumerate(kind):
        native = c.unbox(field, c.pyapi.tuple_getitem(tuple_object, i))
        c.builder.store(native.value, cgutils.gep_inbounds(c.builder, fields, 0, i))
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(cgutils.true_bit, is_error)
        natives.append((field, native))

    def cleanup() -> None:
        for field, native in reversed(natives):
            if native.cleanup:
                native.cleanup()
            if c.context.enable_nrt:
                c.context.nrt.decref(c.builder, field, native.value)

    return NativeValue(fields, is_error=c.builder.load(is_error), cleanup=cleanup)


@lower_getattr_generic(Reference)
def _load_field(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    index = kind.fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, address, 0, index))
    module = builder.module
    root = module.add_metadata(["fields of tuples"])
    of_type = module.add_metadata(["field", root])
    zero, constant = (cgutils.ir.IntType(64)(n) for n in (0, 1))
    field.set_metadata("tbaa", module.add_metadata([of_type, of_type, zero, constant]))
    return impl_ret_borrowed(context, builder, kind[index], field)
