"""A permutation as a lookup table: its array, the source lines that read it, and the cost of that extra load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from swizzle_sim.base.atomic_write import check_folder, write_whole
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from xcd_model import Tensor, Trace
from xcd_model.errors import RunError
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES
from xcd_model.trace.trace import SECTOR_BYTES

ENTRY_BYTES = 4  # int32

TRITON = """\
# Pass the table of table.npy as an int32 tensor on the device; one load a workgroup, and pid is what it works on.
pid = tl.load(swizzle_table + tl.program_id(0))
"""
HIP = """\
// Pass the table of table.npy as const int* on the device; one load a workgroup, and pid is what it works on.
const int pid = swizzle_table[blockIdx.x];
"""


def with_table(trace: Trace, order: np.ndarray) -> Trace:
    """Trace in which hardware workgroup ``w`` first reads entry ``w`` of the table, then computes ``order[w]``."""
    end = max(t.base_line + t.n_lines for t in trace.tensors) * trace.line_bytes
    first = -(-end // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES // trace.line_bytes
    size = ENTRY_BYTES * order.size
    table = Tensor("table", first, -(-size // trace.line_bytes), size)
    byte = np.empty(order.size, np.int64)
    byte[order] = ENTRY_BYTES * np.arange(order.size, dtype=np.int64)
    sectors = trace.line_bytes // SECTOR_BYTES
    template = trace.is_write.size + byte % trace.line_bytes // SECTOR_BYTES
    return replace(
        trace,
        tensors=(*trace.tensors, table),
        start=trace.start + np.arange(trace.start.size),
        base=np.insert(trace.base, trace.start[:-1], first + byte // trace.line_bytes),
        template=np.insert(trace.template, trace.start[:-1], template).astype(np.int32),
        rel_start=np.concatenate([trace.rel_start, trace.rel_start[-1] + 1 + np.arange(sectors)]),
        rel=np.concatenate([trace.rel, np.zeros(sectors, np.int32)]),
        sectors=np.concatenate([trace.sectors, (1 << np.arange(sectors)).astype(np.uint8)]),
        is_write=np.concatenate([trace.is_write, np.zeros(sectors, bool)]),
        tensor=np.concatenate([trace.tensor, np.full(sectors, len(trace.tensors), np.int32)]),
        wave_requests=np.concatenate([trace.wave_requests, np.ones(sectors, np.uint16)]),
        waves=np.concatenate([trace.waves, np.tile([1, 1, 4, 1], (sectors, 1))]),  # one lane reads an integer
    )


def price_table(scorer: Scorer, order: np.ndarray) -> Score:
    """Score of a permutation that is read from a table."""
    trace = with_table(scorer.plan.trace, order)
    kernel = replace(scorer.kernel, build_trace=lambda line_bytes: trace)
    priced = Scorer(kernel, scorer.gpu, replay=scorer.replay, seed=scorer.seed, jitter_ns=scorer.jitter_ns)
    found, free = (one.score_order(order, baseline_us=scorer.baseline.time_us) for one in (priced, scorer))
    if found.time_us >= free.time_us:
        return found
    return replace(found, time_us=free.time_us, speedup=free.speedup)  # a load is never a gain: the roofline's rounding


NAMES = ("table.npy", "table_triton.py", "table.hip")


def check_table_folder(folder: Path) -> None:
    """Create the folder of a table."""
    if (folder / NAMES[0]).exists():
        raise RunError(f"{folder / NAMES[0]} exists, and a table is never overwritten: name another folder")
    check_folder(folder)


def write_table(folder: Path, order: np.ndarray, note: str) -> list[Path]:
    """Write ``table.npy`` and the lines of Triton and HIP that use it into a folder."""
    check_table_folder(folder)
    try:
        np.save(folder / NAMES[0], order.astype(np.int32))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from error
    write_whole(folder / NAMES[1], f"# {note}\n{TRITON}".encode())
    write_whole(folder / NAMES[2], f"// {note}\n{HIP}".encode())
    return [folder / name for name in NAMES]
