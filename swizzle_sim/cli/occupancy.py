"""``occupancy``: what a workgroup of the compiled kernel takes of a CU, and what runs short first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from swizzle_sim.cli.arguments import GpuName, Json, KernelName, Sizes

if TYPE_CHECKING:
    from swizzle_sim.capture.occupancy import Compiled, OccupancyLimits
    from xcd_model import Gpu, Resources


def occupancy(kernel: KernelName, sizes: Sizes = None, gpu: GpuName = "mi300x", json: Json = False) -> None:
    """Compile a kernel for a GPU that need not be there; print registers, LDS, spills and workgroups per CU."""
    from swizzle_sim.capture.occupancy import compile_launch, limits_of
    from swizzle_sim.capture.process import triton_version
    from swizzle_sim.cli.arguments import parse_sizes
    from swizzle_sim.cli.output import print_json, sizes_text
    from swizzle_sim.workload import workload
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import CompileError

    work, device = workload(kernel, parse_sizes(sizes)), load_gpu(gpu)
    compiled, reason = None, ""
    try:
        triton_version()
    except CompileError as error:  # without a compiler there are still the figures that the kernel states
        if work.resources is None:
            raise
        reason = str(error)
    else:
        compiled = compile_launch(work.launch, device.arch)
    resources = compiled.resources if compiled else work.resources
    assert resources is not None
    limits = limits_of(resources, device)
    if json:
        document = {
            "kernel": work.name,
            "problem": dict(work.problem),
            "gpu": device.name,
            "compiled": asdict(compiled) if compiled else None,
            "not_compiled": None if compiled else reason,
            "resources": asdict(resources),
            "workgroups_per_cu": limits.workgroups,
            "alone": dict(limits.alone),
            "limited_by": list(limits.short),
        }
        print_json(document)
        return
    title = f"{work.name} {sizes_text(work.problem)} on {device.title}"
    _print(title, device, compiled, resources, limits, reason)


def _print(
    title: str, gpu: Gpu, compiled: Compiled | None, resources: Resources, limits: OccupancyLimits, reason: str
) -> None:
    from swizzle_sim.cli.output import console, table

    alone = ", ".join(f"{name} {fits}" for name, fits in limits.alone.items())
    rows: list[tuple[str, str]] = [("threads a workgroup", str(resources.threads))]
    if compiled:
        rows += _compiled_rows(compiled)
    else:
        rows += [("VGPRs", str(resources.vgprs)), ("LDS a workgroup", f"{resources.lds_bytes:,} B")]
    rows += [
        ("workgroups per CU", str(limits.workgroups)),
        ("limited by", f"{' and '.join(limits.short)} (each alone would allow: {alone})"),
        ("source", resources.source),
    ]
    table(title, ("", ""), rows, left=2)
    if not compiled:
        console(wide=True).print(f"Not compiled: {reason}. These are the figures that the kernel states.", markup=False)
    elif compiled.vgpr_spills or compiled.sgpr_spills:
        console(wide=True).print(
            "Registers are spilled to memory: a smaller tile or more warps would help.", markup=False
        )


def _compiled_rows(compiled: Compiled) -> list[tuple[str, str]]:
    options: dict[str, Any] = dict(compiled.options)
    shown = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "enable_fp_fusion")
    return [
        ("VGPRs", f"{compiled.vgprs} allocated, {compiled.vgprs_used} used ({compiled.agprs_used} of them AGPRs)"),
        ("SGPRs", str(compiled.sgprs)),
        ("LDS a workgroup", f"{compiled.lds_bytes:,} B"),
        ("spilled", f"{compiled.vgpr_spills} VGPRs, {compiled.sgpr_spills} SGPRs; {compiled.scratch_bytes} B a lane"),
        (
            "instructions in flight",
            f"{compiled.instructions_in_flight} (assumed: {compiled.loads_per_step} loads a step, "
            f"{'pipelined' if compiled.pipelined else 'not pipelined'})",
        ),
        ("options", ", ".join(f"{name}={options[name]}" for name in shown if name in options)),
    ]
