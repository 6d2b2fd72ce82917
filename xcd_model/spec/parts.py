"""The HBM, the occupancy limits and the energy rates of a `xcd_model.spec.gpu.Gpu`; each checks itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.spec.facts import Range, at_most, check_types, divides, one_of

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
    mixed_wait_ns : float, optional
        NVIDIA only: mean extra read latency at full load with a quarter or more of the time spent on writes (read-write
        turnaround), see `xcd_model.nvidia.hbm_turnaround`; none where not given [ns].
    """

    size_bytes: int
    bandwidth_gbps: float
    peak_bandwidth_gbps: float
    latency_ns: float
    burst_bytes: int
    mixed_wait_ns: float | None = None

    def __post_init__(self):
        check_types(self)
        at_most("bandwidth_gbps", self.bandwidth_gbps, "peak_bandwidth_gbps", self.peak_bandwidth_gbps)
        at_most("mixed_wait_ns", self.mixed_wait_ns or 0.0, "a millisecond", 1e6)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Occupancy limits of one CU, and the timing of its workgroups.

    Parameters
    ----------
    waves_per_cu, simds_per_cu, wave_size, threads_per_workgroup : int
    lanes_per_simd : int, optional
        Lanes of a vector instruction that a SIMD executes in a cycle; without it vector work takes no time.
    vgprs_per_simd : int
        32-bit registers a lane of one SIMD, shared by its waves (architectural and accumulation together).
    vgpr_granule : int
        Registers are allocated to a wave in multiples of this.
    lds_bytes_per_cu : int
    lds_reserved_bytes : int, optional
        LDS that the system reserves for each workgroup, part of what a profiler reports; none where it is left out.
    workgroups_per_cu : int
        Maximum of single-wave workgroups on one CU.
    barriers_per_cu : int
        Maximum of workgroups of two or more waves on one CU: each occupies a barrier.
    reads_in_flight_per_cu : int, optional
        Limit on outstanding L2 reads of a CU: at the limit it issues no further load; no limit where not given.
    workgroup_gap_ns : float, optional
        From the end of a workgroup to the first instruction of its successor in the slot; none where not given [ns].
    matrix_beside_vector : bool, optional
        If true (default), one workgroup's matrix instructions overlap another's vector instructions on a CU.
    """

    waves_per_cu: int
    wave_size: int
    threads_per_workgroup: int
    simds_per_cu: int
    vgprs_per_simd: int
    vgpr_granule: int
    lds_bytes_per_cu: int
    workgroups_per_cu: int
    barriers_per_cu: int
    reads_in_flight_per_cu: int | None = None
    lds_reserved_bytes: int | None = None
    lanes_per_simd: int | None = None
    workgroup_gap_ns: float | None = None
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
    """Energy of a byte at each level and of an operation, static power and the power limit.

    Parameters
    ----------
    l2_pj_per_byte, hbm_pj_per_byte : Range
        Of a byte read or written at the L2, at the HBM [pJ/byte].
    fabric_pj_per_byte, mall_pj_per_byte : Range, optional
        The same between an XCD and the I/O die, and at the Infinity Cache; None where the GPU has no such part.
    static_w : Range
        Power that does not depend on the kernel [W].
    power_w : Range, optional
        Maximum power of a launch; where it is left out, power does not limit times [W].
    flop_pj : mapping of str to Range
        Of one operation of the matrix cores, by data type; a multiply-add is two [pJ].
    """

    l2_pj_per_byte: Range
    fabric_pj_per_byte: Range | None = None
    mall_pj_per_byte: Range | None = None
    hbm_pj_per_byte: Range
    static_w: Range
    power_w: Range | None = None
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
