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
from xcd_model.trace.claims import Claims
from xcd_model.trace.clusters import Clusters
from xcd_model.trace.trace import Tensor, Trace
from xcd_model.trace.waits import Waits

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
