"""What stands in for packages that are not there: importing them is harmless, needing a value of theirs is an error.

`torch` answers as it would on the GPU that is asked for; so does Triton's own driver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NoReturn

from swizzle_sim.workload.launch import ITEM_BYTES, Array
from xcd_model.errors import CaptureError

COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}  # AMD, MI300X and MI355X data sheets
LDS_BYTES = {"gfx942": 65_536, "gfx950": 163_840}  # AMD CDNA 3 and CDNA 4 ISA guides
NAMES = {"gfx942": "AMD Instinct MI300X", "gfx950": "AMD Instinct MI355X"}
OTHER_VENDORS = ("corex", "npu", "musa", "mlu", "hpu", "gcu", "ipu", "txda", "mtia", "ptpu", "sdaa", "maca")
TORCH_DTYPES = {
    "bool": "bool", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64", "fp8e4": "float8_e4m3fn", "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz", "fp16": "float16", "bf16": "bfloat16",
    "fp32": "float32", "fp64": "float64",
}  # fmt: skip


class StandIn:
    """Any object of a package that is not there."""

    def __init__(self, name: str, known: dict[str, Any] | None = None):
        vars(self).update(_name=name, _known=known or {})

    def __getattr__(self, attribute: str) -> Any:
        name = f"{self._name}.{attribute}"
        if attribute.startswith("__") and name not in self._known:
            raise AttributeError(attribute)
        if name not in self._known:
            return StandIn(name, self._known)
        if isinstance(self._known[name], AttributeError):
            raise self._known[name]
        return self._known[name]

    def __call__(self, *given: Any, **options: Any) -> Any:
        """Decorate what it is given, or stand in for what it would return."""
        if len(given) == 1 and not options and (callable(given[0]) and not isinstance(given[0], StandIn)):
            return given[0]
        return StandIn(f"{self._name}()", self._known)

    def __getitem__(self, key: Any) -> StandIn:
        return StandIn(f"{self._name}[...]", self._known)

    def __or__(self, other: Any) -> StandIn:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple:
        return ()

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, StandIn) and value._name == self._name

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_exc: Any) -> None:
        return None

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, StandIn):
            return self._name == other._name
        return False if other is None else self._needed()

    def __repr__(self) -> str:
        return self._name

    def _needed(self, *_given: Any) -> NoReturn:
        package = re.split(r"[.(\[]", self._name)[0]
        raise CaptureError(
            f"needs the value of {self._name}, and {package} is only stood in for: give what depends on it in "
            "constexprs=...",
            code="declaration",
        )

    __bool__ = __int__ = __index__ = __float__ = __iter__ = __len__ = __contains__ = _needed
    __lt__ = __le__ = __gt__ = __ge__ = _needed
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _needed
    __floordiv__ = __truediv__ = __mod__ = __neg__ = __pow__ = _needed


def module_of(stand_in: StandIn) -> ModuleType:
    """Module with the attributes of a stand-in; of the plain type, since Triton takes nothing else for a module."""
    found = ModuleType(repr(stand_in))
    vars(found)["__getattr__"] = lambda name: getattr(stand_in, name)
    return found


class DtypeStandIn(StandIn):
    """A type of torch's."""

    def __init__(self, name: str, short: str):
        super().__init__(f"torch.{name}")
        vars(self)["itemsize"] = ITEM_BYTES[short]
        vars(self)["is_floating_point"] = short.startswith(("fp", "bf"))


class TensorStandIn:
    """A tensor as heuristics look at it: type, shape, strides and size, no items."""

    is_cuda = True

    def __init__(self, array: Array):
        self.shape, self.dtype = array.shape, torch_dtype(array.dtype)
        self._array, self.ndim = array, len(array.shape)
        self.device = SimpleNamespace(type="cuda", index=0)

    def size(self, axis: int | None = None) -> Any:
        """Shape, or one side of it."""
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        """Items from one to the next along the axes, or along one."""
        strides = self._array.item_strides
        return strides if axis is None else strides[axis]

    def numel(self) -> int:
        """Items."""
        return math.prod(self.shape)

    def element_size(self) -> int:
        """Bytes of an item."""
        return self._array.item_bytes

    def dim(self) -> int:
        """Axes."""
        return self.ndim

    def is_contiguous(self) -> bool:
        """Whether it lies in memory row by row."""
        return self._array.item_strides == Array(shape=self.shape, dtype=self._array.dtype).item_strides

    def data_ptr(self) -> int:
        """Allocators of GPU memory align to at least 256 bytes."""
        return 0


TensorStandIn.__name__ = "Tensor"  # as annotations of kernels' parameters spell it


def torch_dtype(short: str) -> DtypeStandIn:
    """Torch's type of one of `swizzle_sim.workload.launch.ITEM_BYTES`."""
    return DtypeStandIn(TORCH_DTYPES[short], short)


def torch_for(arch: str, more: Mapping[str, Any] = MappingProxyType({})) -> ModuleType:
    """Torch as far as kernels' files ask it which GPU there is, and ``more`` of it by full names."""
    properties = SimpleNamespace(
        gcnArchName=f"{arch}:sramecc+:xnack-", multi_processor_count=COMPUTE_UNITS[arch], warp_size=64,
        name=NAMES[arch], major=9, minor=4 if arch == "gfx942" else 5, shared_memory_per_block=LDS_BYTES[arch],
    )  # fmt: skip
    known: dict[str, Any] = {
        "__version__": "2.9.0+rocm6.4", "version.hip": "6.4.43482", "version.cuda": None, "version.xpu": None,
        "cuda.is_available": lambda: True, "cuda.device_count": lambda: 1, "cuda.current_device": lambda: 0,
        "cuda.get_device_name": lambda *_: NAMES[arch], "cuda.get_device_properties": lambda *_: properties,
        "cuda.get_device_capability": lambda *_: (properties.major, properties.minor),
        "xpu.is_available": lambda: False, "backends.mps.is_available": lambda: False, "cpu.is_available": lambda: True,
        "compiler.is_compiling": lambda: False, "is_grad_enabled": lambda: False, "float": torch_dtype("fp32"),
        "Tensor": TensorStandIn, "half": torch_dtype("fp16"), "long": torch_dtype("int64"), "int": torch_dtype("int32"),
        "device": lambda kind, index=0: SimpleNamespace(type=str(kind).partition(":")[0], index=index),
    }  # fmt: skip
    known |= {name: torch_dtype(short) for short, name in TORCH_DTYPES.items()}
    known |= {vendor: AttributeError(vendor) for vendor in OTHER_VENDORS}
    known = {f"torch.{name}": value for name, value in known.items()} | dict(more)
    known["torch.version"] = module_of(StandIn("torch.version", known))  # kernels may ask it, but call no stand-in
    return module_of(StandIn("torch", known))


def driver_for(target: Any) -> SimpleNamespace:
    """Triton's driver of a GPU that need not be there; nothing is timed on it."""
    arch = target.arch
    properties = {"max_shared_mem": LDS_BYTES[arch], "multiprocessor_count": COMPUTE_UNITS[arch], "warpSize": 64}
    return SimpleNamespace(
        utils=SimpleNamespace(get_device_properties=lambda *_: dict(properties)),
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_active_torch_device=lambda: SimpleNamespace(type="cuda", index=0),
        get_device_interface=lambda: torch_for(arch).cuda,
        get_benchmarker=lambda: StandIn("triton.testing.do_bench"),
    )
