"""Where L1 and shared memory are one array (NVIDIA): how much of it a kernel's launches leave to the L1.

    L1 = array - carve-out,    carve-out = smallest published size that the rule below asks for

On NVIDIA's GPUs the driver gives shared memory one of a few sizes before a launch, and the rest is the L1. The sizes
are published, the choice is not. The rule was read off 240 launches of one kernel, by threads, registers and
shared memory of a workgroup: room for twice as many workgroups as would fit if they took none, but no more than half of
all there is; beyond that, and for workgroups that fill an SM or have as many threads as can be, room for those that fit
and no more.

Source: ``benchmarks/validation/data/machine/h200_carve_outs.csv``, counted by `swizzle_benchmarks.lab.caches`; the rule
gives 239 of them. Sizes: NVIDIA Hopper Tuning Guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xcd_model.dispatch import workgroups_per_cu
from xcd_model.resources import Resources
from xcd_model.spec.gpu import Gpu


def l1_after_shared_memory(resources: Resources, gpu: Gpu) -> Gpu:
    """GPU with the L1 that a kernel's launches leave, none where loads go past it.

    The same one where LDS is an array of its own.

    Parameters
    ----------
    resources : Resources
        Of one workgroup.
    gpu : Gpu

    Returns
    -------
    gpu : Gpu

    Raises
    ------
    ReplayError
        If not even one workgroup fits.
    """
    l1 = gpu.l1
    if l1 is None or l1.lds_carve_outs is None:
        return gpu
    if resources.past_l1:
        return replace(gpu, l1=None)
    left_bytes = l1.size_bytes - _carve_out_bytes(resources, gpu, l1.lds_carve_outs)
    left = replace(l1, size_bytes=left_bytes, ways=left_bytes // (l1.sets * l1.line_bytes), lds_carve_outs=None)
    return replace(gpu, l1=left)


def _carve_out_bytes(resources: Resources, gpu: Gpu, sizes: Sequence[int]) -> int:
    """Part of the array that is LDS during a launch."""
    each, most = resources.lds_bytes, gpu.limits.workgroups_per_cu
    least = _enough(each * workgroups_per_cu(resources, gpu), sizes)
    without = workgroups_per_cu(replace(resources, lds_bytes=0), gpu)
    if without == 1 or resources.threads == gpu.limits.threads_per_workgroup:
        return least
    roomy = most if each <= (gpu.limits.lds_reserved_bytes or 0) else min(2 * without, most)
    half = _enough(sizes[-1] // 2, sizes)
    return max(least, min(_enough(each * roomy, sizes), half))


def _enough(n_bytes: int, sizes: Sequence[int]) -> int:
    """Smallest of the sizes that holds so many bytes, or the largest of all."""
    return next((size for size in sizes if size >= n_bytes), sizes[-1])
