"""`Gpu`: one device as data, with its memory, occupancy limits and energy rates; each part checks itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.spec.caches import Cache, InstructionCache
from xcd_model.spec.facts import Fact, Range, at_most, check_types, check_value, divides, one_of
from xcd_model.spec.nvidia import HbmBanks, L2Partitions

DTYPES = ("fp64", "fp32", "fp16", "bf16", "fp8", "int8")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The HBM of one GPU.

    Parameters
    ----------
    size_bytes : int
    bandwidth_gbps : float
        Reached by a streaming benchmark [GB/s].
    peak_bandwidth_gbps : float
        Of the data sheet [GB/s].
    latency_ns : float
        Load-to-use time of a miss in every cache, from the CU [ns].
    burst_bytes : int
        Smallest access [bytes].
    turnaround_ns : float, optional
        NVIDIA only: mean extra read latency at full load with a quarter or more of the time spent on writes (read-write
        turnaround), see `xcd_model.nvidia.memory`; none where not given [ns].
    """

    size_bytes: int
    bandwidth_gbps: float
    peak_bandwidth_gbps: float
    latency_ns: float
    burst_bytes: int
    turnaround_ns: float | None = None

    def __post_init__(self):
        check_types(self)
        at_most("bandwidth_gbps", self.bandwidth_gbps, "peak_bandwidth_gbps", self.peak_bandwidth_gbps)
        at_most("turnaround_ns", self.turnaround_ns or 0.0, "a millisecond", 1e6)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Occupancy limits of one CU, and the timing of its workgroups."""

    waves_per_cu: int
    wave_size: int
    threads_per_workgroup: int
    simds_per_cu: int
    # 32-bit registers a lane of one SIMD, shared by its waves (architectural and accumulation together)
    vgprs_per_simd: int
    vgpr_granule: int  # registers are allocated to a wave in multiples of this
    lds_bytes_per_cu: int
    workgroups_per_cu: int  # maximum of single-wave workgroups on one CU
    barriers_per_cu: int  # maximum of workgroups of two or more waves on one CU: each occupies a barrier
    # limit on outstanding L2 reads of a CU: at the limit it issues no further load; no limit where not given
    reads_in_flight_per_cu: int | None = None
    # LDS that the system reserves for each workgroup, part of what a profiler reports; none where it is left out
    lds_reserved_bytes: int | None = None
    # lanes of a vector instruction that a SIMD executes in a cycle; without it vector work takes no time
    lanes_per_simd: int | None = None
    # most workgroups that are dispatched as one cluster; none are where it is left out
    workgroups_per_cluster: int | None = None
    # from the end of a workgroup to the first instruction of its successor in the slot; none where not given [ns]
    workgroup_gap_ns: float | None = None
    # cycles of a SIMD that a scalar instruction of a wave takes, as a remap adds them; none where not given
    scalar_cycles: float | None = None
    # cycles from one scalar instruction of a wave to the next, which waits for it; none where not given
    scalar_wait_cycles: float | None = None
    # what one CU takes in from the L2 a cycle while all do; as much as the L2 gives where not given
    fill_bytes_per_cycle: float | None = None
    # what a step of copies into LDS takes from the first address to the barrier behind the last byte, besides the
    # latency of where the data is; none where not given [ns]
    copy_ns: float | None = None
    # part of a step's products after which loads behind them in a pipelined loop are issued; none where not given
    products_before_loads: float | None = None
    # if true (default), one workgroup's matrix instructions overlap another's vector instructions on a CU
    matrix_beside_vector: bool | None = None

    def __post_init__(self):
        check_types(self)
        divides("wave_size", self.wave_size, "threads_per_workgroup", self.threads_per_workgroup)
        divides("simds_per_cu", self.simds_per_cu, "waves_per_cu", self.waves_per_cu)
        divides("vgpr_granule", self.vgpr_granule, "vgprs_per_simd", self.vgprs_per_simd)
        at_most("workgroups_per_cu", self.workgroups_per_cu, "waves_per_cu", self.waves_per_cu)
        at_most("barriers_per_cu", self.barriers_per_cu, "workgroups_per_cu", self.workgroups_per_cu)


@dataclass(frozen=True, kw_only=True)
class EnergyRates:
    """Energy of a byte at each level and of an operation, static power and the power limit."""

    l2_pj_per_byte: Range  # of a byte read or written at the L2, at the HBM [pJ/byte]
    # the same between an XCD and the I/O die, and at the Infinity Cache; None where the GPU has no such part
    fabric_pj_per_byte: Range | None = None
    mall_pj_per_byte: Range | None = None
    hbm_pj_per_byte: Range
    static_w: Range  # power that does not depend on the kernel [W]
    power_w: Range | None = None  # maximum power of a launch; where it is left out, power does not limit times [W]
    # of one operation of the matrix cores, by data type; a multiply-add is two [pJ]
    flop_pj: Mapping[str, Range] = dataclasses.field(hash=False)

    def __post_init__(self):
        for dtype in self.flop_pj:
            one_of("flop_pj key", dtype, DTYPES)
        if self.power_w and self.power_w.low <= self.static_w.high:
            raise SpecError(f"power_w.low = {self.power_w.low} must be more than static_w.high = {self.static_w.high}")
        object.__setattr__(self, "flop_pj", MappingProxyType(dict(self.flop_pj)))

    def __reduce__(self):
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(EnergyRates, **values | {"flop_pj": dict(self.flop_pj)}), ()  # a mappingproxy does not pickle

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EnergyRates:
        """Rebuild from the plain dictionaries of `xcd_model.spec.gpu.Gpu.as_dict`."""
        single = {key: item and Range(**item) for key, item in values.items() if key != "flop_pj"}
        return cls(**single, flop_pj={key: Range(**item) for key, item in values["flop_pj"].items()})


PARTITIONS = ("SPX", "DPX", "TPX", "QPX", "CPX")
MEMORY_MODES = ("NPS1", "NPS2", "NPS4")
DISPATCHES = ("round_robin", "chunked", "one_after_another")


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
        cap, at which arithmetic is; where ``energy.power_w`` was measured, the clock without a cap [MHz].
    peak_clock_mhz : float, optional
        At which ``peak_tflops`` are; ``clock_mhz`` where not given [MHz].
    compute_spread : float
        Speed variation of workgroups with equal work: standard deviation over mean.
    dispatch : str
        Which XCD gets which workgroups, one of `DISPATCHES`: ids in turn, chunks of ``dispatch_chunk`` ids in turn, or
        an equal run of ids for one XCD after another.
    dispatch_chunk : int, optional
        Consecutive ids of a chunk, where ``dispatch`` is ``"chunked"``; ``cus_per_xcd`` where not given.
    dispatch_offset : int
        XCD of workgroup 0; in round robin workgroup w goes to XCD ``(w + dispatch_offset) % xcds``.
    fabric_bytes_per_cycle : int
        Read rate from the I/O die into one XCD's L2 [bytes/cycle].
    l1 : Cache or None
        Of one CU; None replays every request at the L2.
    l1i : InstructionCache or None
        None counts no instruction fetches.
    l2 : Cache
    l2_partitions : L2Partitions or None
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
    peak_clock_mhz: float | None = None
    compute_spread: float = 0.0
    dispatch: str = "round_robin"
    dispatch_chunk: int | None = None
    dispatch_offset: int = 0
    fabric_bytes_per_cycle: int
    l1: Cache | None = None
    l1i: InstructionCache | None = None
    l2: Cache
    l2_partitions: L2Partitions | None = None
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
        one_of("dispatch", self.dispatch, DISPATCHES)
        at_most("sustained_clock_mhz", self.sustained_clock_mhz, "clock_mhz", self.clock_mhz)
        at_most("compute_spread", self.compute_spread, "a half", 0.5)
        at_most("dispatch_offset", self.dispatch_offset, "xcds - 1", self.xcds - 1)
        if self.mall is not None and self.mall.bandwidth_gbps is None:
            raise SpecError("mall.bandwidth_gbps is missing; the Infinity Cache needs the bandwidth that it reaches")
        if self.l2_partitions is not None:
            divides(
                "l2.line_bytes", self.l2.line_bytes, "l2_partitions.coherence_bits", self.l2_partitions.coherence_bits
            )
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
        return self.peak_tflops[dtype] * self.sustained_clock_mhz / (self.peak_clock_mhz or self.clock_mhz)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # of IPython and Hypothesis, which print the facts too
        printer.text(repr(self))

    def as_dict(self) -> dict[str, Any]:
        """Everything, facts included, as plain dicts and numbers that ``json.dumps`` takes."""
        return {key: _plain(value) for key, value in self._shallow().items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Gpu:
        """Inverse of `as_dict`; raises SpecError where a value is missing, unknown or breaks a rule."""
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
    "l2_partitions": L2Partitions,
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
