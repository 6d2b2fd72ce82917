"""The machine: GPUs as data, traces of workgroups, dispatch and caches. Arrays in, counts out."""

from .bounds import Bound, assigned_misses, hit_rate_bound
from .builder import TraceBuilder
from .cache import replay_lru
from .dispatch import Resources, workgroups_per_cu, xcd_of
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
from .gpu import Cache, Gpu, Memory, gpu, gpu_names, load_gpu
from .plan import Plan, prepare
from .replay import replay
from .timing import Time, roofline
from .trace import Tensor, Trace
from .traffic import Traffic

__all__ = [
    "Bound",
    "Cache",
    "Gpu",
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
    "Trace",
    "TraceBuilder",
    "TraceError",
    "Traffic",
    "UnknownName",
    "assigned_misses",
    "gpu",
    "gpu_names",
    "hit_rate_bound",
    "load_gpu",
    "prepare",
    "replay",
    "replay_lru",
    "roofline",
    "workgroups_per_cu",
    "xcd_of",
]
