"""Partition modes as data: how a chip divides into devices, and the resources of one device.

Assumptions about one device, with the others idle:

- A device has an equal share of the XCDs, and with them of peak rates, static power and HBM capacity.
- In NPS1 addresses interleave over all stacks: the device reaches the whole Infinity Cache and HBM bandwidth, limited
  by the links of its own XCDs to the I/O die.
- With more NUMA domains all its accesses stay in its own domain: an equal share of the Infinity Cache and of the HBM
  bandwidth, at the latency measured for that mode. The devices of one domain share both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xcd_model.errors import SpecError
from xcd_model.spec.caches import Cache
from xcd_model.spec.facts import (
    STATUSES,
    Fact,
    check_keys,
    check_table,
    check_types,
    check_value,
    divides,
    one_of,
    take_values,
)
from xcd_model.spec.gpu import MEMORY_MODES, PARTITIONS, EnergyRates, Gpu, Memory

TABLES = ("partitions", "memory_modes")


@dataclass(frozen=True, kw_only=True)
class MemoryMode:
    """One grouping of the memory of a chip into NUMA domains."""

    domains: int  # NUMA domains; 1 interleaves every address over all stacks
    partitions: list[str]  # the partition modes that it can be combined with
    mall_latency_divisor: float  # latency in NPS1 over latency in this mode
    hbm_latency_divisor: float

    def __post_init__(self):
        check_types(self)
        if not isinstance(self.partitions, list) or not self.partitions:
            raise SpecError(f"partitions = {self.partitions!r} must be a list of partition modes")
        for partition in self.partitions:
            one_of("partitions", partition, PARTITIONS)


@dataclass(frozen=True, kw_only=True)
class Modes:
    """The partition and memory modes of a chip."""

    partitions: Mapping[str, int]  # devices that the chip divides into, by partition mode
    memory_modes: Mapping[str, MemoryMode]
    # status and source by dotted key, such as ``memory_modes.NPS4.domains``
    facts: Mapping[str, Fact] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @property
    def legal(self) -> tuple[tuple[str, str], ...]:
        """Compatible pairs of partition and memory mode."""
        modes = self.memory_modes.items()
        return tuple((p, m) for p in self.partitions for m, mode in modes if p in mode.partitions)


def read_modes(data: Mapping[str, Any], xcds: int) -> Modes:
    """Read the tables of modes of a description; both may be missing."""
    facts: dict[str, Fact] = {}
    for key in TABLES:
        check_table(key, data.get(key, {}))
    partitions = take_values("partitions.", data.get("partitions", {}), facts)
    for name, devices in partitions.items():
        one_of("partitions key", name, PARTITIONS)
        check_value(f"partitions.{name}", devices, "int")
        divides(f"partitions.{name}", devices, "xcds", xcds)
    modes = {}
    for name, table in data.get("memory_modes", {}).items():
        one_of("memory_modes key", name, MEMORY_MODES)
        modes[name] = _memory_mode(f"memory_modes.{name}", table, partitions, facts)
    return Modes(partitions=partitions, memory_modes=modes, facts=facts)


def _memory_mode(key: str, table: Any, partitions: Mapping[str, int], facts: dict[str, Fact]) -> MemoryMode:
    check_table(key, table)
    check_keys(f"{key}.", table, MemoryMode)
    values = take_values(f"{key}.", table, facts)
    try:
        mode = MemoryMode(**values)
    except SpecError as error:
        raise SpecError(f"{key}.{error}") from error
    for partition in mode.partitions:
        one_of(f"{key}.partitions", partition, tuple(partitions))
        if partitions[partition] % mode.domains:
            raise SpecError(
                f"{key}.partitions holds {partition}, whose {partitions[partition]} devices "
                f"cannot be spread evenly over {key}.domains = {mode.domains}"
            )
    return mode


def _share(rates: EnergyRates, devices: int) -> EnergyRates:
    """Energy rates of one of ``devices`` equal parts of a chip: static and maximum power are shared out."""
    power = rates.power_w and rates.power_w.scaled(1 / devices)
    return dataclasses.replace(rates, static_w=rates.static_w.scaled(1 / devices), power_w=power)


def device_of(chip: Gpu, modes: Modes, partition: str, memory_mode: str) -> Gpu:
    """Describe one device of a whole chip in another mode."""
    own = (chip.partition, chip.memory_mode)
    if (partition, memory_mode) == own:
        return chip
    if (partition, memory_mode) not in modes.legal:
        legal = modes.legal or (own,)
        fits = [p for p, m in legal if m == memory_mode]
        hint = f"; {memory_mode} needs {' or '.join(fits)}" if fits and partition in modes.partitions else ""
        listed = ", ".join("/".join(pair) for pair in legal)
        raise SpecError(f"{chip.name} cannot be {partition}/{memory_mode}{hint}; legal: {listed}")
    if own != ("SPX", "NPS1"):
        raise SpecError(f"{chip.name} is described as {'/'.join(own)}; devices are derived from SPX/NPS1 only")
    devices, mode = modes.partitions[partition], modes.memory_modes[memory_mode]
    suffix = [partition.lower()] if memory_mode == "NPS1" else [partition.lower(), memory_mode.lower()]
    device = dataclasses.replace(
        chip,
        name="-".join([chip.name, *suffix]),
        title=f"{chip.title}, one of {devices} {partition}/{memory_mode} devices",
        partition=partition,
        memory_mode=memory_mode,
        xcds=chip.xcds // devices,
        dispatch_offset=chip.dispatch_offset % (chip.xcds // devices),
        mall=chip.mall and _mall(chip.mall, mode),
        hbm=_hbm(chip.hbm, devices, mode),
        hbm_rows=chip.hbm_rows and chip.hbm_rows.shared_by(mode.domains),
        peak_tflops={dtype: peak / devices for dtype, peak in chip.peak_tflops.items()},
        energy=chip.energy and _share(chip.energy, devices),
    )
    return dataclasses.replace(device, facts=_facts(device, modes))


def _mall(mall: Cache, mode: MemoryMode) -> Cache:
    for key in ("size_bytes", "channels", "read_bytes_per_cycle"):
        divides("domains", mode.domains, f"mall.{key}", getattr(mall, key))
    return dataclasses.replace(
        mall,
        size_bytes=mall.size_bytes // mode.domains,
        channels=mall.channels // mode.domains,
        read_bytes_per_cycle=mall.read_bytes_per_cycle // mode.domains,
        bandwidth_gbps=mall.bandwidth_gbps and mall.bandwidth_gbps / mode.domains,
        latency_ns=mall.latency_ns / mode.mall_latency_divisor,
    )


def _hbm(hbm: Memory, devices: int, mode: MemoryMode) -> Memory:
    return dataclasses.replace(
        hbm,
        size_bytes=hbm.size_bytes // devices,
        bandwidth_gbps=hbm.bandwidth_gbps / mode.domains,
        peak_bandwidth_gbps=hbm.peak_bandwidth_gbps / mode.domains,
        latency_ns=hbm.latency_ns / mode.hbm_latency_divisor,
    )


def _facts(device: Gpu, modes: Modes) -> dict[str, Fact]:
    """Facts of the chip; a value that the mode changes says so, and is assumed unless it is fitted or the XCD count."""
    prefix = f"memory_modes.{device.memory_mode}."
    causes = {"xcds": f"partitions.{device.partition}"} | {
        f"{part}.latency_ns": f"{prefix}{part}_latency_divisor" for part in ("mall", "hbm")
    }
    changed = {}
    for key, old in device.facts.items():
        value: Any = device
        for word in key.split("."):
            value = value[word] if isinstance(value, Mapping) else getattr(value, word)
        value = list(value) if isinstance(value, tuple) else value  # as TOML has it
        new = dataclasses.asdict(value) if key.startswith("energy.") else {"value": value}
        if new["value"] == old.value:
            changed[key] = old
            continue
        cause = modes.facts.get(causes.get(key, ""))
        status = max(old.status, cause.status, key=STATUSES.index) if cause and key == "xcds" else "assumed"
        status = "fitted" if old.fitted_to else status
        why = cause.source if cause else "taken as an even share of the chip"
        source = f"chip: {old.value} ({old.source}); {device.partition}/{device.memory_mode}: {why}"
        changed[key] = Fact(**new, status=status, source=source, fitted_to=old.fitted_to)
    return changed
