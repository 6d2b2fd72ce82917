"""The machine: GPUs as data, traces of workgroups, dispatch and caches. Arrays in, counts out."""

from . import kernel_cache as _kernel_cache  # before any kernel  # isort: skip  # noqa: F401
from .bounds import Bound, assigned_misses, hit_rate_bound
from .builder import TraceBuilder
from .cache import replay_lru
from .dispatch import Resources, loads_in_flight, workgroups_per_cu, xcd_of
from .energy import Energy, energy, limited_by_power
from .errors import (
    LanguageError,
    NotBijective,
    ReplayError,
    RunError,
    SizeError,
    SpecError,
    SwizzleSimError,
    TraceError,
    UnknownName,
)
from .gpu import Cache, Gpu, Memory, gpu, gpu_modes, gpu_names, load_gpu
from .plan import Plan, prepare
from .rates import Pace
from .replay import replay
from .timed import replay_timed
from .timing import Time, busy, compute_fs, roofline
from .trace import Tensor, Trace
from .traffic import Traffic

__all__ = [
    "Bound",
    "Cache",
    "Energy",
    "Gpu",
    "LanguageError",
    "Memory",
    "NotBijective",
    "Pace",
    "Plan",
    "ReplayError",
    "Resources",
    "RunError",
    "SizeError",
    "SpecError",
    "SwizzleSimError",
    "Tensor",
    "Time",
    "Trace",
    "TraceBuilder",
    "TraceError",
    "Traffic",
    "UnknownName",
    "assigned_misses",
    "busy",
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
    "replay",
    "replay_lru",
    "replay_timed",
    "roofline",
    "workgroups_per_cu",
    "xcd_of",
]
