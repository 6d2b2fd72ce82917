"""The machine as data: ``Gpu``, its caches, its memory and its occupancy limits, loaded from TOML.

A shipped description is one file in ``xcd_model/gpus``. Everything in it but five plain strings is a *fact*, an
inline table ``{ value, status, source }``; the facts stay with the ``Gpu`` under their dotted keys, so that any
number in a result can be traced to a document, a measurement or an admitted assumption.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from xcd_model.errors import SpecError, UnknownName
from xcd_model.parts import Cache, Fact, Limits, Memory
from xcd_model.spec_rules import at_most, check_types, check_value, one_of

if TYPE_CHECKING:
    from importlib.abc import Traversable

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

PARTITIONS = ("SPX",)
MEMORY_MODES = ("NPS1",)
DTYPES = ("fp64", "fp32", "fp16", "bf16", "fp8", "int8")

_FACT_FORM = "{ value = ..., status = ..., source = ... }"
_STRINGS = ("name", "title", "arch", "partition", "memory_mode")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU in one partition mode.

    Parameters
    ----------
    name, title, arch : str
        Short name, full name, and LLVM target such as ``gfx942``.
    partition, memory_mode : str
        ``"SPX"`` and ``"NPS1"``, the only modes described so far.
    xcds, cus_per_xcd : int
    clock_mhz, sustained_clock_mhz : float
        Peak engine clock, and the clock under a heavy matrix kernel at the power cap [MHz].
    dispatch_offset : int
        Workgroup w goes to XCD ``(w + dispatch_offset) % xcds``.
    fabric_bytes_per_cycle : int
        Read rate from the I/O die into one XCD's L2 [bytes/cycle].
    l1, l2 : Cache
    mall : Cache or None
        The Infinity Cache; needs ``bandwidth_gbps``.
    hbm : Memory
    limits : Limits
    peak_tflops : mapping of str to float
        Dense peak by data type [TFLOPS].
    facts : mapping of str to Fact
        Status and source by dotted key, such as ``l2.size_bytes``. Not part of equality.

    Raises
    ------
    SpecError
        If a value breaks a rule; the message names key, value and rule.
    """

    name: str
    title: str
    arch: str
    partition: str = "SPX"
    memory_mode: str = "NPS1"
    xcds: int
    cus_per_xcd: int
    clock_mhz: float
    sustained_clock_mhz: float
    dispatch_offset: int = 0
    fabric_bytes_per_cycle: int
    l1: Cache
    l2: Cache
    mall: Cache | None = None
    hbm: Memory
    limits: Limits
    peak_tflops: Mapping[str, float] = dataclasses.field(hash=False)
    facts: Mapping[str, Fact] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self):
        check_types(self)
        one_of("partition", self.partition, PARTITIONS)
        one_of("memory_mode", self.memory_mode, MEMORY_MODES)
        at_most("sustained_clock_mhz", self.sustained_clock_mhz, "clock_mhz", self.clock_mhz)
        at_most("dispatch_offset", self.dispatch_offset, "xcds - 1", self.xcds - 1)
        if self.mall is not None and self.mall.bandwidth_gbps is None:
            raise SpecError("mall.bandwidth_gbps is missing; the Infinity Cache needs the bandwidth that it reaches")
        for dtype, tflops in self.peak_tflops.items():
            one_of("peak_tflops key", dtype, DTYPES)
            check_value(f"peak_tflops.{dtype}", tflops, "float")
        for key in ("peak_tflops", "facts"):
            object.__setattr__(self, key, MappingProxyType(dict(getattr(self, key))))

    def __reduce__(self):
        return _gpu_from_fields, (self._shallow(),)  # a mappingproxy does not pickle

    @property
    def cus(self) -> int:
        """Compute units of the whole GPU."""
        return self.xcds * self.cus_per_xcd

    def slots_per_xcd(self, workgroups_per_cu: int) -> int:
        """Workgroups that one XCD holds at once, given how many fit one CU.

        Raises
        ------
        SpecError
            If ``workgroups_per_cu`` is not 1 to ``limits.workgroups_per_cu``.
        """
        check_value("workgroups_per_cu", workgroups_per_cu, "int")
        at_most("workgroups_per_cu", workgroups_per_cu, "limits.workgroups_per_cu", self.limits.workgroups_per_cu)
        return self.cus_per_xcd * workgroups_per_cu

    def as_dict(self) -> dict[str, Any]:
        """Everything, facts included, as plain dicts and numbers that ``json.dumps`` takes."""
        return {key: _plain(value) for key, value in self._shallow().items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Gpu:
        """Inverse of `as_dict`.

        Raises
        ------
        SpecError
            If a value is missing, unknown or breaks a rule.
        """
        try:
            parts = {key: part(**values[key]) for key, part in _SECTIONS.items() if values.get(key) is not None}
            facts = {key: Fact(**fact) for key, fact in values["facts"].items()}
            return cls(**{**values, **parts, "facts": facts})
        except (KeyError, TypeError) as error:
            raise SpecError(f"not the description of a GPU: {error}") from error

    def _shallow(self) -> dict[str, Any]:
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in pairs}


_SECTIONS: dict[str, type] = {"l1": Cache, "l2": Cache, "mall": Cache, "hbm": Memory, "limits": Limits}


def gpu_names() -> list[str]:
    """Names of the shipped descriptions, sorted."""
    return sorted(entry.name[: -len(".toml")] for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def gpu(name: str) -> Gpu:
    """Load a shipped description by name, in any case, or the file at a path that ends in ``.toml``.

    Raises
    ------
    UnknownName
        If there is no such name; the message lists those there are.
    SpecError
        If the description breaks a rule.
    """
    if name.endswith(".toml"):
        return load_gpu(name)
    if name.lower() not in gpu_names():
        raise UnknownName("GPU", name, gpu_names())
    return load_gpu(_shipped() / f"{name.lower()}.toml")


def load_gpu(source: str | Path | Traversable) -> Gpu:
    """Read one TOML description.

    Parameters
    ----------
    source : str, Path or Traversable

    Raises
    ------
    SpecError
        Names the file, the key, the value and the rule that it breaks.
    """
    path = Path(source) if isinstance(source, str) else source
    try:
        return _build(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text, so not TOML: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path.name}: is not TOML: {error}") from error
    except SpecError as error:
        raise SpecError(f"{path.name}: {error}") from error


def _shipped() -> Traversable:
    return resources.files("xcd_model") / "gpus"


def _build(data: Mapping[str, Any]) -> Gpu:
    """Turn parsed TOML into a Gpu, collecting the facts on the way."""
    facts: dict[str, Fact] = {}
    plain = {key: data[key] for key in _STRINGS if key in data}
    tables = {key: data[key] for key in (*_SECTIONS, "peak_tflops") if key in data}
    scalars = {key: value for key, value in data.items() if key not in plain and key not in tables}
    _check_keys("", data, Gpu)
    values = plain | _values("", scalars, facts)
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise SpecError(f"{key} = {table!r} must be a table, [{key}]")
        if key in _SECTIONS:
            _check_keys(f"{key}.", table, _SECTIONS[key])
        inner = _values(f"{key}.", table, facts)
        try:
            values[key] = _SECTIONS[key](**inner) if key in _SECTIONS else inner
        except SpecError as error:
            raise SpecError(f"{key}.{error}") from error
    return Gpu(**values, facts=facts)


def _values(prefix: str, table: Mapping[str, Any], facts: dict[str, Fact]) -> dict[str, Any]:
    """Take the values out of a table of facts, and file the facts under dotted keys."""
    for key, item in table.items():
        if not isinstance(item, dict) or set(item) != {"value", "status", "source"}:
            raise SpecError(f"{prefix}{key} = {item!r} must be {_FACT_FORM}")
        try:
            facts[prefix + key] = Fact(**item)
        except SpecError as error:
            raise SpecError(f"{prefix}{key}: {error}") from error
    return {key: item["value"] for key, item in table.items()}


def _check_keys(prefix: str, table: Mapping[str, Any], cls: type) -> None:
    """Refuse keys that ``cls`` does not have, and the lack of those that it needs."""
    known = {f.name: f for f in fields(cls) if f.name != "facts"}
    for key in table:
        if key not in known:
            raise SpecError(f"{prefix}{key} is not a known key; known here: {', '.join(sorted(known))}")
    for key, field in known.items():
        if key not in table and field.default is dataclasses.MISSING:
            raise SpecError(f"{prefix}{key} is missing; add {_form(prefix, key)}")


def _form(prefix: str, key: str) -> str:
    """Say how ``key`` is written in TOML."""
    if not prefix and key in _STRINGS:
        return f'{key} = "..."'
    tables = (*_SECTIONS, "peak_tflops")
    return f"a table [{key}]" if not prefix and key in tables else f"{key} = {_FACT_FORM}"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def _gpu_from_fields(values: dict[str, Any]) -> Gpu:
    return Gpu(**values)
