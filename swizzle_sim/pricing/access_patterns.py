"""What a trace shows of a kernel's loads and stores that no order of its workgroups mends: lanes far apart.

    lanes along the contiguous axis     lanes 8192 B apart
    lane  0  1  2 ... 63                lane  0 | . . . .      each lane has a line of its own:
    line  |---- 1 to 8 lines ----|      lane  1 | . . . .      64 requests where 1 to 8 would do

Loads item by item, as a mask may ask for, have their lanes as far apart as the compiler lays them, and are not meant.
Of an access model's gathers a trace does not know how many lanes asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.work import Work
from xcd_model import Gpu, Trace

SHARE = 0.01  # least part of all requests of the waves, below which nothing is said
# Keys, or their beginnings, that lockstep does not read.
TIMED_ONLY = ("limits.reads_in_flight_per_cu", "l2_partitions.under_way", "hbm_rows.")


@dataclass(frozen=True, kw_only=True)
class Uncoalesced:
    """Loads or stores of one tensor whose neighbouring lanes lie at least a line apart."""

    tensor: str
    is_write: bool
    stride_bytes: int  # [bytes]: from one lane to the next: the commonest distance, in whole lines
    requests: int  # line requests of the launch's waves, and with the lanes side by side
    fewest: int
    lines_a_wave: float  # lines that one instruction of a wave touches, and with its lanes side by side
    fewest_lines_a_wave: float
    share: float  # part of all requests of the launch's waves, 0 to 1

    def __str__(self) -> str:
        return (
            f"uncoalesced {'store to' if self.is_write else 'load of'} {self.tensor}: neighbouring lanes lie "
            f"{self.stride_bytes:,} B apart, so a wave's instruction touches {self.lines_a_wave:.3g} lines "
            f"instead of {self.fewest_lines_a_wave:.3g}; {self.requests:,} requests a launch instead of "
            f"{self.fewest:,}, {100 * self.share:.0f} % of all. No order of workgroups mends that: "
            "transpose the tile or the tensor"
        )


def uncoalesced(trace: Trace) -> list[Uncoalesced]:
    """Uncoalesced accesses of a trace, the one of most requests first."""
    times = np.bincount(trace.template, minlength=trace.is_write.size)
    requests, (waves, fewest, _, _) = trace.requests_of_waves, trace.waves.T
    total, far = int((times * requests).sum()), trace.uncoalesced
    found = []
    for tensor, write in {(int(t), bool(w)) for t, w in zip(trace.tensor[far], trace.is_write[far], strict=True)}:
        mine = np.flatnonzero(far & (trace.tensor == tensor) & (trace.is_write == write))
        asked = times[mine] * requests[mine]
        most = mine[int(np.argmax(asked))]
        found.append(
            Uncoalesced(
                tensor=trace.tensors[tensor].name,
                is_write=write,
                stride_bytes=_step(trace.rel[trace.rel_start[most] : trace.rel_start[most + 1]]) * trace.line_bytes,
                requests=int(asked.sum()),
                fewest=int((times[mine] * fewest[mine]).sum()),
                lines_a_wave=float(requests[most] / waves[most]),
                fewest_lines_a_wave=float(fewest[most] / waves[most]),
                share=int(asked.sum()) / total,
            )
        )
    return sorted((one for one in found if one.share >= SHARE), key=lambda one: -one.requests)


def _step(rel: np.ndarray) -> int:
    """Commonest distance [lines] of two lines of an instruction that its lanes touch one after the other."""
    if rel.size < 2:
        return 0
    values, counts = np.unique(np.abs(np.diff(rel)), return_counts=True)
    return int(values[np.argmax(counts)])


NATIVE = {"fp8e4": "fp8e4b8", "fp8e5": "fp8e5b16"}  # of the formats of 8 bits those that gfx942 multiplies


def emulated(kernel: Kernel, gpu: Gpu) -> dict[str, str]:
    """Tensors in formats that the GPU's matrix instructions do not take, and the format beside it that they do."""
    if gpu.arch != "gfx942" or kernel.launch is None:
        return {}
    return {name: NATIVE[one.dtype] for name, one in kernel.launch.arrays.items() if one.dtype in NATIVE}


def emulated_note(formats: Mapping[str, str], gpu: Gpu) -> str:
    """Sentence on `emulated` formats; empty where there are none."""
    if not formats:
        return ""
    own = " and ".join(sorted(set(formats.values())))
    return (
        f"{', '.join(formats)}: OCP formats of 8 bits, which {gpu.arch} does not multiply. The compiler emulates "
        f"them, so registers, loads and hit rates are not those of its own, {own}"
    )


def pitch_note(pitches: Mapping[str, int], gpu: Gpu) -> str:
    """Sentence on rows a power of two apart, see `Trace.power_of_two_pitches`; empty where the GPU's sets are known."""
    known = gpu.facts.get("l2.index_rows")
    if gpu.xcds == 1 or known is None or known.status not in ("assumed", "fitted"):
        return ""
    far = ", ".join(f"{name} {pitch >> 10} KiB" for name, pitch in pitches.items())
    return (
        f"Rows lie a power of two apart ({far}): there the hit rate depends most on how the L2 picks a set, which is "
        f"{known.status} on {gpu.name}; --uncertainty says by how much"
    )


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
