"""Files of a bundle beside the kernels: inputs, what they need of their package, probes, README and scripts."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from swizzle_sim.capture.process import run_worker
from swizzle_sim.language.emit import emit_triton
from swizzle_sim.language.grid import Grid, bind
from swizzle_sim.language.ir import Form
from swizzle_sim.language.variables import arguments
from swizzle_sim.rewrite.normal import axes_of
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Gpu
from xcd_model.errors import HardwareError

SAMPLED_ITEMS = 1 << 26  # up to which the kernel's own inputs are made, and a sample of them looked at
COPIED_BYTES = 1 << 20  # up to which they are copied into the bundle
NORMAL = {"how": "normal", "mean": 0.0, "deviation": 1.0}
_XCDS = ("num_xcds", "NUM_XCDS")
SLICER, SLICER_TIMEOUT_S = "swizzle_sim.capture.sliced_module", 120.0
TEXTS = ("README.md", "run.sh", "job.sbatch")  # for people, who edit them: no digest
LAUNCHED = "original.py"  # as ``kernel_original.py``, with what it reads of its package


@dataclass(frozen=True, kw_only=True)
class Device:
    """As much of a GPU as a bundle says of the machine it is for, in one partition mode."""

    name: str  # as `xcd_model.spec.gpu.Gpu` has them
    title: str
    vendor: str
    arch: str
    partition: str
    xcds: int  # of the model: what the candidates were written for
    compute_units: int


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


def arguments_of(launch: Launch, seed: int) -> tuple[list[list[Any]], dict[str, bytes]]:
    """Run-time arguments for the manifest, and the files that some of them need."""
    made = functools.cache(lambda: dict(launch.make_inputs(seed)))
    files: dict[str, bytes] = {}
    arguments: list[list[Any]] = []
    for name, value in launch.arguments.items():
        if not isinstance(value, Array):
            arguments.append([name, {"value": value}])
            continue
        array = launch.storage.get(name, value)
        make = None if array.role == "out" or array.same_as else _make(name, array, made, files)
        about = {
            **{"shape": list(array.shape), "strides": list(array.item_strides), "dtype": array.dtype},
            **{"role": array.role, "n_items": array.n_items, "item_bytes": array.item_bytes, "make": make},
            **({"same_as": array.same_as, "offset": array.offset} if array.same_as else {}),
        }
        arguments.append([name, {"array": about}])
    return arguments, files


def _make(
    name: str, array: Array, made: Callable[[], Mapping[str, np.ndarray]], files: dict[str, bytes]
) -> dict[str, Any]:
    matters = array.is_index or not array.dtype.startswith(("fp", "bf"))
    if not matters and array.n_items > SAMPLED_ITEMS:
        return NORMAL
    values = made().get(name)
    if values is None:
        if not matters:
            return NORMAL
        if array.drawn_between:
            low, high = array.drawn_between
            return {"how": "uniform", "low": float(low), "high": float(high)}
        values = np.zeros(array.shape, np.int64)  # no values given: zero is in range
    if matters or values.nbytes <= COPIED_BYTES:
        file = f"inputs/{name}.bin"
        files[file] = _bytes(values, array)
        return {"how": "file", "file": file}
    seen = values.ravel()[: 1 << 16].astype(np.float64)
    if seen.min() >= 0:
        return {"how": "uniform", "low": float(seen.min()), "high": float(seen.max())}
    return {"how": "normal", "mean": float(seen.mean()), "deviation": float(seen.std())}


def _bytes(values: np.ndarray, array: Array) -> bytes:
    """Items row-major in the tensor's own type; bf16 and fp8 come as their bits, or bf16 as numbers."""
    if array.dtype == "bf16" and values.dtype.itemsize != 2:
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        values = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    names = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}
    if array.dtype not in ("bf16", "fp8e4", "fp8e5"):
        values = values.astype(names.get(array.dtype, array.dtype))
    return np.ascontiguousarray(values.reshape(array.shape)).tobytes()


def standalone(launch: Launch, files: Mapping[str, bytes], entries: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """Candidates of a kernel whose package is not imported, each as one file with all that it reads."""
    if not launch.sliced_for:
        return {}
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        places = []
        for entry in entries:
            place = Path(folder) / entry["file"]
            place.write_bytes(files[entry["file"]])
            places.append(str(place))
        request = {"texts": places, "path": str(launch.path), "function": launch.function, "arch": launch.sliced_for}
        reply = run_worker(SLICER, request, interpret=False, timeout_s=SLICER_TIMEOUT_S)
    if "error" in reply:
        raise HardwareError(f"{launch.function}: no bundle without its package: {reply['error']}")
    entries[0]["file"] = LAUNCHED
    return {entry["file"]: text.encode() for entry, text in zip(entries, reply["texts"], strict=True)}


def probe_source(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """Source of the probe, a Triton kernel that stores the tile of every workgroup, and its arguments."""
    axes = axes_of(grid)
    taken = [name for name in arguments(form) if name not in axes]
    values = bind(taken, grid, num_xcds, sizes).constants
    strides = {axis: side for axis, side in zip(axes, grid.launch, strict=False)}
    parameters = {f"in_{name}": values[name] for name in taken if name not in _XCDS}
    parameters |= {f"side_{axis}": side for axis, side in strides.items()}
    given = [str(values[name]) if name in _XCDS else name if name in axes else f"in_{name}" for name in arguments(form)]
    body = ["pid = tl.program_id(0)"] if axes == ("pid",) else ["left = tl.program_id(0)"]
    for axis in axes if len(axes) > 1 else ():
        body += [f"{axis} = left % side_{axis}", f"left = left // side_{axis}"]
    body.append(f"{', '.join(axes)} = swizzle({', '.join(given)})")
    tile = axes[-1]
    for axis in reversed(axes[:-1]):
        tile = f"({tile}) * side_{axis} + {axis}"
    body.append(f"tl.store(out_ptr + tl.program_id(0), {tile})")
    lines = [emit_triton(form), "", "@triton.jit", f"def probe({', '.join(['out_ptr', *parameters])}):"]
    lines += ['    """Store the tile of every program."""', *(f"    {line}" for line in body), ""]
    return "\n".join(lines), parameters


def texts(manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """README, shell script and Slurm script of a bundle, as files."""
    gpu = manifest["gpu"]
    values = {
        "kernel": manifest["kernel"],
        "sizes": " ".join(f"{name}={size}" for name, size in manifest["problem"].items()),
        "title": gpu["title"],
        "mode": f", {gpu['xcds']} XCDs ({gpu['partition']} mode)" if gpu["vendor"] == "amd" else "",
        "stack": "ROCm" if gpu["vendor"] == "amd" else "CUDA",
        "profiler": "rocprofv3" if gpu["vendor"] == "amd" else "Nsight Compute (ncu)",
        "version": manifest["version"],
        "candidates": "\n".join(_line(one) for one in manifest["candidates"]),
        "replay": manifest["replay"],
    }
    here = resources.files("swizzle_sim.hardware").joinpath("files")
    return {
        name: Template(here.joinpath(name).read_text(encoding="utf-8")).substitute(values).encode() for name in TEXTS
    }


def _line(one: Mapping[str, Any]) -> str:
    rate = one["predicted"]["l2_hit_rate"] if one["predicted"] else None
    said = "-" if rate is None else f"{100 * rate:.2f} %"
    name = " ".join(one["name"].split()).replace("|", "/")[:80]
    return f"| `{one['file']}` | {name} | {said} |"
