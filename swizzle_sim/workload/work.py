"""`Work`: what a replay asks of a workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from xcd_model import Claims, Clusters, Resources, Trace


class Work(Protocol):
    """Attributes of a workload that a replay reads; `Kernel` documents each."""

    @property
    def dtype(self) -> str:
        """Type of the arithmetic, a key of ``Gpu.peak_tflops``."""

    @property
    def issued_flops(self) -> float:
        """Operations that the hardware executes."""

    @property
    def vector_ops(self) -> float:
        """Vector instructions, per lane, that no matrix operation can overlap."""

    @property
    def resources(self) -> Resources:
        """Resources that a workgroup occupies."""

    @property
    def build_trace(self) -> Callable[[int], Trace]:
        """``build_trace(line_bytes) -> Trace``."""

    @property
    def programs(self) -> int | None:
        """Programs launched of a persistent kernel."""

    @property
    def claims(self) -> Claims | None:
        """How its programs claim their tiles, if they do."""

    @property
    def clusters(self) -> Clusters | None:
        """How its programs are clusters of workgroups, if they are."""

    @property
    def launches(self) -> int:
        """Back-to-back launches of a run."""
