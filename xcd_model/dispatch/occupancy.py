"""Occupancy: how many workgroups are resident on a CU, and how many loads each of them has in flight.

workgroups a CU = min over threads, VGPRs, LDS, barriers of (what the CU has) // (what a workgroup takes)
loads in flight = min(stages * loads a step, bytes of registers and LDS that loads can land in // bytes a load)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcd_model.errors import ReplayError
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
