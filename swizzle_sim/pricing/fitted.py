"""`fitted_constants`: which fitted constants a prediction depends on, and the rows that they were fitted to."""

from __future__ import annotations

from swizzle_sim.workload.work import Work
from xcd_model import Gpu

# Keys, or their beginnings, that lockstep does not read.
TIMED_ONLY = ("limits.reads_in_flight_per_cu", "l2_partitions.under_way", "hbm_rows.")


def fitted_constants(gpu: Gpu, kernel: Work, replay: str, occupancy: int) -> dict[str, tuple[str, ...]]:
    """Fitted constants that a prediction depends on, each with the rows that it was fitted to."""
    facts = {key: fact.fitted_to for key, fact in gpu.facts.items() if fact.status == "fitted"}
    own = {} if kernel.resources.burst_loads else kernel.fitted  # its code says what they stand for
    return {key: rows for key, rows in facts.items() if _is_read(key, kernel, replay, occupancy)} | dict(own)


def _is_read(key: str, kernel: Work, replay: str, occupancy: int) -> bool:
    if key == "limits.matrix_beside_vector":  # `xcd_model.compute_fs`
        return kernel.vector_ops > 0 and occupancy > 1 and not kernel.resources.burst_loads
    if key == "l1i.prefetch_lines":
        return kernel.resources.code_bytes > 0
    if key.startswith("energy.flop_pj."):
        return key == f"energy.flop_pj.{kernel.dtype}"
    return replay == "timed" or not key.startswith(TIMED_ONLY)
