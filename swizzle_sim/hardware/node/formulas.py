"""From counters to requests and bytes: one table by architecture with its public sources, and what is doubtful in them.

A ``_sum`` counter is already over all channels of all XCDs; one without it has a row for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SAME = 0.01  # request totals of two passes that differ by more are of different launches, or of a multiplexed counter
ADDS_UP = 0.05  # hits and misses beside requests: the rest is what probes and write-backs add
SM_READS, SM_HITS = (f"lts__t_sectors_srcunit_tex_op_read{end}.sum" for end in ("", "_lookup_hit"))


@dataclass(frozen=True)
class Formula:
    """One quantity as a weighted sum of counters."""

    quantity: str  # a field of `swizzle_sim.hardware.results.Measurement`
    unit: str
    terms: Mapping[str, int]  # weight by counter
    source: str

    def value(self, counters: Mapping[str, float]) -> float | None:
        """Value, at least 0; None where a counter is not there."""
        if not self.terms.keys() <= counters.keys():
            return None
        return max(0.0, sum(weight * counters[name] for name, weight in self.terms.items()))

    def __str__(self) -> str:
        parts = (f"{'-' if w < 0 else '+'} {f'{abs(w)} ' * (abs(w) != 1)}{name}" for name, w in self.terms.items())
        return f"{self.quantity} = {' '.join(parts).removeprefix('+ ')} [{self.unit}]"


_DOCUMENT = "ROCm documentation, MI300 and MI200 performance counters"
_LOOKUPS = f"{_DOCUMENT}: HIT and MISS count requests (a 1 GiB copy on MI300X: 128 B a read, 64 B a write)"
_MI200 = f"{_DOCUMENT}: a read request is 64 B, or 32 B where counted so"
_MI300 = "FETCH_SIZE of gfx942 in ROCm's counter definitions: a BUBBLE is a read of 128 B, others are 64 or 32 B"
_MI350 = (
    "rocm-systems PR 2501: reads counted by size, since BUBBLE stays 0 (AMD-AGI/GEAK PR 468: half of all reads lost)"
)
_WRITES = "WRITE_SIZE in ROCm's counter definitions: 64 B where counted so, else 32 B"
_NCU = "Nsight Compute's metrics: reads of SMs in 32 B sectors, and of device memory in bytes"


def _sums(**weights: int) -> dict[str, int]:
    return {f"TCC_{name}_sum": weight for name, weight in weights.items()}


_HITS = (
    Formula("l2_hits", "requests", _sums(HIT=1), _LOOKUPS),
    Formula("l2_misses", "requests", _sums(MISS=1), _LOOKUPS),
)
_WRITTEN = Formula("write_bytes", "bytes to the fabric", _sums(EA0_WRREQ=32, EA0_WRREQ_64B=32), _WRITES)
_FROM = "bytes from the fabric"
FORMULAS: dict[str, tuple[Formula, ...]] = {
    "gfx90a": (
        *_HITS,
        Formula("read_bytes", _FROM, _sums(EA_RDREQ=64, EA_RDREQ_32B=-32), _MI200),
        Formula("write_bytes", _WRITTEN.unit, _sums(EA_WRREQ=32, EA_WRREQ_64B=32), _WRITES),
    ),
    "gfx942": (
        *_HITS,
        Formula("read_bytes", _FROM, _sums(EA0_RDREQ=64, BUBBLE=64, EA0_RDREQ_32B=-32), _MI300),
        _WRITTEN,
    ),
    "gfx950": (
        *_HITS,
        Formula("read_bytes", _FROM, _sums(EA0_RDREQ_128B=128, EA0_RDREQ_64B=64, EA0_RDREQ_32B=32), _MI350),
        _WRITTEN,
    ),
    "sm_": (
        Formula("l2_hits", "sectors read by SMs", {SM_HITS: 1}, _NCU),
        Formula("l2_misses", "sectors read by SMs", {SM_READS: 1, SM_HITS: -1}, _NCU),
        Formula("read_bytes", "bytes from memory", {"dram__bytes_read.sum": 1}, _NCU),
        Formula("write_bytes", "bytes to memory", {"dram__bytes_write.sum": 1}, _NCU),
    ),
}


def formulas_of(arch: str) -> tuple[Formula, ...]:
    """Formulas of an architecture; of one that is not known, those of look-ups alone."""
    return next((found for name, found in FORMULAS.items() if arch.startswith(name)), _HITS)


def quantities(counters: Mapping[str, float], arch: str) -> dict[str, float | None]:
    """Hits, misses and bytes of one launch; None where a counter is missing."""
    none: dict[str, float | None] = dict.fromkeys(("l2_hits", "l2_misses", "read_bytes", "write_bytes"))
    return none | {one.quantity: one.value(counters) for one in formulas_of(arch)}


def hit_rate(found: Mapping[str, float | None]) -> float | None:
    """Share of hits, 0 to 1; None where nothing was looked up."""
    hits, misses = found["l2_hits"], found["l2_misses"]
    return None if hits is None or misses is None or not hits + misses else hits / (hits + misses)


def missing(counters: Mapping[str, float], arch: str) -> list[str]:
    """Quantities that have some of their counters and not all, in words."""
    found = []
    for one in formulas_of(arch):
        lacks = [name for name in one.terms if name not in counters]
        if lacks and len(lacks) < len(one.terms):
            found.append(f"no {one.quantity} without {', '.join(lacks)}")
    return found


def doubts_of(passes: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is doubtful in the passes of one candidate, less those whose counters were counted again."""
    found: list[str] = []
    again = {name for one in passes if one.get("state") != "doubtful" for name in _names(one)}
    passes = [one for one in passes if one.get("state") != "doubtful" or not again.issuperset(_names(one))]
    known = [total for one in passes if (total := _median(one, "TCC_REQ_sum")) is not None]
    if known and max(known) - min(known) > SAME * max(known):
        found.append(
            f"TCC_REQ_sum is {min(known):.0f} in one pass and {max(known):.0f} in another: the passes saw different "
            "launches, so counters of different passes do not go together"
        )
    pair = ("TCC_HIT_sum", "TCC_MISS_sum")
    homes = [{i for i, one in enumerate(passes) if _median(one, name) is not None} for name in pair]
    if all(homes) and not set.intersection(*homes):
        found.append("TCC_HIT_sum and TCC_MISS_sum come from different passes: their rate is of two runs")
    for one in passes:
        found += doubts_of_pass(one)
    return list(dict.fromkeys(found))


def torn(one: Mapping[str, Any]) -> list[str]:
    """Signs that the counters of one pass are not of the same launches: a profiler took them in turn."""
    hits, misses, total = (_median(one, f"TCC_{name}_sum") for name in ("HIT", "MISS", "REQ"))
    found = []
    both = None if hits is None or misses is None else hits + misses
    if both is not None and total is not None and abs(both - total) > ADDS_UP * max(total, both):
        found.append(
            f"TCC_HIT_sum + TCC_MISS_sum = {both:.0f}, TCC_REQ_sum = {total:.0f}: not counted over the same time, as "
            "where a profiler multiplexes counters or another program uses the GPU"
        )
    launches, names = len(one["dispatches"]), _names(one)
    if some := [name for name in names if sum(name in d["counters"] for d in one["dispatches"]) < launches]:
        found.append(f"{', '.join(some)}: not in each of {launches} launches: the profiler took counters in turn")
    return found


def doubts_of_pass(one: Mapping[str, Any]) -> list[str]:
    """Zeros, counters that do not add up, that launches do not share, or that differ from launch to launch."""
    values = {name: _median(one, name) for name in _names(one) if not name.startswith(("launch__", "gpu__"))}
    if len(values) > 1 and not any(values.values()):
        return [f"all counters are zero ({', '.join(values)}): the profiler did not see this GPU's work"]
    found = torn(one)
    for part, whole in (("TCC_HIT_sum", "TCC_REQ_sum"), (SM_HITS, SM_READS)):
        hits, total = values.get(part), values.get(whole)
        if hits is not None and total and hits > total * (1 + SAME):
            found.append(f"{part} / {whole} = {hits / total:.3f}: a hit rate over 1")
    sizes = [values.get(f"TCC_EA0_RDREQ{size}_sum") for size in ("_32B", "_64B", "_128B")]
    reads, by_size = values.get("TCC_EA0_RDREQ_sum"), sum(filter(None, sizes))
    if reads and None not in sizes and abs(by_size - reads) > ADDS_UP * reads:
        found.append(f"reads of 32, 64 and 128 B are {by_size:.0f} of {reads:.0f} in all")
    for name in ("TCC_MISS_sum", "dram__bytes_read.sum"):
        each = [d["counters"][name] for d in one["dispatches"] if name in d["counters"]]
        if each and max(each) > 1.1 * min(each) + 1000:
            found.append(f"{name} is {min(each):.0f} to {max(each):.0f} over {len(each)} launches")
    return found


def _names(one: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for dispatch in one["dispatches"] for name in dispatch["counters"]))


def _median(one: Mapping[str, Any], name: str) -> float | None:
    values = sorted(d["counters"][name] for d in one["dispatches"] if name in d["counters"])
    return values[len(values) // 2] if values and not math.isnan(values[0]) else None
