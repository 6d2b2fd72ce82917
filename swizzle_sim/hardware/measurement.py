"""`Measurement`: what a profiler counted of one candidate, in the words of `Score`, with its doubts.

Sources: FETCH_SIZE of the ROCm counter definitions for gfx942 (read bytes); a public 1 GiB copy on a MI300X for what
the TCC counters mean (HIT + MISS counts requests: 128-byte reads, 64-byte writes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xcd_model.errors import HardwareError

KINDS = ("measured", "replayed")
SAME = 0.01  # request totals of two passes that differ by more are of different launches, or of a multiplexed counter
HITS = {"amd": ("TCC_HIT_sum", "TCC_MISS_sum")}
SM_READS = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Counts and times of one candidate on one GPU."""

    candidate: str  # its id in the bundle, and what the proposer called it
    name: str
    kind: str  # ``replayed``: from a stand-in or a recording; never to be reported as a measurement
    # ``bitwise``, ``tolerance``, ``differs``, ``failed`` or ``unchecked``: the worse of before and after timing
    right: str
    # 0 to 1. AMD: TCC_HIT over TCC_HIT + TCC_MISS, in requests. NVIDIA: of the sectors that SMs read.
    l2_hit_rate: float | None = None
    l2_hits: float | None = None  # requests (AMD), sectors read by SMs (NVIDIA)
    l2_misses: float | None = None
    # [bytes]: AMD: from and to the fabric, Infinity Cache hits among them. NVIDIA: from and to device memory.
    read_bytes: float | None = None
    write_bytes: float | None = None
    time_cold_us: float | None = None  # [us]: medians by GPU events
    time_warm_us: float | None = None
    spread_cold_us: tuple[float, float] | None = None  # (float, float) or None [us]: quartiles
    doubts: tuple[str, ...] = ()  # why a figure may not be what it seems

    def __post_init__(self):
        if self.kind not in KINDS:
            raise HardwareError(f"kind = {self.kind!r}: one of {', '.join(KINDS)}")


def measurement_of(candidate: str, entry: Mapping[str, Any], kind: str, vendor: str) -> Measurement:
    """Measurement from a candidate's entry in a result."""
    counters = {name: one["value"] for name, one in entry.get("counters", {}).items()}
    counts = (_amd if vendor == "amd" else _nvidia)(counters)
    timing = entry.get("time_us", {})
    cold, warm = timing.get("cold"), timing.get("warm")
    doubts = [*doubts_of(entry.get("passes", [])), *(note for one in entry.get("passes", []) for note in one["notes"])]
    hits, misses = counts["l2_hits"], counts["l2_misses"]
    return Measurement(
        candidate=candidate,
        name=entry["name"],
        kind=kind,
        right=_right(entry),
        l2_hit_rate=hits / (hits + misses) if hits is not None and misses is not None and hits + misses else None,
        **counts,
        time_cold_us=cold["median"] if cold else None,
        time_warm_us=warm["median"] if warm else None,
        spread_cold_us=(cold["lower_quartile"], cold["upper_quartile"]) if cold else None,
        doubts=tuple(dict.fromkeys(doubts)),
    )


def _right(entry: Mapping[str, Any]) -> str:
    order = ("bitwise", "tolerance", "unchecked", "differs", "failed")
    found = [entry.get(key, {}).get("how", "unchecked") for key in ("check_before", "check_after")]
    return max(found, key=order.index)


def _amd(counters: Mapping[str, float]) -> dict[str, float | None]:
    reads, small, wide = (counters.get(f"TCC_{name}_sum") for name in ("EA0_RDREQ", "EA0_RDREQ_32B", "BUBBLE"))
    writes, full = (counters.get(f"TCC_EA0_WRREQ{name}_sum") for name in ("", "_64B"))
    read = None
    if reads is not None and small is not None and wide is not None:
        read = wide * 128 + (reads - wide - small) * 64 + small * 32
    return {
        "l2_hits": counters.get("TCC_HIT_sum"),
        "l2_misses": counters.get("TCC_MISS_sum"),
        "read_bytes": read,
        "write_bytes": None if writes is None or full is None else full * 64 + (writes - full) * 32,
    }


def _nvidia(counters: Mapping[str, float]) -> dict[str, float | None]:
    total, hits = (counters.get(name) for name in SM_READS)
    return {
        "l2_hits": hits,
        "l2_misses": None if total is None or hits is None else max(0.0, total - hits),
        "read_bytes": counters.get("dram__bytes_read.sum"),
        "write_bytes": counters.get("dram__bytes_write.sum"),
    }


def doubts_of(passes: list[Mapping[str, Any]]) -> list[str]:
    """What is doubtful in the passes of one candidate: a rate over 1, totals that differ from pass to pass."""
    found: list[str] = []
    totals = [_median(one, "TCC_REQ_sum") for one in passes]
    known = [total for total in totals if total is not None]
    if known and max(known) - min(known) > SAME * max(known):
        found.append(
            f"TCC_REQ_sum is {min(known):.0f} in one pass and {max(known):.0f} in another: the passes saw different "
            "launches, so counters of different passes do not go together"
        )
    homes = {name: {i for i, one in enumerate(passes) if _median(one, name) is not None} for name in HITS["amd"]}
    if all(homes.values()) and not set.intersection(*homes.values()):
        found.append("TCC_HIT_sum and TCC_MISS_sum come from different passes: their rate is of two runs")
    for one in passes:
        for part, whole in (("TCC_HIT_sum", "TCC_REQ_sum"), (SM_READS[1], SM_READS[0])):
            hits, total = _median(one, part), _median(one, whole)
            if hits is not None and total and hits > total * (1 + SAME):
                found.append(f"{part} / {whole} = {hits / total:.3f}: a hit rate over 1")
        found += _unsteady(one)
    return found


def _unsteady(one: Mapping[str, Any]) -> list[str]:
    """Counters that launches of one pass do not agree on."""
    found = []
    for name in ("TCC_MISS_sum", "dram__bytes_read.sum"):
        values = [d["counters"][name] for d in one["dispatches"] if name in d["counters"]]
        if values and max(values) > 1.1 * min(values) + 1000:
            found.append(f"{name} is {min(values):.0f} to {max(values):.0f} over {len(values)} launches")
    return found


def _median(one: Mapping[str, Any], name: str) -> float | None:
    values = sorted(d["counters"][name] for d in one["dispatches"] if name in d["counters"])
    return values[len(values) // 2] if values and not math.isnan(values[0]) else None
