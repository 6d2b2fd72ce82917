"""`Device`: as much of a GPU as a bundle says of the machine it is for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from xcd_model import Gpu
from xcd_model.errors import HardwareError


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device, in one partition mode."""

    name: str  # as `xcd_model.spec.gpu.Gpu` has them
    title: str
    vendor: str
    arch: str
    partition: str
    xcds: int  # of the model: what the candidates were written for
    compute_units: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def device_of(gpu: Gpu) -> Device:
    """Device that a GPU description describes."""
    vendor = "amd" if gpu.arch.startswith("gfx") else "nvidia" if gpu.arch.startswith("sm_") else ""
    if not vendor:
        raise HardwareError(f"{gpu.name}: architecture {gpu.arch!r} is neither AMD's (gfx...) nor NVIDIA's (sm_...)")
    if vendor == "amd" and gpu.xcds == 1:
        raise HardwareError(f"{gpu.title} in {gpu.partition} mode is one XCD with one L2: there is nothing to swizzle")
    return Device(
        name=gpu.name,
        title=gpu.title,
        vendor=vendor,
        arch=gpu.arch if vendor == "amd" else gpu.arch.rstrip("af"),  # sm_90a is the same chip as sm_90
        partition=gpu.partition,
        xcds=gpu.xcds,
        compute_units=gpu.cus,
    )
