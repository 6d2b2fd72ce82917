"""Kernel, GPU and scorer rebuilt from a run's record; `at_sizes`, a kernel at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import Kernel, file_of, is_user_kernel, kernel
from xcd_model import Gpu, Resources
from xcd_model.errors import RunError, SpecError


def recorded_kernel(about: Mapping[str, Any]) -> Kernel:
    """Kernel of a run with its resources, from the registry or from the file that the run names."""
    found = _loaded_kernel(about)
    if "resources" in about:  # as compiled where the run was made
        return replace(found, resources=Resources(**about["resources"]))
    return found


def _loaded_kernel(about: Mapping[str, Any]) -> Kernel:
    file = about.get("kernel_file")
    if not file:
        return kernel(about["kernel"], **about["problem"])
    if not Path(file_of(file)).is_file():
        raise RunError(f"{file}: no such file any more; the run of {about['kernel']} was made from it")
    sizes = {} if file.endswith(".npz") else about["problem"]  # a trace has one problem; if another, the digest says so
    found = kernel_at(file, sizes, about["gpu_description"]["arch"])
    if found.digest != about["kernel_digest"]:
        raise RunError(
            f"{file}: its kernel changed since the run: {found.name} is {found.digest[:12]} now, and was "
            f"{about['kernel']} {about['kernel_digest'][:12]}; put the old text back, or make a new run"
        )
    return found


def recorded_gpu(about: Mapping[str, Any]) -> Gpu:
    """GPU of a run, as it was described where the run was made."""
    try:
        return Gpu.from_dict(about["gpu_description"])
    except SpecError:
        raise RunError(f"the run of {about['kernel']} {of_another_model(about)}") from None


def of_another_model(about: Mapping[str, Any]) -> str:
    """What is said of a run whose GPU another version of the model described."""
    again = about.get("command") or f"swizzle-sim optimize {about['kernel']} --gpu {about['gpu']}"
    return (
        f"was made by an older model of {about['gpu']}; its figures stay readable by `swizzle-sim export`; "
        f"make it anew, in another folder, with: {again}"
    )


def recorded_scorer(about: Mapping[str, Any]) -> Scorer:
    """Scorer that a run's candidates were scored with."""
    settings = {key: about[key] for key in ("replay", "seed", "jitter_ns")}
    return Scorer(recorded_kernel(about), recorded_gpu(about), **settings)


def at_sizes(found: Kernel, sizes: Mapping[str, int], arch: str) -> Kernel:
    """Kernel of the registry or of a user's file at other sizes; those not given stay."""
    return kernel_at(found.file or found.name, {**found.problem, **sizes}, arch)


def kernel_at(
    name: str, sizes: Mapping[str, int], arch: str, on_progress: Callable[[str, int, int], None] | None = None
) -> Kernel:
    """Kernel of the registry, or of a user's file, captured if need be; ``arch`` is that of the GPU."""
    if not is_user_kernel(name):
        return kernel(name, **sizes)
    from swizzle_sim.capture.user_kernel import load  # noqa: PLC0415

    return load(name, sizes, arch, on_progress)
