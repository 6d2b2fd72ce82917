"""Resources of a captured kernel: those on AMD's two GPUs are kept with its trace, those on another are compiled for.

A kernel that none of the two takes, such as one with PTX in it or with tiles beyond their LDS, is captured if an H200
takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from swizzle_sim.launch import Launch
from xcd_model import Resources
from xcd_model.errors import CompileError

ARCHS = ("gfx942", "gfx950")
NVIDIA = ("sm_90a",)


def check_compiles(launch: Launch, arch: str | None = None) -> None:
    """Refuse a launch that compiles for nothing that it is for, before a capture, which may take minutes.

    Parameters
    ----------
    launch : Launch
    arch : str, optional
        Architecture that asks; by default it is enough that one does.

    Raises
    ------
    CompileError
    """
    wanted: Sequence[Sequence[str]] = (ARCHS, NVIDIA) if arch is None else (ARCHS if arch in ARCHS else (arch,),)
    errors = [_errors(launch, archs) for archs in wanted]
    if all(errors):
        raise errors[0][0]


def _errors(launch: Launch, archs: Sequence[str]) -> list[CompileError]:
    """Why a launch compiles for none of some architectures; nothing where it does for one: a tile may not fit all."""
    from swizzle_sim.capture.occupancy import compile_for  # noqa: PLC0415

    errors = [one for one in compile_for(launch, archs) if isinstance(one, CompileError)]
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
