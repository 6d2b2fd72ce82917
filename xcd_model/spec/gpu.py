"""The machine as data: ``Gpu``, its caches, its memory and its occupancy limits, loaded from TOML.

A shipped description is one file in ``xcd_model/spec/gpus``. Everything in it but five plain strings is a *fact*, an
inline table ``{ value, status, source }``; the facts stay with the ``Gpu`` under their dotted keys, so that any
number in a result can be traced to a document, a measurement or an admitted assumption. The tables ``partitions`` and
``memory_modes`` say which other modes the chip has; `xcd_model.spec.modes` derives one device of them.
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
from xcd_model.nvidia.hbm_rows import HbmRows
from xcd_model.nvidia.l2_partitions import Sides
from xcd_model.spec.modes import MEMORY_MODES, PARTITIONS, TABLES, Modes, device_of, read_modes
from xcd_model.spec.parts import DTYPES, Cache, EnergyRates, Fact, InstructionCache, Limits, Memory
from xcd_model.spec.rules import at_most, check_types, check_value, divides, one_of
from xcd_model.spec.tables import RANGE_FORM, check_keys, check_table, take_facts, take_values

if TYPE_CHECKING:
    from importlib.abc import Traversable

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_STRINGS = ("name", "title", "arch", "partition", "memory_mode")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU, or one of the devices that a chip divides into, in one partition mode.

    Parameters
    ----------
    name, title, arch : str
        Short name, full name, and LLVM target such as ``gfx942``.
    partition, memory_mode : str
        ``"SPX"`` and ``"NPS1"`` describe a whole chip, others one device of it.
    xcds, cus_per_xcd : int
    clock_mhz, sustained_clock_mhz : float
        Peak engine clock, at which caches are taken to run, and the clock under a heavy matrix kernel at the power
        cap, at which arithmetic is [MHz].
    compute_spread : float
        How far workgroups that compute the same amount differ in speed: standard deviation over mean.
    dispatch_offset : int
        Workgroup w goes to XCD ``(w + dispatch_offset) % xcds``.
    fabric_bytes_per_cycle : int
        Read rate from the I/O die into one XCD's L2 [bytes/cycle].
    l1 : Cache or None
        One CU's; None replays every request at the L2.
    l1i : InstructionCache or None
        None counts no fetches of code.
    l2 : Cache
    l2_sides : Sides or None
        Two of ``l2``, each for the CUs of a side; None for one for all CUs of an XCD.
    mall : Cache or None
        The Infinity Cache; needs ``bandwidth_gbps``.
    hbm : Memory
    hbm_rows : HbmRows or None
        None takes all bytes as equally fast to reach.
    limits : Limits
    peak_tflops : mapping of str to float
        Dense peak by data type [TFLOPS].
    energy : EnergyRates, optional
        What traffic and operations cost; every one of them a range.
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
    compute_spread: float = 0.0
    dispatch_offset: int = 0
    fabric_bytes_per_cycle: int
    l1: Cache | None = None
    l1i: InstructionCache | None = None
    l2: Cache
    l2_sides: Sides | None = None
    mall: Cache | None = None
    hbm: Memory
    hbm_rows: HbmRows | None = None
    limits: Limits
    peak_tflops: Mapping[str, float] = dataclasses.field(hash=False)
    energy: EnergyRates | None = None
    facts: Mapping[str, Fact] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self):
        check_types(self)
        one_of("partition", self.partition, PARTITIONS)
        one_of("memory_mode", self.memory_mode, MEMORY_MODES)
        at_most("sustained_clock_mhz", self.sustained_clock_mhz, "clock_mhz", self.clock_mhz)
        at_most("compute_spread", self.compute_spread, "a half", 0.5)
        at_most("dispatch_offset", self.dispatch_offset, "xcds - 1", self.xcds - 1)
        if self.mall is not None and self.mall.bandwidth_gbps is None:
            raise SpecError("mall.bandwidth_gbps is missing; the Infinity Cache needs the bandwidth that it reaches")
        if self.l2_sides is not None:
            divides("l2.line_bytes", self.l2.line_bytes, "l2_sides.home_bits", self.l2_sides.home_bits)
        if self.hbm_rows is not None:
            divides("l2.line_bytes", self.l2.line_bytes, "hbm_rows.block_bytes", self.hbm_rows.block_bytes)
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

    def sustained_tflops(self, dtype: str) -> float:
        """Dense rate of a data type at the sustained clock [TFLOPS]."""
        return self.peak_tflops[dtype] * self.sustained_clock_mhz / self.clock_mhz

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
            if values.get("energy") is not None:
                parts["energy"] = EnergyRates.from_dict(values["energy"])
            facts = {key: Fact(**fact) for key, fact in values["facts"].items()}
            return cls(**{**values, **parts, "facts": facts})
        except (KeyError, TypeError, AttributeError) as error:
            raise SpecError(f"not the description of a GPU: {error}") from error

    def _shallow(self) -> dict[str, Any]:
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in pairs}


_SECTIONS: dict[str, type] = {
    "l1": Cache,
    "l1i": InstructionCache,
    "l2": Cache,
    "l2_sides": Sides,
    "mall": Cache,
    "hbm": Memory,
    "hbm_rows": HbmRows,
    "limits": Limits,
}
_TABLES = (*_SECTIONS, "peak_tflops", "energy")
_FORMS = {key: f'{key} = "..."' for key in _STRINGS} | {key: f"a table [{key}]" for key in _TABLES}


def gpu_names() -> list[str]:
    """Names of the shipped descriptions, sorted."""
    return sorted(entry.name[: -len(".toml")] for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def gpu_modes(name: str) -> tuple[tuple[str, str], ...]:
    """Legal pairs of partition and memory mode of a shipped description, or of the file at a path.

    Parameters
    ----------
    name : str
        As for `gpu`.

    Raises
    ------
    UnknownName, SpecError
        As `gpu`.
    """
    chip, modes = _read(_find(_split(name)[0]))
    return modes.legal or ((chip.partition, chip.memory_mode),)


def gpu(name: str, *, partition: str | None = None, memory_mode: str | None = None) -> Gpu:
    """Load a shipped description by name, in any case, or the file at a path that ends in ``.toml``.

    Parameters
    ----------
    name : str
        One of `gpu_names`, and with it the mode, if you like: ``mi300x``, ``mi300x-cpx``, ``mi300x-cpx-nps4``.
    partition, memory_mode : str, optional
        In any case; by default what the name says, or else what the file describes (SPX and NPS1).

    Returns
    -------
    device : Gpu
        One device of that mode; `xcd_model.spec.modes` says what it is taken to see.

    Raises
    ------
    UnknownName
        If there is no such name; the message lists those there are.
    SpecError
        If the description breaks a rule, or the chip does not have the mode; the message lists those it has.
    """
    base, asked = _split(name)
    for key, value in (("partition", partition), ("memory_mode", memory_mode)):
        if value is not None and asked.setdefault(key, value.upper()) != value.upper():
            raise SpecError(f"{key} = {value!r} contradicts the name {name!r}; leave one of them out")
    chip, modes = _read(_find(base))
    mode = {"partition": chip.partition, "memory_mode": chip.memory_mode} | asked
    return device_of(chip, modes, **mode)


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
    return _read(source)[0]


def load_modes(source: str | Path | Traversable) -> Modes:
    """Read the modes of one TOML description; raises as `load_gpu`."""
    return _read(source)[1]


def _read(source: str | Path | Traversable) -> tuple[Gpu, Modes]:
    path = Path(source) if isinstance(source, str) else source
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        chip = _build({key: value for key, value in data.items() if key not in TABLES})
        return chip, read_modes(data, chip.xcds)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text, so not TOML: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path.name}: is not TOML: {error}") from error
    except SpecError as error:
        raise SpecError(f"{path.name}: {error}") from error


def shipped(name: str) -> Traversable:
    """Path of a shipped description."""
    return _shipped() / f"{name.lower()}.toml"


def _shipped() -> Traversable:
    return resources.files("xcd_model") / "spec" / "gpus"


def _find(name: str) -> str | Traversable:
    """Path of the description that ``name`` means."""
    if name.endswith(".toml"):
        return name
    if name.lower() not in gpu_names():
        raise UnknownName("GPU", name, gpu_names())
    return shipped(name)


def _split(name: str) -> tuple[str, dict[str, str]]:
    """Take the mode off a name: ``mi300x-cpx-nps4`` is the mi300x in CPX and NPS4."""
    base, *words = name.split("-")
    if name.endswith(".toml") or base.lower() not in gpu_names():
        return name, {}
    asked = {"partition" if word.upper() in PARTITIONS else "memory_mode": word.upper() for word in words}
    if len(asked) < len(words) or not set(asked.values()) <= {*PARTITIONS, *MEMORY_MODES}:
        legal = ["-".join([base, *pair]).lower() for pair in gpu_modes(base)]
        raise UnknownName("GPU", name, [*gpu_names(), *legal])
    return base, asked


def _build(data: Mapping[str, Any]) -> Gpu:
    """Turn parsed TOML into a Gpu, collecting the facts on the way."""
    facts: dict[str, Fact] = {}
    plain = {key: data[key] for key in _STRINGS if key in data}
    tables = {key: data[key] for key in _TABLES if key in data}
    scalars = {key: value for key, value in data.items() if key not in plain and key not in tables}
    check_keys("", data, Gpu, _FORMS)
    values = plain | take_values("", scalars, facts)
    for key, table in tables.items():
        check_table(key, table)
        values[key] = _energy(table, facts) if key == "energy" else _section(key, table, facts)
    return Gpu(**values, facts=facts)


def _section(key: str, table: Mapping[str, Any], facts: dict[str, Fact]) -> Any:
    part = _SECTIONS.get(key, dict)
    if key in _SECTIONS:
        check_keys(f"{key}.", table, part)
    inner = take_values(f"{key}.", table, facts)
    try:
        return part(**inner)
    except SpecError as error:
        raise SpecError(f"{key}.{error}") from error


def _energy(table: Mapping[str, Any], facts: dict[str, Fact]) -> EnergyRates:
    check_keys("energy.", table, EnergyRates, {"flop_pj": "a table [energy.flop_pj]"})
    check_table("energy.flop_pj", table["flop_pj"])
    single = {key: item for key, item in table.items() if key != "flop_pj"}
    rates = take_facts("energy.", single, facts, RANGE_FORM)
    flops = take_facts("energy.flop_pj.", table["flop_pj"], facts, RANGE_FORM)
    try:
        pj = {key: fact.range() for key, fact in flops.items()}
        return EnergyRates(flop_pj=pj, **{key: fact.range() for key, fact in rates.items()})
    except SpecError as error:
        raise SpecError(f"energy.{error}") from error


def _plain(value: Any) -> Any:
    """Dicts and numbers all the way down; a fact without a range does not mention one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = {field.name: getattr(value, field.name) for field in fields(value)}
        idle = ("low", "high") if isinstance(value, Fact) and value.low is None else ()
        return {key: _plain(item) for key, item in pairs.items() if key not in idle}
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _gpu_from_fields(values: dict[str, Any]) -> Gpu:
    return Gpu(**values)
