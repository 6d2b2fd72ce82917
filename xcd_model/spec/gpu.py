"""`Gpu`: one device as data, the caches, memory and occupancy limits that every other module reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.spec.caches import Cache, InstructionCache
from xcd_model.spec.facts import Fact, at_most, check_types, check_value, divides, one_of
from xcd_model.spec.nvidia import HbmBanks, L2Partitions
from xcd_model.spec.parts import DTYPES, EnergyRates, Limits, Memory

PARTITIONS = ("SPX", "DPX", "TPX", "QPX", "CPX")
MEMORY_MODES = ("NPS1", "NPS2", "NPS4")


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
        Speed variation of workgroups with equal work: standard deviation over mean.
    dispatch_offset : int
        Workgroup w goes to XCD ``(w + dispatch_offset) % xcds``.
    fabric_bytes_per_cycle : int
        Read rate from the I/O die into one XCD's L2 [bytes/cycle].
    l1 : Cache or None
        Of one CU; None replays every request at the L2.
    l1i : InstructionCache or None
        None counts no instruction fetches.
    l2 : Cache
    l2_sides : L2Partitions or None
        NVIDIA only: two partitions, each as ``l2`` says; None for one L2 that all CUs of an XCD share alike.
    mall : Cache or None
        The Infinity Cache; needs ``bandwidth_gbps``.
    hbm : Memory
    hbm_rows : HbmBanks or None
        NVIDIA only: row activations of the HBM; None gives an access no cost but its bytes.
    limits : Limits
    peak_tflops : mapping of str to float
        Dense peak by data type [TFLOPS].
    energy : EnergyRates, optional
        Energy of a byte at each level and of an operation, each a range.
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
    l2_sides: L2Partitions | None = None
    mall: Cache | None = None
    hbm: Memory
    hbm_rows: HbmBanks | None = None
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
            parts = {key: part(**values[key]) for key, part in SECTIONS.items() if values.get(key) is not None}
            if values.get("energy") is not None:
                parts["energy"] = EnergyRates.from_dict(values["energy"])
            facts = {key: Fact(**fact) for key, fact in values["facts"].items()}
            return cls(**{**values, **parts, "facts": facts})
        except (KeyError, TypeError, AttributeError) as error:
            raise SpecError(f"not the description of a GPU: {error}") from error

    def _shallow(self) -> dict[str, Any]:
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in pairs}


SECTIONS: dict[str, type] = {
    "l1": Cache,
    "l1i": InstructionCache,
    "l2": Cache,
    "l2_sides": L2Partitions,
    "mall": Cache,
    "hbm": Memory,
    "hbm_rows": HbmBanks,
    "limits": Limits,
}


def _plain(value: Any) -> Any:
    """Dicts and numbers all the way down; a fact mentions a range or rows only where it has them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = {field.name: getattr(value, field.name) for field in fields(value)}
        optional = ("low", "high", "fitted_to") if isinstance(value, Fact) else ()
        return {key: _plain(item) for key, item in pairs.items() if not (key in optional and item in (None, ()))}
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _gpu_from_fields(values: dict[str, Any]) -> Gpu:
    return Gpu(**values)
