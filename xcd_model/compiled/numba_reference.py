"""Named tuples that compiled functions take by reference: an address in place of hundreds of numbers.

numba passes a tuple of arrays as all their fields, seven numbers an array: the state of a timed replay was hundreds of
arguments, which each function packed and each call unpacked, and most of what LLVM was given to read. So what
`by_reference` marks is an address. What a kernel makes itself stays a value. A kernel never writes a field (of a
tuple), only what an array in it holds, so loads of fields are marked as loads of constants: LLVM moves them out of
loops, past all stores.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba.core import cgutils, types
from numba.core.datamodel import register_default
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, unbox

from xcd_model.compiled.by_reference import tell_of_each


class Reference(types.NamedTuple):
    """The type of such a tuple; its name is short, as it is part of the name of each function that takes one."""

    def __init__(self, fields: tuple[Any, ...], cls: type):
        super().__init__(fields, cls)
        self.name = f"{cls.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"

    @property
    def key(self) -> str:
        """Of equal types, and short: numba hashes a type each time that it meets it."""
        return self.name


def _tell_numba(cls: type) -> None:
    typeof_impl.register(cls)(lambda value, context: Reference(tuple(typeof_impl(one, context) for one in value), cls))


tell_of_each(_tell_numba)


@register_default(Reference)
class _ReferenceModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference):
        fields = [manager[field].get_value_type() for field in kind]
        super().__init__(manager, kind, cgutils.ir.LiteralStructType(fields).as_pointer())


@unbox(Reference)
def _unbox_reference(kind: Reference, tuple_object: Any, c: Any) -> NativeValue:
    """Put the fields into the frame of the function that Python calls; the tuple keeps its arrays while that runs."""
    builder, api = c.builder, c.pyapi
    fields = cgutils.alloca_once(builder, c.context.get_value_type(kind).pointee)
    failed = cgutils.false_bit
    for i, field in enumerate(kind):
        value, place = api.tuple_getitem(tuple_object, i), cgutils.gep_inbounds(builder, fields, 0, i)
        if isinstance(field, types.Array):  # the dispatcher has looked at the type
            failed = builder.or_(failed, _adapt(api, value, place))
        elif field == types.int64:
            builder.store(api.long_as_longlong(value), place)
        else:
            native = c.unbox(field, value)
            builder.store(native.value, place)
            failed = builder.or_(failed, native.is_error)
    failed = builder.or_(failed, cgutils.is_not_null(builder, api.err_occurred()))
    with builder.if_then(failed, likely=False):
        api.err_set_string("PyExc_TypeError", f"{kind} is not what the kernel was compiled for")
    return NativeValue(fields, is_error=failed)


def _adapt(api: Any, array: Any, place: Any) -> Any:
    """Write numba's structure of an array, one without a count of references, to ``place``; whether that failed."""
    kind = cgutils.ir.FunctionType(cgutils.int32_t, [api.pyobj, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(api.module, kind, "numba_adapt_ndarray")
    status = api.builder.call(function, (array, api.builder.bitcast(place, cgutils.voidptr_t)))
    return cgutils.is_not_null(api.builder, status)


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
