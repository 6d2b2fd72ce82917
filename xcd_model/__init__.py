"""The machine: GPUs as data, traces of workgroups, dispatch and caches. Arrays in, counts out.

The names below are imported on first use, so that lists of GPUs and of runs start without numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcd_model.analysis.bounds import Bound, assigned_misses, hit_rate_bound
    from xcd_model.analysis.timing import Energy, Time, compute_fs, energy, limited_by_power, roofline, timed_time
    from xcd_model.cache.lru import replay_lru
    from xcd_model.dispatch import loads_in_flight, workgroups_per_cu, xcd_of
    from xcd_model.errors import (
        Deadlock,
        LanguageError,
        NotBijective,
        ReplayError,
        RunError,
        SizeError,
        SpecError,
        SwizzleSimError,
        TornCluster,
        TraceError,
        UnknownName,
    )
    from xcd_model.replay.lockstep import replay_lockstep
    from xcd_model.replay.plan import Plan, prepare
    from xcd_model.replay.service_times import IssueModel
    from xcd_model.replay.timed import replay_timed
    from xcd_model.replay.traffic import Traffic
    from xcd_model.resources import Resources
    from xcd_model.spec.gpu import Cache, Gpu, Memory
    from xcd_model.spec.load import gpu, gpu_modes, gpu_names, load_gpu
    from xcd_model.trace.builder import TraceBuilder
    from xcd_model.trace.clusters import Clusters
    from xcd_model.trace.trace import Tensor, Trace
    from xcd_model.trace.waits import Waits

_HOME = {
    "Bound": "xcd_model.analysis.bounds",
    "Cache": "xcd_model.spec.gpu",
    "Deadlock": "xcd_model.errors",
    "Energy": "xcd_model.analysis.timing",
    "Gpu": "xcd_model.spec.gpu",
    "IssueModel": "xcd_model.replay.service_times",
    "LanguageError": "xcd_model.errors",
    "Memory": "xcd_model.spec.gpu",
    "NotBijective": "xcd_model.errors",
    "Plan": "xcd_model.replay.plan",
    "ReplayError": "xcd_model.errors",
    "Claims": "xcd_model.trace.claims",
    "Clusters": "xcd_model.trace.clusters",
    "Resources": "xcd_model.resources",
    "RunError": "xcd_model.errors",
    "SizeError": "xcd_model.errors",
    "SpecError": "xcd_model.errors",
    "SwizzleSimError": "xcd_model.errors",
    "Tensor": "xcd_model.trace.trace",
    "TornCluster": "xcd_model.errors",
    "Time": "xcd_model.analysis.timing",
    "Trace": "xcd_model.trace.trace",
    "TraceBuilder": "xcd_model.trace.builder",
    "TraceError": "xcd_model.errors",
    "Traffic": "xcd_model.replay.traffic",
    "UnknownName": "xcd_model.errors",
    "Waits": "xcd_model.trace.waits",
    "assigned_misses": "xcd_model.analysis.bounds",
    "compute_fs": "xcd_model.analysis.timing",
    "energy": "xcd_model.analysis.timing",
    "gpu": "xcd_model.spec.load",
    "gpu_modes": "xcd_model.spec.load",
    "gpu_names": "xcd_model.spec.load",
    "hit_rate_bound": "xcd_model.analysis.bounds",
    "limited_by_power": "xcd_model.analysis.timing",
    "load_gpu": "xcd_model.spec.load",
    "loads_in_flight": "xcd_model.dispatch",
    "prepare": "xcd_model.replay.plan",
    "replay_lockstep": "xcd_model.replay.lockstep",
    "replay_lru": "xcd_model.cache.lru",
    "replay_timed": "xcd_model.replay.timed",
    "roofline": "xcd_model.analysis.timing",
    "timed_time": "xcd_model.analysis.timing",
    "workgroups_per_cu": "xcd_model.dispatch",
    "xcd_of": "xcd_model.dispatch",
}

__all__ = [
    "Bound",
    "Cache",
    "Claims",
    "Clusters",
    "Deadlock",
    "Energy",
    "Gpu",
    "IssueModel",
    "LanguageError",
    "Memory",
    "NotBijective",
    "Plan",
    "ReplayError",
    "Resources",
    "RunError",
    "SizeError",
    "SpecError",
    "SwizzleSimError",
    "Tensor",
    "Time",
    "TornCluster",
    "Trace",
    "TraceBuilder",
    "TraceError",
    "Traffic",
    "UnknownName",
    "Waits",
    "assigned_misses",
    "compute_fs",
    "energy",
    "gpu",
    "gpu_modes",
    "gpu_names",
    "hit_rate_bound",
    "limited_by_power",
    "load_gpu",
    "loads_in_flight",
    "prepare",
    "replay_lockstep",
    "replay_lru",
    "replay_timed",
    "roofline",
    "timed_time",
    "workgroups_per_cu",
    "xcd_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
