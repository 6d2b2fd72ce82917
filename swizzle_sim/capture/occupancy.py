"""Registers and LDS of a Triton kernel's workgroup, from compiling it for a GPU that need not be there.

Triton's own backends do the compiling, in a process of their own: LLVM for AMD, the ptxas that Triton brings for
NVIDIA. Registers are what the hardware allocates, LDS (shared memory) is what the launcher requests. Both depend on
the compiler, so its version and options are stored with them. Results are cached on disk by source, arguments, options
and Triton's version.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.process import run_worker, triton_version
from swizzle_sim.language.parse import one_parser
from swizzle_sim.nvidia.sass import Controlled
from swizzle_sim.nvidia.waves import cycles_of
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from swizzle_sim.workload.price import CodeFigures, CompiledKernel
from xcd_model import Gpu, Resources, gpu, workgroups_per_cu
from xcd_model.errors import CompileError, ReplayError

ARCHITECTURES = ("gfx942", "gfx950", "gfx1250", "sm_90a", "sm_100a", "sm_121a")
COMPILE_TIMEOUT_S = 600.0
NOT_HERE = "; not compiled here: "  # in the source of resources, before the reason
BURST = ("burst_loads", "burst_cycles", "busy_cycles")  # of a remapped kernel as it is compiled
_FORMAT = 22  # of the entries on disk
_WORKER = "swizzle_sim.capture.occupancy_worker"


@dataclass(frozen=True, kw_only=True)
class Compiled(CodeFigures):
    """One kernel compiled for one architecture."""

    function: str
    options: Mapping[str, Any]  # all compile options, defaults included
    threads: int  # threads a workgroup
    # vector registers a lane that the descriptor allocates, accumulation registers among them; on NVIDIA registers a
    # thread
    vgprs: int
    vgprs_used: int  # registers that the code uses, as LLVM counts them
    agprs_used: int
    scratch_bytes: int  # [bytes]: of a lane
    vgpr_spills: int  # registers that did not fit; on NVIDIA words of 4 bytes of a thread's stack
    sgpr_spills: int
    llvm_waves_per_simd: int  # occupancy as LLVM sees it, from registers alone; 0 on NVIDIA
    loads_per_step: int  # loads in the body of the kernel's main loop
    pipelined: bool  # whether the compiler pipelined the main loop
    compile_s: float  # [s]
    files: Mapping[str, str] = field(repr=False)  # SHA-256 of every source file that took part, by path

    @property
    def resources(self) -> Resources:
        """The part that decides how many workgroups fit a CU."""
        figures = {one.name: getattr(self, one.name) for one in fields(Resources) if hasattr(self, one.name)}
        if not self.pipelined:
            figures |= {"loads_per_step": 0, "step_instructions": 0, "after_products": False, "past_l1": False}
        return Resources(source=f"compiled for {self.arch} with Triton {self.triton}", **figures)

    def on(self, gpu: Gpu) -> CompiledKernel:
        """The figures by which a remapping is priced, with workgroups a CU."""
        figures = {one.name: getattr(self, one.name) for one in fields(CodeFigures)}
        counted = self.resources
        figures |= {name: getattr(counted, name) for name in ("step_instructions", "after_products", "past_l1")}
        return CompiledKernel(
            **{**figures, "loads": tuple((width, count) for width, count in self.loads)},
            registers=self.vgprs,
            agprs=self.agprs_used,
            spills=self.vgpr_spills + self.sgpr_spills,
            workgroups_per_cu=workgroups_per_cu(counted, gpu),
        )


@dataclass(frozen=True)
class OccupancyLimits:
    """Workgroups a CU, and what each resource alone would allow."""

    workgroups: int
    alone: Mapping[str, int]  # by resource: ``"VGPRs"``, ``"LDS"`` and ``"waves and slots"``

    @property
    def short(self) -> tuple[str, ...]:
        """The resources that decide."""
        return tuple(name for name, fits in self.alone.items() if fits == self.workgroups)


def limits_of(resources: Resources, gpu: Gpu) -> OccupancyLimits:
    """What limits the workgroups on one CU."""
    fitting = workgroups_per_cu(resources, gpu)
    only = {
        "VGPRs": replace(resources, lds_bytes=0),
        "LDS": replace(resources, vgprs=1),
        "waves and slots": replace(resources, vgprs=1, lds_bytes=0),
    }
    return OccupancyLimits(fitting, {name: workgroups_per_cu(one, gpu) for name, one in only.items()})


def compiled_for(kernel: Kernel, gpu: Gpu) -> Kernel:
    """Kernel with the resources that the compiler gives it on a GPU."""
    known = kernel.resources
    if known.source.startswith(f"compiled for {gpu.arch} ") or kernel.launch is None:
        return kernel
    try:
        found = compile_launch(kernel.launch, gpu.arch).resources
    except CompileError as error:
        found = replace(known, source=f"{known.source.partition(NOT_HERE)[0]}{NOT_HERE}{error}")
    return replace(kernel, resources=found)


def compile_launch(launch: Launch, arch: str, *, use_cache: bool = True) -> Compiled:
    """Compile a launch's kernel as the launcher would: aligned pointers, unit strides as constants."""
    (found,) = compile_for(launch, (arch,), use_cache=use_cache)
    if isinstance(found, CompileError):
        raise found
    return found


def compile_for(launch: Launch, archs: Sequence[str], *, use_cache: bool = True) -> list[Compiled | CompileError]:
    """As `compile_launch`, for several architectures in one process; what does not compile has its error as item."""
    for arch in archs:
        if arch not in ARCHITECTURES:
            raise CompileError(f"arch = {arch!r}: kernels are compiled for {', '.join(ARCHITECTURES)}")
    path = Path(launch.path).resolve()
    if not path.is_file():
        raise CompileError(f"{path}: no such file")
    return _compiled_all([request_of(launch, arch) for arch in archs], use_cache=use_cache)


def compile_each(launches: Sequence[Launch], arch: str, processes: int = 1) -> list[Compiled | CompileError]:
    """As `compile_launch`, several launches, in one process or as many at once."""
    return _compiled_all([request_of(launch, arch) for launch in launches], processes=processes)


def _compiled_all(
    requests: Sequence[dict[str, Any]], *, use_cache: bool = True, processes: int = 1
) -> list[Compiled | CompileError]:
    """What each request compiles to, those that no cache has."""
    version, cache = triton_version(), DiskCache("compiled")
    keys = [_key(one, version) for one in requests]
    found: list[Any] = [_cached(cache.get(key)) if use_cache else None for key in keys]
    missing = [i for i, one in enumerate(found) if one is None]
    for i, one in zip(missing, _compiled_in([requests[i] for i in missing], processes), strict=True):
        found[i] = one
        if use_cache and isinstance(one, Compiled):
            files = {path: sha for path, sha in one.files.items() if path != requests[i]["text_from"]}
            cache.put(keys[i], asdict(replace(one, files=files)))  # the text is in the key, wherever it lies
    return found


def _compiled_in(requests: Sequence[dict[str, Any]], processes: int) -> Iterable[Compiled | CompileError]:
    """As `_compiled_now`, each request by itself where there are several processes."""
    if processes < 2 or len(requests) < 2:
        return _compiled_now(requests)
    from joblib import Parallel, delayed  # takes a third of a second to load

    done = Parallel(processes, batch_size=1)(delayed(_compiled_now)([one]) for one in requests)
    return chain.from_iterable(done)


def _compiled_now(requests: Sequence[dict[str, Any]]) -> list[Compiled | CompileError]:
    """What each request compiles to, in one process."""
    if not requests:
        return []
    asked, version = {"requests": list(requests)}, triton_version()
    replies = run_worker(_WORKER, asked, interpret=False, timeout_s=COMPILE_TIMEOUT_S)["replies"]
    return [
        CompileError(reply["error"]) if "error" in reply else _compiled_as(one["function"], one["arch"], version, reply)
        for one, reply in zip(requests, replies, strict=True)
    ]


def _compiled_as(function: str, arch: str, triton: str, reply: Mapping[str, Any]) -> Compiled:
    """Take the compiling process's figures, and time the loop's code."""
    figures = dict(reply)
    loop, unrolled = [Controlled(*one) for one in figures.pop("loop", ())], figures.pop("unrolled", 1)
    if figures.get("vector_cycles"):
        figures["vector_loads"] = figures["loads_per_step"]
    found = Compiled(function=function, arch=arch, triton=triton, **figures)
    return replace(found, **cycles_of(loop, unrolled, arch, found.resources, found.loads_per_step))


def request_of(launch: Launch, arch: str) -> dict[str, Any]:
    """Request to the compiling process, plain data for JSON."""
    arguments = {
        name: {
            **{"dtype": value.dtype, "size_bytes": value.n_items * value.item_bytes},
            **{"first_byte": value.offset * value.item_bytes, **_descriptor_of(value)},
        }
        if isinstance(value, Array)
        else value
        for name, value in launch.arguments.items()
        if name not in launch.pointed_to
    }
    return {
        "path": str(Path(launch.path).resolve()),
        "function": launch.function,
        "arch": arch,
        "arguments": arguments,
        "constexprs": dict(launch.constexprs),
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
        "options": dict(launch.options),
        "sliced_for": launch.sliced_for,
        "text_from": str(launch.text_from or ""),
    }


def _descriptor_of(array: Array) -> dict[str, Any]:
    """What more the launcher looks at where it is handed a tensor descriptor."""
    if array.block is None:
        return {}
    return {"shape": list(array.shape), "strides": list(array.item_strides), "block": list(array.block)}


def _key(request: dict[str, Any], version: str) -> str:
    """Digest of all that a compile depends on, as far as it is known beforehand: imported files are looked at later."""
    with one_parser():
        text = request["text_from"] and ast.dump(ast.parse(Path(request["text_from"]).read_bytes()))  # without comments
    classes = {name: _class_of(value) for name, value in request["arguments"].items()}
    knobs = {name: value for name, value in os.environ.items() if name.startswith(("TRITON_", "AMDGCN_"))}
    for private in ("TRITON_CACHE_DIR", "TRITON_INTERPRET"):
        knobs.pop(private, None)
    known = {**request, "arguments": classes, "text_from": text}
    return key_of(_FORMAT, version, digest(request["path"]), known, knobs)


def _class_of(value: Any) -> Any:
    """What of an argument the compiler sees: sizes of one class give the same code."""
    if isinstance(value, dict):
        return [value["dtype"], value["size_bytes"] <= 2**31 - 1, value["first_byte"] % 16, value.get("block")]
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__
    return [value if value == 1 else "int", value % 16 == 0, value.bit_length() // 32]


def _cached(entry: Any) -> Compiled | None:
    """Entry of the cache, unless it is missing, damaged, or one of its source files has changed."""
    try:
        found = Compiled(**entry)
    except TypeError:
        return None
    return found if all(digest(where) == known for where, known in found.files.items()) else None


# Resources of a captured kernel: those on AMD's two GPUs are kept with its trace, those on another are compiled for.
#
# A kernel that none of the two takes, such as one with PTX in it or with tiles beyond their LDS, is captured if an H200
# takes it.

ARCHS = ("gfx942", "gfx950")
NVIDIA = ("sm_90a",)
GPUS = {"gfx942": "mi300x", "gfx950": "mi355x", "sm_90a": "h200"}  # whose limits a configuration is chosen by


def check_compiles(launch: Launch, arch: str | None = None, *, fits: bool = False) -> None:
    """Refuse a launch that compiles for nothing that it is for, before a capture, which may take minutes."""
    wanted: Sequence[Sequence[str]] = (ARCHS, NVIDIA)
    if arch is not None:
        wanted = (ARCHS if arch in ARCHS and not fits else (arch,),)
    errors = [_errors(launch, archs, fits=fits) for archs in wanted]
    if all(errors):
        raise errors[0][0]


def _errors(launch: Launch, archs: Sequence[str], *, fits: bool) -> list[CompileError]:
    """Why a launch compiles for none of some architectures; nothing where it does for one: a tile may not fit all."""
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
    return dict(zip(ARCHS, map(_stated, compile_for(launch, ARCHS)), strict=True))


def _stated(found: Compiled | CompileError) -> dict[str, Any]:
    return {"error": str(found)} if isinstance(found, CompileError) else asdict(found.resources)


def stored_resources(manifest: Mapping[str, Any], arch: str) -> Resources:
    """Resources that a manifest has for an architecture, or for one of `ARCHS` where the GPU has another."""
    kept: Mapping[str, Any] = manifest["resources"]
    if arch in kept:
        found = kept[arch]
    else:
        found = next((one for one in kept.values() if "error" not in one), None)
        found = found or _stated(*compile_for(Launch.from_dict(manifest["launch"]), (arch,)))
    if "error" in found:
        raise CompileError(f"{manifest['facts']['name']} does not compile for {arch}: {found['error']}")
    return Resources(**found)
