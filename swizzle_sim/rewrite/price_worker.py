"""Compiles the spellings of one swizzle in one kernel and keeps the cheapest; a process of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from swizzle_sim.capture.kernel_file import forget_files
from swizzle_sim.capture.occupancy import Compiled, compiled_as, request_of
from swizzle_sim.capture.occupancy_worker import answered
from swizzle_sim.capture.process import triton_version
from swizzle_sim.capture.workload import Workload
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.rewrite.check import on_path, relaunched
from swizzle_sim.rewrite.guard import named
from swizzle_sim.rewrite.kernel import rewrite_workload
from swizzle_sim.rewrite.rewritten import Rewritten
from swizzle_sim.workload.launch import Launch, SizesAt
from swizzle_sim.workload.price import CompiledKernel, RemapPrice
from xcd_model import Gpu, workgroups_per_cu
from xcd_model.errors import CompileError, ReplayError, SwizzleSimError

MOST_REGISTERS = 248  # that ``maxnreg`` is tried with, downwards by the granule


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Price of the request's swizzle, or the error."""
    try:
        return _priced(request)
    except SwizzleSimError as error:
        return {"error": str(error), "kind": "compile" if isinstance(error, CompileError) else "rewrite"}


class _Compiler:
    """Compiles rewritten kernels for one GPU; notes the source files that take part."""

    def __init__(self, work: Workload, gpu: Gpu, folder: Path):
        self.work, self.gpu, self.folder = work, gpu, folder
        self.files: dict[str, str] = {}

    def __call__(self, rewritten: Rewritten, options: Mapping[str, int]) -> tuple[CompiledKernel, Compiled]:
        path = self.folder / rewritten.path.name
        path.write_bytes(rewritten.text)
        forget_files()
        launch = relaunched(rewritten, self.work.launch, path)
        reply = answered({**request_of(launch, self.gpu.arch), "options": {**launch.options, **options}})
        if "error" in reply:
            raise CompileError(reply["error"])
        reply.pop("by_value")
        found = compiled_as(launch.function, self.gpu.arch, triton_version(), reply)
        self.files |= {name: sha for name, sha in found.files.items() if not name.startswith(str(self.folder))}
        return found.on(self.gpu), found


def _priced(request: Mapping[str, Any]) -> dict[str, Any]:
    gpu, before = Gpu.from_dict(request["gpu"]), CompiledKernel.from_dict(request["before"])
    work = _work(request)
    swizzle = Swizzle.parse(request["swizzle"])
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder, on_path(work.launch):
        sys.path.insert(0, str(work.launch.path.parent))
        compiler = _Compiler(work, gpu, Path(folder).resolve())
        tried: list[tuple[RemapPrice, Rewritten, Compiled]] = []
        why: SwizzleSimError | None = None
        for emission in map(named, request["spellings"]):
            try:
                rewritten = rewrite_workload(work, swizzle, num_xcds=gpu.xcds, emission=emission)
                after, compiled = compiler(rewritten, {})
            except SwizzleSimError as error:
                why = why or error
                continue
            found = RemapPrice(before=before, after=after, emission=emission.name)
            tried.append((found, rewritten, compiled))
            if found.is_free:
                break
        if not tried:
            assert why is not None
            raise why
        levels = work.grid.levels if gpu.limits.scalar_cycles else 0
        best, rewritten, compiled = min(tried, key=lambda one: _cost(one, levels))
        if best.loses_occupancy:
            best = _with_offer(best, rewritten, compiled, compiler)
    return {"price": best.as_dict(), "files": compiler.files}


def _cost(one: tuple[RemapPrice, Rewritten, Compiled], levels: int) -> tuple[int, ...]:
    """What a spelling costs: the pipeline, workgroups, spills, instructions where they take time, registers, text."""
    found, after, text = one[0], one[0].after, one[1].text
    instructions = after.executed_before_loop(levels) if levels else 0
    grown = (-after.workgroups_per_cu, after.spills, instructions, after.registers, after.code_bytes, len(text))
    return (found.loses_pipeline, *grown)


def _with_offer(price: RemapPrice, rewritten: Rewritten, compiled: Compiled, compiler: _Compiler) -> RemapPrice:
    """Price with the compile option that gives the workgroups back, where the compile shows that it does, unspilled.

    Registers that spill in a loop cost more than a workgroup: of a published GEMM in fp8 on an H200, four words spilled
    with five workgroups an SM took 15 % longer than none with four.
    """
    options = _option(price.before.workgroups_per_cu, compiled, compiler.gpu)
    try:
        found = compiler(rewritten, options)[0] if options else None
    except (CompileError, ReplayError):
        return price
    if found is None or found.workgroups_per_cu < price.before.workgroups_per_cu or found.spills > price.after.spills:
        return price
    return replace(price, offer=options, offered=found)


def _option(wanted: int, compiled: Compiled, gpu: Gpu) -> dict[str, int]:
    """Option that bounds registers so that so many workgroups fit a CU."""
    if not compiled.arch.startswith("sm_"):
        waves = -(-compiled.threads // gpu.limits.wave_size)
        return {"waves_per_eu": -(-wanted * waves // gpu.limits.simds_per_cu)}
    for registers in range(MOST_REGISTERS, 0, -gpu.limits.vgpr_granule):
        if workgroups_per_cu(replace(compiled.resources, vgprs=registers), gpu) >= wanted:
            return {"maxnreg": registers}
    return {}


def _work(request: Mapping[str, Any]) -> Workload:
    return Workload(
        name=request["name"],
        problem=request["sizes"],
        grid=Grid.from_dict(request["grid"]),
        launch=Launch.from_dict(request["launch"]),
        others=tuple(
            (Grid.from_dict(grid), sizes and SizesAt(sizes, known)) for grid, sizes, known in request["lattice"]
        ),
        at=lambda sizes: (_ for _ in ()).throw(NotImplementedError("a price is of one size")),
        programs=request["programs"],
    )
