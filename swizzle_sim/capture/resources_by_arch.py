"""Resources of a captured kernel: those on AMD's two GPUs are kept with its trace, those on another are compiled for.

A kernel that none of the two takes, such as one with PTX in it or with tiles beyond their LDS, is captured if an H200
takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from swizzle_sim.workload.launch import Launch
from xcd_model import Resources, gpu, workgroups_per_cu
from xcd_model.errors import CompileError, ReplayError

ARCHS = ("gfx942", "gfx950")
NVIDIA = ("sm_90a",)
GPUS = {"gfx942": "mi300x", "gfx950": "mi355x", "sm_90a": "h200"}  # whose limits a configuration is chosen by


def check_compiles(launch: Launch, arch: str | None = None, *, fits: bool = False) -> None:
    """Refuse a launch that compiles for nothing that it is for, before a capture, which may take minutes.

    Parameters
    ----------
    launch : Launch
    arch : str, optional
        Architecture that asks; by default it is enough that one does.
    fits : bool
        Whether it has to compile for that one, and a workgroup to fit a CU of its GPU, as an autotuner would find out.

    Raises
    ------
    CompileError
    """
    wanted: Sequence[Sequence[str]] = (ARCHS, NVIDIA)
    if arch is not None:
        wanted = (ARCHS if arch in ARCHS and not fits else (arch,),)
    errors = [_errors(launch, archs, fits=fits) for archs in wanted]
    if all(errors):
        raise errors[0][0]


def _errors(launch: Launch, archs: Sequence[str], *, fits: bool) -> list[CompileError]:
    """Why a launch compiles for none of some architectures; nothing where it does for one: a tile may not fit all."""
    from swizzle_sim.capture.occupancy import compile_for  # noqa: PLC0415

    errors = []
    for arch, found in zip(archs, compile_for(launch, archs), strict=True):
        if isinstance(found, CompileError):
            errors.append(found)
        elif fits and arch in GPUS:
            try:
                workgroups_per_cu(found.resources, gpu(GPUS[arch]))
            except ReplayError as error:
                errors.append(CompileError(str(error)))
    return errors if len(errors) == len(archs) else []


def resources_by_arch(launch: Launch) -> dict[str, Any]:
    """For each of `ARCHS` the resources, or why there are none, as a manifest has them."""
    from swizzle_sim.capture.occupancy import compile_for  # noqa: PLC0415

    return {
        arch: {"error": str(one)} if isinstance(one, CompileError) else asdict(one.resources)
        for arch, one in zip(ARCHS, compile_for(launch, ARCHS), strict=True)
    }


def stored_resources(manifest: Mapping[str, Any], arch: str) -> Resources:
    """Resources that a manifest has for an architecture, or for one of `ARCHS` where the GPU has another.

    Raises
    ------
    CompileError
        If the kernel does not compile for it.
    """
    kept: Mapping[str, Any] = manifest["resources"]
    if arch in kept:
        found = kept[arch]
    else:
        found = next((one for one in kept.values() if "error" not in one), None) or _compiled(manifest, arch)
    if "error" in found:
        raise CompileError(f"{manifest['facts']['name']} does not compile for {arch}: {found['error']}")
    return Resources(**found)


def _compiled(manifest: Mapping[str, Any], arch: str) -> dict[str, Any]:
    from swizzle_sim.capture.occupancy import compile_for  # noqa: PLC0415

    (found,) = compile_for(Launch.from_dict(manifest["launch"]), (arch,))
    return {"error": str(found)} if isinstance(found, CompileError) else asdict(found.resources)
