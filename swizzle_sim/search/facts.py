"""`Facts`: the figures of a kernel that need no order of its workgroups, cached on disk between commands.

A trace and its bound take up to some seconds for the largest kernels. Figures are cached under a digest of the sizes,
the GPU and the source of kernel and model, so that new code computes them anew.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from pathlib import Path

import xcd_model
from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.sharing import shared_lines
from swizzle_sim.workload.kernels import Kernel, kernel_names
from xcd_model import Gpu

KIND = "facts"  # of the disk cache
FORMAT = 1  # raise when the figures change their meaning


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Figures of one kernel on one GPU."""

    workgroups_per_cu: int  # that fit at once
    instructions: int  # tensor instructions of all workgroups, and the cache lines they touch, repetitions counted
    line_touches: int
    distinct_lines: int  # the same lines, each counted once
    footprint_bytes: int  # size of all tensors
    bound_l2_hit_rate: float  # 0 to 1; what no balanced bijection exceeds

    @property
    def ideal_reuse(self) -> float:
        """Touches a line, on average: uses of each fetched line in one cache of infinite size."""
        return self.line_touches / self.distinct_lines


def facts_of(kernel: Kernel, gpu: Gpu) -> Facts:
    """Figures of a kernel, from the cache where they are known."""
    key = _key(kernel, gpu)
    known = _read(key)
    if known is None:
        known = work_out(Scorer(kernel, gpu, replay="lockstep"))
        if key:
            DiskCache(KIND).put(key, asdict(known))
    return known


def is_known(kernel: Kernel, gpu: Gpu) -> bool:
    """Whether `facts_of` answers from the cache."""
    return _read(_key(kernel, gpu)) is not None


def work_out(scorer: Scorer) -> Facts:
    """Figures of a scorer's kernel on its GPU."""
    trace = scorer.plan.trace
    return Facts(
        workgroups_per_cu=scorer.occupancy,
        instructions=trace.n_instructions,
        line_touches=trace.n_touches,
        distinct_lines=shared_lines(trace)[1],
        footprint_bytes=sum(t.size_bytes for t in trace.tensors),
        bound_l2_hit_rate=scorer.bound.l2_hit_rate,
    )


def _read(key: str) -> Facts | None:
    try:
        return Facts(**DiskCache(KIND).get(key)) if key else None
    except TypeError:  # not stored, or not figures
        return None


def _key(kernel: Kernel, gpu: Gpu) -> str:
    """Digest of everything that the figures depend on; empty for a kernel that is not the suite's own."""
    model = inspect.unwrap(kernel.build_trace)  # what a declaration's wraps
    if kernel.name not in kernel_names() or not inspect.isfunction(model):
        return ""
    folders = [Path(str(inspect.getsourcefile(one))).parent for one in (model, kernel_names)]
    about = (FORMAT, dict(kernel.problem), gpu.as_dict(), kernel.grid.launch, asdict(kernel.resources), kernel.programs)
    code = (*folders, Path(xcd_model.__file__).parent, Path(__file__).parent)
    return f"{kernel.name}-{key_of(about, code=code)}"
