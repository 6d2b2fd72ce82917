"""`make_bundle`: a folder with everything that a node needs to confirm the finalists of a run.

Beside the kernels it holds inputs, what the kernels need of their package, probes, README and scripts.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from swizzle_sim.base.release import version
from swizzle_sim.capture.occupancy import ARCHITECTURES
from swizzle_sim.capture.process import run_worker, shared_worker
from swizzle_sim.capture.workload import Workload, of_kernel
from swizzle_sim.hardware.node.manifest import FORMAT, MANIFEST, digest, identity
from swizzle_sim.language import Swizzle
from swizzle_sim.language.emit import emit_triton
from swizzle_sim.language.grid import Grid, bind
from swizzle_sim.language.ir import Form
from swizzle_sim.language.variables import arguments
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.waiting import with_flags_unset
from swizzle_sim.rewrite import check_rewritten, rewrite_workload
from swizzle_sim.rewrite.check import Case, compare_interpreted
from swizzle_sim.rewrite.guard import GENERAL, named
from swizzle_sim.rewrite.normal import axes_of
from swizzle_sim.rewrite.price import price
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Gpu
from xcd_model.errors import CompileError, HardwareError, RewriteError

SAMPLED_ITEMS = 1 << 26  # up to which the kernel's own inputs are made, and a sample of them looked at
COPIED_BYTES = 1 << 20  # up to which they are copied into the bundle
NORMAL = {"how": "normal", "mean": 0.0, "deviation": 1.0}
_XCDS = ("num_xcds", "NUM_XCDS")
SLICER, SLICER_TIMEOUT_S = "swizzle_sim.capture.sliced_module", 120.0
TEXTS = ("README.md", "run.sh", "job.sbatch")  # for people, who edit them: no digest
LAUNCHED = "original.py"  # as ``kernel_original.py``, with what it reads of its package


def device_of(gpu: Gpu) -> dict[str, Any]:
    """As much of a GPU as a bundle says of the machine it is for, in one partition mode; its XCDs are the model's."""
    vendor = "amd" if gpu.arch.startswith("gfx") else "nvidia" if gpu.arch.startswith("sm_") else ""
    if not vendor:
        raise HardwareError(f"{gpu.name}: architecture {gpu.arch!r} is neither AMD's (gfx...) nor NVIDIA's (sm_...)")
    if vendor == "amd" and gpu.xcds == 1:
        raise HardwareError(f"{gpu.title} in {gpu.partition} mode is one XCD with one L2: there is nothing to swizzle")
    arch = gpu.arch if vendor == "amd" else gpu.arch.rstrip("af")  # sm_90a is the same chip as sm_90
    return {
        **{"name": gpu.name, "title": gpu.title, "vendor": vendor, "arch": arch, "partition": gpu.partition},
        **{"xcds": gpu.xcds, "compute_units": gpu.cus},
    }


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


ORIGINAL = "original"
SPARE = "swizzle-sim"  # prefix of the folder that a bundle grows in


@dataclass(frozen=True, kw_only=True)
class Finalist:
    """A candidate to confirm."""

    name: str
    source: str  # text in the closed language
    number: int | None = None  # of the attempt in its run
    score: Score | None = None  # what was predicted, from the replay named in the bundle


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the predictions and the inputs of a bundle come from."""

    run: str = ""  # name of the run folder that the finalists come from; empty for candidates without a run
    replay: str = "timed"  # replay of the predictions
    seed: int = 0  # of the inputs


def make_bundle(
    kernel: Kernel,
    gpu: Gpu,
    finalists: Sequence[Finalist],
    folder: Path,
    *,
    baseline: Score | None = None,
    origin: Origin = Origin(),
    check: bool = True,
    on_candidate: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Write a bundle; ``on_candidate`` is called with how many candidates are done, of how many."""
    device = device_of(gpu)
    if not finalists:
        raise HardwareError("nothing to confirm: the launch order is the only candidate; name another with --swizzle")
    if folder.exists():
        raise HardwareError(f"{folder} exists, and a bundle is never changed: name another folder")
    work = of_kernel(kernel)
    original = work.launch.path.read_bytes()
    made = []
    with shared_worker():
        for place, one in enumerate(_as_others(work, gpu, finalists), start=1):
            on_candidate(place - 1, len(finalists))
            made.append(_candidate(work, device, one, place, check))
    arguments, files = arguments_of(with_flags_unset(work.launch) if kernel.waits else work.launch, origin.seed)
    here = resources.files("swizzle_sim.hardware")
    files |= {"kernel_original.py": original, "confirm.py": here.joinpath("files/confirm.py").read_bytes()}
    files |= {f"node/{one.name}": one.read_bytes() for one in here.joinpath("node").iterdir() if one.name[-3:] == ".py"}
    for _, more, _ in made:
        files |= more
    launched = {
        **{"id": ORIGINAL, "name": "launch order", "number": 0, "file": "kernel_original.py"},
        **{"order": None, "probe": None, "source": None, "predicted": _predicted(baseline), "races": False},
    }
    entries = [launched, *(entry for entry, _, _ in made)]
    races = any(one["races"] for one in entries)  # found with one order, and so of all: it is the kernel that races
    entries = [{**one, "races": races} for one in entries]
    files |= standalone(work.launch, files, entries)
    compilers = (one.score.price.after.triton for one in finalists if one.score and one.score.price)  # one for all
    manifest: dict[str, Any] = {
        **{"format": FORMAT, "version": version(), "run": origin.run, "kernel": kernel.name},
        **{"function": work.launch.function, "problem": dict(kernel.problem), "source_sha256": digest(original)},
        **{"gpu": device, "replay": origin.replay, "seed": origin.seed, "priced_with": next(compilers, None)},
        "launch": {
            **{"arguments": arguments, "constexprs": dict(work.launch.constexprs), "grid": list(work.launch.grid)},
            **{"num_warps": work.launch.num_warps, "num_stages": work.launch.num_stages, "launches": kernel.launches},
        },
        "remapped_grid": made[0][2],
        "candidates": entries,
    }
    manifest["files"] = {name: digest(data) for name, data in sorted(files.items())}
    manifest["bundle"] = identity(manifest)
    files[MANIFEST] = (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode()
    _write(folder, files | texts(manifest))
    return manifest


def _predicted(score: Score | None) -> dict[str, Any] | None:
    return None if score is None else {"kind": "simulated", **score.as_dict()}


def _as_others(work: Workload, gpu: Gpu, finalists: Sequence[Finalist]) -> list[Finalist]:
    """Finalists, the launch order among them spelled and priced as the others: it is their reference."""
    spelled = next((one.score.price.emission for one in finalists if one.score and one.score.price), None)

    def priced(one: Finalist) -> Finalist:
        if not spelled or one.score is None or one.score.price:
            return one
        emission = replace(named(spelled), handed=False)
        with contextlib.suppress(CompileError, RewriteError):
            found = price(work, Swizzle.parse(one.source, name=one.name), gpu, spellings=(emission,))
            return replace(one, score=replace(one.score, price=found))
        return one

    return list(map(priced, finalists))


def _candidate(
    work: Workload, device: Mapping[str, Any], finalist: Finalist, place: int, check: bool
) -> tuple[dict[str, Any], dict[str, bytes], list[int]]:
    """Entry in the manifest, files, and the grid that its order counts."""
    swizzle = Swizzle.parse(finalist.source, name=finalist.name)
    paid = finalist.score.price if finalist.score else None
    emission = named(paid.emission) if paid else GENERAL
    found = rewrite_workload(work, swizzle, num_xcds=device["xcds"], emission=emission)
    plain = replace(emission, handed=False)  # the probe answers with a program id
    ids = rewrite_workload(work, swizzle, num_xcds=device["xcds"], emission=plain) if emission.handed else found
    cases: tuple[Case, ...] = ()
    if check and paid:
        cases = compare_interpreted(found, work)
    elif check:
        arch = next((one for one in ARCHITECTURES if one.rstrip("a") == device["arch"]), device["arch"])
        cases = check_rewritten(found, work, arch).cases
    key = f"candidate_{place}"
    order = found.guarded.swizzle.permutation(found.grid, device["xcds"], work.problem)
    probe, values = probe_source(ids.guarded.form, found.grid, device["xcds"], work.problem)
    files = {
        f"{key}.py": found.text,
        f"{key}_order.bin": order.astype("<i4").tobytes(),
        f"{key}_probe.py": probe.encode(),
        f"{key}.txt": finalist.source.encode(),
    }
    entry = {
        **{"id": key, "name": finalist.name, "number": finalist.number, "file": f"{key}.py"},
        **{"order": f"{key}_order.bin", "probe": f"{key}_probe.py", "probe_arguments": values},
        **{"source": finalist.source, "predicted": _predicted(finalist.score)},
        **{"emission": emission.name, "options": dict(paid.offer) if paid else {}},
        "moved": int(np.count_nonzero(order != np.arange(order.size))),
        "races": any(case.races for case in cases),
    }
    return entry, files, list(found.grid.launch)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Write all files to a temporary folder and rename it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{SPARE}-", dir=folder.parent))
        try:
            for name, data in files.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                if path.suffix in (".sh", ".sbatch"):
                    path.chmod(0o755)
            draft.chmod(0o755)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise HardwareError(f"{folder}: the bundle cannot be written ({error.strerror})") from error
