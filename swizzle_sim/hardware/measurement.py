"""`Measurement`: what a profiler counted of one candidate, in the words of `Score`, with its doubts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swizzle_sim.hardware.node.formulas import doubts_of, hit_rate, missing, quantities
from swizzle_sim.hardware.node.manifest import RIGHT
from xcd_model.errors import HardwareError

KINDS = ("measured", "replayed")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Counts and times of one candidate on one GPU."""

    candidate: str  # its id in the bundle, and what the proposer called it
    name: str
    kind: str  # ``replayed``: from a stand-in or a recording; never to be reported as a measurement
    # one of `RIGHT`, ``differs``, ``failed`` or ``unchecked``: the worse of before and after timing
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
    # lowest and highest of the launches counted, by field; of the cold time the quartiles
    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # why a figure may not be what it seems

    def __post_init__(self):
        if self.kind not in KINDS:
            raise HardwareError(f"kind = {self.kind!r}: one of {', '.join(KINDS)}")


def measurement_of(candidate: str, entry: Mapping[str, Any], kind: str, arch: str) -> Measurement:
    """Measurement from a candidate's entry in a result."""
    counters = {name: one["value"] for name, one in entry.get("counters", {}).items()}
    counts = quantities(counters, arch)
    timing = entry.get("time_us", {})
    cold, warm = timing.get("cold"), timing.get("warm")
    passes = entry.get("passes", [])
    doubts = [*doubts_of(passes), *missing(counters, arch), *(note for one in passes for note in one["notes"])]
    return Measurement(
        candidate=candidate,
        name=entry["name"],
        kind=kind,
        right=_right(entry),
        l2_hit_rate=hit_rate(counts),
        **counts,
        time_cold_us=cold["median"] if cold else None,
        time_warm_us=warm["median"] if warm else None,
        spreads=spreads(passes, arch)
        | ({"time_cold_us": (cold["lower_quartile"], cold["upper_quartile"])} if cold else {}),
        doubts=tuple(dict.fromkeys(doubts)),
    )


def spreads(passes: Iterable[Mapping[str, Any]], arch: str) -> dict[str, tuple[float, float]]:
    """Lowest and highest of each quantity over launches."""
    found: dict[str, tuple[float, float]] = {}
    for launch in (launch for one in passes if one["state"] == "ok" for launch in one["dispatches"]):
        counts = quantities(launch["counters"], arch)
        for name, value in {**counts, "l2_hit_rate": hit_rate(counts)}.items():
            if value is not None:
                low, high = found.get(name, (value, value))
                found[name] = (min(low, value), max(high, value))
    return found


def _right(entry: Mapping[str, Any]) -> str:
    order = (*RIGHT, "unchecked", "differs", "failed")
    found = [entry.get(key, {}).get("how", "unchecked") for key in ("check_before", "check_after")]
    return max(found, key=order.index)
