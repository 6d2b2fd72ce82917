"""`Work`: what a replay asks of a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xcd_model import Claims, Clusters, Resources, Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """What a replay reads of a workload; `Kernel` documents each."""

    problem: Mapping[str, int]
    dtype: str
    flops: float
    issued_flops: float
    resources: Resources
    build_trace: Callable[[int], Trace] = field(repr=False)
    vector_ops: float = 0.0
    programs: int | None = None
    claims: Claims | None = None
    clusters: Clusters | None = None
    launches: int = 1
    fitted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
