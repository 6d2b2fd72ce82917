"""Dispatch: hardware workgroup id to XCD to CU slot, and how many workgroups are resident on a CU.

    XCD of workgroup w  =  (w + offset) mod X
    ids served by XCD x =  first, first + X, first + 2 X, ...   with first = (x - offset) mod X
    slots of an XCD     =  CUs * workgroups a CU, slot s on CU (s mod CUs); a slot that is free takes the next id

A persistent kernel launches P programs in this way, and program p computes tiles p, p + P, p + 2 P, ... one after the
other. The rule stands here twice: in numpy (`xcd_of`, `first_ids`) and compiled (`_next_pid`).

    workgroups a CU = min over threads, VGPRs, LDS, barriers of (what the CU has) // (what a workgroup takes)
    loads in flight = min(stages * loads a step, bytes of registers and LDS that loads can land in // bytes a load)

Source: HipKittens (arXiv 2511.08083) section 3.4 for the round robin; a constant start offset was seen in public
counter logs of an MI300X virtual function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xcd_model.errors import ReplayError
from xcd_model.numba_setup import njit
from xcd_model.spec.gpu import Gpu
from xcd_model.trace.trace import SECTOR_BYTES, Trace


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one workgroup of a compiled kernel occupies.

    Parameters
    ----------
    threads : int
        Threads a workgroup.
    vgprs : int
        Vector registers a lane, as allocated.
    lds_bytes : int [bytes]
        Local data share a workgroup.
    instructions_in_flight : int
        Tensor instructions of one workgroup that software pipelining keeps in flight (stages times loads a step), if
        there is room for what they load, see `loads_in_flight`.
    source : str
        Where the figures come from: compiler and version, or a document.
    code_bytes : int [bytes]
        Length of the kernel's code; 0 where it is not known.
    """

    threads: int
    vgprs: int
    lds_bytes: int
    instructions_in_flight: int
    source: str
    code_bytes: int = 0


def loads_in_flight(resources: Resources, trace: Trace) -> int:
    """Tensor instructions of one workgroup in flight at once: what a load brings needs registers or LDS to land in.

    Parameters
    ----------
    resources : Resources
        Of one workgroup.
    trace : Trace
        Its reads, in whole sectors, say what a load brings in the mean.

    Returns
    -------
    n : int
        ``resources.instructions_in_flight``, or fewer; at least 1.
    """
    sectors = np.add.reduceat(np.bitwise_count(trace.sectors), trace.rel_start[:-1], dtype=np.int64)
    is_write = trace.is_write[trace.template]
    read, written = sectors[trace.template[~is_write]], sectors[trace.template[is_write]]
    if not read.size:
        return resources.instructions_in_flight
    held_bytes = SECTOR_BYTES * written.mean() if written.size else 0.0
    room_bytes = 4 * resources.vgprs * resources.threads + resources.lds_bytes - held_bytes
    return max(1, min(resources.instructions_in_flight, int(room_bytes / (SECTOR_BYTES * read.mean()))))


def workgroups_per_cu(resources: Resources, gpu: Gpu) -> int:
    """Workgroups that fit one CU at once.

    Parameters
    ----------
    resources : Resources
        Of one workgroup.
    gpu : Gpu

    Returns
    -------
    n : int, at least 1

    Raises
    ------
    ReplayError
        If not even one workgroup fits; names the resource that is short.

    Source: AMD CDNA 3 ISA reference; 512 registers a SIMD lane are shared by the waves on it.
    """
    limits = gpu.limits
    waves = -(-resources.threads // limits.wave_size)
    granule = limits.vgpr_granule
    vgprs = -(-max(1, resources.vgprs) // granule) * granule
    waves_per_simd = min(limits.waves_per_cu // limits.simds_per_cu, limits.vgprs_per_simd // vgprs)
    fits = {
        f"threads ({resources.threads} of {limits.threads_per_workgroup} a workgroup)": int(
            resources.threads <= limits.threads_per_workgroup
        )
        * limits.workgroups_per_cu,
        f"waves and VGPRs ({waves} waves of {vgprs} registers)": waves_per_simd * limits.simds_per_cu // waves,
        f"LDS ({resources.lds_bytes} of {limits.lds_bytes_per_cu} B)": (
            limits.lds_bytes_per_cu // resources.lds_bytes if resources.lds_bytes else limits.workgroups_per_cu
        ),
    }
    if waves > 1:  # a workgroup of one wave needs no barrier
        fits["barriers"] = limits.barriers_per_cu
    short = min(fits, key=lambda name: fits[name])
    if fits[short] < 1:
        raise ReplayError(
            f"no workgroup fits a CU of {gpu.name}: short of {short}; use smaller blocks, fewer num_stages or num_warps"
        )
    return min(fits[short], limits.workgroups_per_cu)


def xcd_of(n_workgroups: int, gpu: Gpu, programs: int | None = None) -> np.ndarray:
    """XCD that each hardware workgroup id runs on, or each tile of a persistent kernel of so many programs.

    Parameters
    ----------
    n_workgroups : int
    gpu : Gpu
    programs : int, optional
        Of a persistent kernel.

    Returns
    -------
    xcd : (n_workgroups,) int64 array, each in ``0 .. gpu.xcds - 1``
    """
    return (np.arange(n_workgroups, dtype=np.int64) % (programs or n_workgroups) + gpu.dispatch_offset) % gpu.xcds


def first_ids(xcds: int, offset: int) -> np.ndarray:
    """(xcds,) int64: first hardware workgroup id of each XCD; the inverse of `xcd_of` for the first round."""
    return (np.arange(xcds, dtype=np.int64) - offset) % xcds


class Slots(NamedTuple):
    """Which workgroup runs in which slot.

    Parameters
    ----------
    running : (n_xcds, slots, 2) int64
        Next and end instruction of the slot's workgroup.
    pid : (n_xcds, slots) int64
        Hardware id, or tile of a persistent program; -1 before the first.
    waiting : (n_xcds,) int64
        Next hardware id that each XCD dispatches.
    """

    running: np.ndarray
    pid: np.ndarray
    waiting: np.ndarray


def slots_of(machine: Any) -> Slots:
    """Empty slots of a `xcd_model.cache.packed.Machine`, every queue at its first hardware id."""
    return Slots(
        running=np.zeros((machine.xcds, machine.slots, 2), np.int64),
        pid=np.full((machine.xcds, machine.slots), -1, np.int64),
        waiting=first_ids(machine.xcds, machine.offset),
    )


@njit(inline="always")
def _next_pid(machine, n_tiles, pid, waiting, xcd):
    """Hardware id (tile, if persistent) that a free slot takes up, or -1; ``pid`` is its last, -1 before the first.

    persistent: pid + P while that is a tile;  else: the XCD's next id, waiting[xcd] += X
    """
    if machine.programs and pid >= 0 and pid + machine.programs < n_tiles:
        return pid + machine.programs
    taken = waiting[xcd]
    if taken >= (machine.programs if machine.programs else n_tiles):
        return np.int64(-1)
    waiting[xcd] = taken + machine.xcds
    return taken


@njit(inline="always")
def _next_work(start, machine, order, pid, waiting, xcd):
    """As `_next_pid`, past the workgroups that touch nothing: they end as soon as they begin."""
    pid = _next_pid(machine, order.size, pid, waiting, xcd)
    while pid >= 0 and start[order[pid]] == start[order[pid] + 1]:
        pid = _next_pid(machine, order.size, pid, waiting, xcd)
    return pid


@njit(inline="always")
def _next_instruction(start, machine, order, slots, xcd, slot):
    """Instruction that a slot issues in this round, of its workgroup or of its next one; -1 where no work is left."""
    at = slots.running[xcd, slot, 0]
    if at == slots.running[xcd, slot, 1]:
        pid = _next_work(start, machine, order, slots.pid[xcd, slot], slots.waiting, xcd)
        if pid < 0:
            return np.int64(-1)
        slots.pid[xcd, slot] = pid
        at = start[order[pid]]
        slots.running[xcd, slot, 1] = start[order[pid] + 1]
    slots.running[xcd, slot, 0] = at + 1
    return np.int64(at)


def check_order(order: np.ndarray, n_workgroups: int) -> np.ndarray:
    """Return ``order`` as int64 if it is a permutation of the trace's workgroups.

    Raises
    ------
    ReplayError
        If it is not: a schedule that computes a workgroup twice has no score.
    """
    order = np.asarray(order)
    if order.shape != (n_workgroups,) or not np.issubdtype(order.dtype, np.integer):
        raise ReplayError(
            f"order has shape {order.shape} and type {order.dtype}; pass one integer for each of the trace's "
            f"{n_workgroups} workgroups"
        )
    if order.size and (order.min() < 0 or order.max() >= n_workgroups):
        raise ReplayError(
            f"order holds {order.min()}..{order.max()}; workgroups are 0..{n_workgroups - 1}: number them from 0"
        )
    times = np.bincount(order, minlength=n_workgroups)
    if times.max() > 1:
        raise ReplayError(
            f"order computes workgroup {int(times.argmax())} twice and workgroup {int(times.argmin())} not at all; "
            "replay a permutation"
        )
    return np.ascontiguousarray(order, np.int64)
