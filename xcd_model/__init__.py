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

_NAMES = {  # of each module
    "xcd_model.analysis.bounds": "Bound assigned_misses hit_rate_bound",
    "xcd_model.analysis.timing": "Energy Time compute_fs energy limited_by_power roofline timed_time",
    "xcd_model.cache.lru": "replay_lru",
    "xcd_model.dispatch": "loads_in_flight workgroups_per_cu xcd_of",
    "xcd_model.errors": "Deadlock LanguageError NotBijective ReplayError RunError SizeError SpecError "
    "SwizzleSimError TornCluster TraceError UnknownName",
    "xcd_model.replay.lockstep": "replay_lockstep",
    "xcd_model.replay.plan": "Plan prepare",
    "xcd_model.replay.service_times": "IssueModel",
    "xcd_model.replay.timed": "replay_timed",
    "xcd_model.replay.traffic": "Traffic",
    "xcd_model.resources": "Resources",
    "xcd_model.spec.gpu": "Cache Gpu Memory",
    "xcd_model.spec.load": "gpu gpu_modes gpu_names load_gpu",
    "xcd_model.trace.builder": "TraceBuilder",
    "xcd_model.trace.claims": "Claims",
    "xcd_model.trace.clusters": "Clusters",
    "xcd_model.trace.trace": "Tensor Trace",
    "xcd_model.trace.waits": "Waits",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

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
