"""The quantities that rows measure, and how each comes out of a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Counts = Mapping[str, float]


@dataclass(frozen=True)
class Quantity:
    """Unit, whether errors are taken as points (``%``) or relative, and the value from a prediction's counts."""

    unit: str
    relative: bool
    of: Callable[[Counts], float | None]


def _named(name: str) -> Callable[[Counts], float | None]:
    return lambda counts: counts.get(name)


def _read_hit_pct(counts: Counts) -> float | None:
    """Share of the sectors asked by SMs that their side of the L2 held: a miss is all sectors of what it fetched."""
    if not counts.get("l2_read_bytes"):
        return None
    missed = counts["l2_read_misses"] * counts["fetch_bytes"] + counts.get("l2_far_read_bytes", 0)
    return 100 * max(0.0, 1 - missed / counts["l2_read_bytes"])


def _dram_write_bytes(counts: Counts) -> float | None:
    """What was written while the kernel ran, as Nsight Compute counts it: an NVIDIA GPU's L2 outlives the kernel."""
    written = counts.get("hbm_write_bytes")
    return None if written is None else written - counts.get("flushed_bytes", 0)


def _tflops(counts: Counts) -> float | None:
    return counts["flops"] / counts["time_us"] / 1e6 if counts.get("time_us") else None


QUANTITIES = {
    "l2_hit_pct": Quantity("%", False, _named("l2_hit_pct")),
    "l2_read_hit_pct": Quantity("%", False, _read_hit_pct),
    "l1_hit_pct": Quantity("%", False, _named("l1_hit_pct")),
    "l2_hits": Quantity("requests", True, _named("l2_hits")),
    "l2_misses": Quantity("requests", True, _named("l2_misses")),
    "l2_read_misses": Quantity("requests", True, _named("l2_read_misses")),
    "dram_read_bytes": Quantity("B", True, _named("hbm_read_bytes")),
    "dram_write_bytes": Quantity("B", True, _dram_write_bytes),
    "time_us": Quantity("us", True, _named("time_us")),
    "throughput_tflops": Quantity("TFLOPS", True, _tflops),
}
