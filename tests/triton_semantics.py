"""A small model of the part of Triton that emitted helpers use: scalars of 32 bits, C division, no GPU, no Triton.

Written from Triton's language reference, not from the emitter: a plain Python integer meets an `Int32` as a Triton
constant meets an int32 scalar. Wrapping, truncation and types are checked rather than assumed.
"""

import sys
from types import ModuleType, SimpleNamespace


class Int32:
    """One int32 scalar."""

    def __init__(self, value):
        if isinstance(value, Int32):
            value = value.value
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"int32 of {value!r}: a comparison is an int1 in Triton")
        self.value = (value + 2**31) % 2**32 - 2**31

    def __repr__(self):
        return f"Int32({self.value})"

    def __index__(self):
        return self.value

    def __neg__(self):
        return Int32(-self.value)

    def __invert__(self):
        return Int32(~self.value)

    def __bool__(self):
        raise TypeError("an int32 is no condition here: emitted text compares")

    __hash__ = None


def _truncated(a, b):
    if (a, b) == (-(2**31), -1):
        raise OverflowError("-2**31 by -1 is undefined, quotient and remainder")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _truncated,
    "mod": lambda a, b: a - _truncated(a, b) * b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_COMPARISONS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _install():
    for name, operation in _ARITHMETIC.items():
        setattr(Int32, f"__{name}__", lambda a, b, f=operation: Int32(f(a.value, Int32(b).value)))
        setattr(Int32, f"__r{name}__", lambda a, b, f=operation: Int32(f(Int32(b).value, a.value)))
    for name, operation in _COMPARISONS.items():
        setattr(Int32, f"__{name}__", lambda a, b, f=operation: f(a.value, Int32(b).value))


_install()


def where(condition, then, other):
    if not isinstance(condition, bool):
        raise TypeError(f"tl.where on {condition!r}: not a condition")
    then, other = Int32(then), Int32(other)
    return then if condition else other


def _cdiv(a, b):
    return (Int32(a) + (Int32(b) - 1)) // Int32(b)


def _language(ids, counts):
    module = ModuleType("triton.language")
    module.constexpr = object()
    module.where = where
    module.minimum = lambda a, b: Int32(min(Int32(a).value, Int32(b).value))
    module.maximum = lambda a, b: Int32(max(Int32(a).value, Int32(b).value))
    module.cdiv = _cdiv
    module.program_id = lambda axis: Int32(ids[axis])
    module.num_programs = lambda axis: Int32(counts[axis])
    return module


def load(source, name="swizzle"):
    """Function of an emitted helper, run on this model; ``load.ids`` and ``load.counts`` answer the axis calls.

    Only text that our own emitter wrote comes here.
    """
    ids, counts = [0, 0, 0], [1, 1, 1]
    triton = ModuleType("triton")
    triton.jit = lambda function: function
    triton.language = _language(ids, counts)
    names = {}
    kept = {one: sys.modules.get(one) for one in ("triton", "triton.language")}
    sys.modules.update({"triton": triton, "triton.language": triton.language})
    try:
        exec(compile(source, "<emitted>", "exec"), names)  # our own text, no candidate's
    finally:
        for one, module in kept.items():
            if module is None:
                del sys.modules[one]
            else:
                sys.modules[one] = module
    return SimpleNamespace(call=names[name], ids=ids, counts=counts)
