"""`Launch`, one launch of a Triton kernel described without Triton: function, arguments, grid, compile options.

Capture reads addresses from it, the AMD compile its types and constants, the rewrite its source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xcd_model.errors import SizeError

ITEM_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **{"int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8},
    **dict.fromkeys(("fp8e4", "fp8e5", "fp8e4b8", "fp8e5b16"), 1),  # the last two are the fnuz types of MI300X
    **{"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8},
}
ROLES = ("in", "out", "inout")
RARER = ("is_counter", "block", "points_to", "same_as", "offset")  # properties of an array


class SizesAt(dict[str, int]):
    """Problem sizes of a kernel at one of its other grids, and the integers that its parameters are there."""

    def __init__(self, sizes: Mapping[str, int], parameters: Mapping[str, int]):
        super().__init__(sizes)
        self.parameters = dict(parameters)


def known_at(sizes: Mapping[str, int]) -> dict[str, int]:
    """What is known by name at some sizes: the sizes, and of `SizesAt` the parameters."""
    return {**(sizes.parameters if isinstance(sizes, SizesAt) else {}), **sizes}


@dataclass(frozen=True, kw_only=True)
class Array:
    """A tensor argument: the properties that a launch needs before the tensor exists.

    Each argument is a tensor of its own, one object that is given twice too, but for those that say ``same_as``.

    Parameters
    ----------
    shape : tuple of int
        Items along each axis, each at least 1.
    dtype : str
        A key of `ITEM_BYTES`.
    strides : tuple of int, optional
        Items from one to the next along each axis; row-major by default.
    role : {"in", "out", "inout"}
        Whether the kernel reads it, writes it, or both.
    is_index : bool
        Its values decide addresses (as CSR row pointers do), so capture needs them real.
    is_counter : bool
        Its items, 0 at first, are atomic counters from which programs claim tiles.
    block : tuple of int, optional
        Where the launch hands over a host tensor descriptor of it: the descriptor's block shape.
    points_to : tuple of str
        Where its items are addresses, as ``group_a_ptrs`` of a grouped matmul holds: for each item the argument whose
        tensor begins there. Such an argument need not be a parameter of the kernel.
    same_as : str
        Argument whose memory this one is, or a part of, as where a tensor is given twice or updated in place.
    offset : int
        Items of that tensor before the first of this one.

    Raises
    ------
    SizeError
        If a side, the type, the role, the strides or the offset make no sense.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    role: str = "in"
    is_index: bool = False
    is_counter: bool = False
    block: tuple[int, ...] | None = None
    points_to: tuple[str, ...] = ()
    same_as: str = ""
    offset: int = 0

    def __post_init__(self):
        if self.shape is ...:  # of a draft: its declaration says which argument that is
            return
        if (
            not isinstance(self.shape, tuple)
            or not self.shape
            or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in self.shape)
        ):
            raise SizeError(f"shape = {self.shape!r}: a tuple of one or more integers, each at least 1")
        if self.dtype not in ITEM_BYTES:
            raise SizeError(f"dtype = {self.dtype!r}: one of {', '.join(ITEM_BYTES)}")
        if self.role not in ROLES:
            raise SizeError(f"role = {self.role!r}: one of {', '.join(ROLES)}")
        if self.strides is not None and (len(self.strides) != len(self.shape) or min(self.strides) < 0):
            raise SizeError(f"strides = {self.strides!r}: one for each axis of {self.shape}, none negative")
        if self.block is not None and len(self.block) != len(self.shape):
            raise SizeError(f"block = {self.block!r}: one side for each axis of {self.shape}")
        if type(self.offset) is not int or self.offset < 0 or (self.offset and not self.same_as):
            raise SizeError(f"offset = {self.offset!r}: items of the tensor that same_as names, none negative")
        if not all(isinstance(one, str) for one in self.points_to):
            raise SizeError('points_to takes names of arguments, such as ("a", "b"), not arrays')
        if self.points_to and (self.shape != (len(self.points_to),) or self.dtype not in ("int64", "uint64")):
            raise SizeError(
                f"points_to = {self.points_to!r}: one name for each item of an int64 array, not {self.shape}"
            )

    @property
    def item_bytes(self) -> int:
        """Size of one item [bytes]."""
        return ITEM_BYTES[self.dtype]

    @property
    def item_strides(self) -> tuple[int, ...]:
        """Items from one to the next along each axis."""
        if self.strides is not None:
            return self.strides
        return tuple(int(np.prod(self.shape[axis + 1 :], dtype=np.int64)) for axis in range(len(self.shape)))

    @property
    def drawn_between(self) -> tuple[int, int] | None:
        """Integers that its items are drawn from where the kernel gives none, the last excluded; None for zeros.

        An index, a counter and what programs change, as locks, begin at zero, which is in range. Eight bits are data:
        quantized numbers, or the exponents of scales, which are near 127. Wider ones may yet be read as an index.
        """
        if self.is_index or self.is_counter or self.points_to or self.role != "in" or self.dtype[:2] in ("fp", "bf"):
            return None
        return {"int8": (-16, 17), "uint8": (112, 144)}.get(self.dtype, (0, 2))

    @property
    def n_items(self) -> int:
        """Items from the first to the last, gaps included."""
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.item_strides, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, without the rarer properties where they are not set."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        left_out = {name for name in RARER if not values[name]} - ({"offset"} if self.same_as else set())
        return {name: value for name, value in values.items() if name not in left_out}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Array:
        """Inverse of `as_dict`."""
        given: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in values.items()}
        return cls(**given)


@dataclass(frozen=True, kw_only=True, eq=False)
class Launch:
    """One launch of a ``@triton.jit`` function.

    Parameters
    ----------
    path : Path
        File that holds the function.
    function : str
        Its name there.
    arguments : mapping of str to Array, int or float
        Run-time arguments by parameter name, in the order of the signature.
    constexprs : mapping of str to int, float, bool, str or None
        ``tl.constexpr`` parameters by name, and pointers that are None. Text that begins with ``tl.`` names a part of
        the language, such as ``"tl.float32"``.
    grid : tuple of int
        Programs along x, y, z.
    num_warps, num_stages : int
        Compile options.
    options : mapping
        Further ones, such as ``waves_per_eu``.
    config : str
        Which of an autotuner's configurations this is, such as ``"0 of 12"``; empty without one.
    sliced_for : str
        GPU that the file sees, such as ``"gfx942"``, where only what the function needs of it is run; empty where all
        of it is.
    text_from : Path, optional
        Other file whose text is read in place of that of ``path``.
    make_inputs : callable
        ``make_inputs(seed) -> dict`` of numpy arrays, by the name of each "in" and "inout" array.

    Raises
    ------
    SizeError
        If an array is the same as one that is not there, of another type, or too small for it.
    """

    path: Path
    function: str
    arguments: Mapping[str, Array | int | float]
    constexprs: Mapping[str, int | float | bool | str | None]
    grid: tuple[int, ...]
    num_warps: int = 4
    num_stages: int = 2
    options: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    config: str = ""
    sliced_for: str = ""
    text_from: Path | None = None
    make_inputs: Callable[[int], Mapping[str, Any]] = field(repr=False, default=lambda seed: {})

    @property
    def arrays(self) -> dict[str, Array]:
        """The tensor arguments."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, Array)}

    @property
    def scalars(self) -> dict[str, Any]:
        """What is no tensor, by parameter."""
        return {n: value for n, value in {**self.arguments, **self.constexprs}.items() if not isinstance(value, Array)}

    @property
    def integers(self) -> dict[str, int]:
        """Integers of the launch, by parameter."""
        return {name: value for name, value in self.scalars.items() if type(value) is int}

    def __post_init__(self):
        for name, array in self.arrays.items():
            owner = self.arrays.get(array.same_as)
            if array.same_as and (owner is None or owner.same_as or owner.dtype != array.dtype):
                raise SizeError(f"{name}: same_as = {array.same_as!r}: a tensor of its own, of type {array.dtype}")
            if owner is not None and array.offset + array.n_items > owner.n_items:
                last = array.offset + array.n_items
                raise SizeError(f"{name}: ends {last - owner.n_items} items past the end of {array.same_as}")

    @property
    def storage(self) -> dict[str, Array]:
        """The tensors that have memory of their own, "inout" where arguments that share it differ in role."""
        found = {name: array for name, array in self.arrays.items() if not array.same_as}
        for array in self.arrays.values():
            if array.same_as and found[array.same_as].role != array.role:
                found[array.same_as] = replace(found[array.same_as], role="inout")
        return found

    @property
    def pointed_to(self) -> set[str]:
        """Tensors that the kernel gets through an array of pointers."""
        return {name for array in self.arrays.values() for name in array.points_to}

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, without ``make_inputs``."""
        rarer = {"options": dict(self.options), "config": self.config, "sliced_for": self.sliced_for}
        rarer["text_from"] = str(self.text_from or "")
        return {
            "path": str(self.path),
            "function": self.function,
            "arguments": {
                name: {"array": value.as_dict()} if isinstance(value, Array) else {"value": value}
                for name, value in self.arguments.items()
            },
            "constexprs": dict(self.constexprs),
            "grid": list(self.grid),
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            **{name: value for name, value in rarer.items() if value},
        }

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], make_inputs: Callable[[int], Mapping[str, Any]] | None = None
    ) -> Launch:
        """Inverse of `as_dict`."""
        arguments = {
            name: Array.from_dict(value["array"]) if "array" in value else value["value"]
            for name, value in values["arguments"].items()
        }
        changed = {"path": Path(values["path"]), "arguments": arguments, "grid": tuple(values["grid"])}
        if values.get("text_from"):
            changed["text_from"] = Path(values["text_from"])
        return cls(**{**values, **changed}, make_inputs=make_inputs or (lambda seed: {}))
