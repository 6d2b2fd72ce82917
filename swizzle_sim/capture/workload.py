"""`Workload`: as much of a kernel as compiling and rewriting ask for, found without capturing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.capture.cuda.source import SUFFIXES
from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel, is_user_kernel, kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Resources, Waits
from xcd_model.errors import CompileError, RewriteError


@dataclass(frozen=True)
class Workload:
    """One Triton launch, and the same kernel at other sizes."""

    name: str
    problem: Mapping[str, int]
    grid: Grid
    launch: Launch
    # tuple of (Grid, sizes): other launches, for the check over a lattice
    others: tuple[tuple[Grid, Mapping[str, int]], ...]
    at: Callable[[Mapping[str, int]], Workload]  # ``at(sizes) -> Workload``
    resources: Resources | None = None  # what the kernel itself states, for where there is no compiler
    # of a persistent kernel whose grid is its tiles, see `swizzle_sim.workload.kernels.Kernel`
    programs: int | None = None
    # of a kernel whose tiles wait for others, see `swizzle_sim.workload.kernels.Kernel`
    waits: Callable[[Mapping[str, int]], Waits] | None = None


def workload(name: str, sizes: Mapping[str, int]) -> Workload:
    """Workload of the suite, or of a Python file with a declaration."""
    if name.endswith(".npz"):
        raise RewriteError("is a trace, with no kernel to compile or rewrite: give the Python file", path=name)
    return _declared(name, sizes) if is_user_kernel(name) else of_kernel(kernel(name, **sizes))


def of_kernel(found: Kernel) -> Workload:
    """Workload of a kernel of the registry."""
    if found.launch is None:
        raise CompileError(f"{found.name} has an access model only, and no Triton kernel")
    return Workload(
        name=found.name,
        problem=dict(found.problem),
        grid=found.grid,
        launch=found.launch,
        others=tuple(found.at_grids()),
        at=lambda sizes: workload(found.file or found.name, sizes),
        resources=found.resources,
        programs=found.programs,
        waits=found.waits,
    )


def _declared(name: str, sizes: Mapping[str, int], config: Mapping[str, int] | None = None) -> Workload:
    from swizzle_sim.capture.user_kernel import describe, inputs_of, other_grids, request_of  # noqa: PLC0415

    described, request = describe({**request_of(name, sizes), **(config or {})})
    pinned = {key: request[key] for key in ("config",) if key in request}
    facts, function = described["facts"], Path(described["launch"]["path"])
    if function.suffix in SUFFIXES:
        words = f"is CUDA or HIP, which is not rewritten: put best.hip of its run into {function.name}"
        raise RewriteError(words, path=name)
    return Workload(
        name=facts["name"],
        problem=facts["problem"],
        grid=Grid.from_dict({**facts, **described}),
        launch=Launch.from_dict(described["launch"], inputs_of(request)),
        others=tuple(other_grids(described)),
        at=lambda other: _declared(name, other, pinned),
        programs=facts["programs"],
    )
