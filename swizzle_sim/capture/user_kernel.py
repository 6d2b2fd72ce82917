"""A user's file or a trace file as a `swizzle_sim.workload.kernels.Kernel`, so that every command takes them.

A capture is stored as a trace file in the user's cache, and valid while the files that the kernel was loaded with,
Triton and this package are the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import cache_home, key_of
from swizzle_sim.capture.capture import LINE_BYTES, Captured, capture, capture_all
from swizzle_sim.capture.check import check_tiles
from swizzle_sim.capture.cuda.source import SUFFIXES
from swizzle_sim.capture.declare import PEAK
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.occupancy import (
    ARCHS,
    NVIDIA,
    check_compiles,
    compiled_for,
    resources_by_arch,
    stored_resources,
)
from swizzle_sim.capture.process import OnProgress, check_installed, shared_worker, worker_reply
from swizzle_sim.capture.trace_file import ARRAYS, SUFFIX, digest_of, read_trace, write_trace
from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel, declared_name, file_of, is_user_kernel
from swizzle_sim.workload.kernels import kernel as registered
from swizzle_sim.workload.launch import Launch, SizesAt
from xcd_model import Claims, Gpu, Trace
from xcd_model import gpu as load_gpu
from xcd_model.errors import CaptureError, CompileError, SizeError
from xcd_model.trace import coalesce

MAX_CACHED_TRACES = 32


def load(name: str, sizes: Mapping[str, int], arch: str = ARCHS[0], on_progress: OnProgress | None = None) -> Kernel:
    """Kernel of a Python file, captured if need be, or of a trace file."""
    if name.endswith(".npz"):
        trace, manifest = read_trace(Path(name))
        _check_fixed(name, manifest["facts"]["problem"], sizes)
        return kernel_of(trace, manifest, arch, file=str(Path(name).resolve()))
    request = request_of(name, sizes)
    trace, manifest = stored_capture(request, on_progress, arch)
    return kernel_of(trace, manifest, arch, request, file=name_of(request))


def kernel(name: str | os.PathLike[str], *, gpu: Gpu | str | None = None, **sizes: int) -> Kernel:
    """Kernel of the registry, of a Python file, of a recording or of a trace file, as a command takes it.

    Parameters
    ----------
    name : str or path
        Such as ``"gemm"``, ``"my_kernel.py"``, ``"my_kernel.py:NAME"``, ``"calls.json"`` or ``"my.trace.npz"``.
    gpu : Gpu or str, optional
        GPU for which it is compiled, where there is a compiler, as the commands do; by default the resources are those
        that the kernel states, of a file those on an MI300X.
    **sizes : int
        Such as ``M=4096``; those not given keep the default.

    Returns
    -------
    Kernel

    Raises
    ------
    UnknownName
        If there is no such kernel, or it has no such size; the message offers the nearest names.
    SizeError
        If the sizes make no sense for the kernel.
    CaptureError, CompileError
        As the file, its declaration, its capture and its compile may.
    """
    word = os.fspath(name)
    device = load_gpu(gpu) if isinstance(gpu, str) else gpu
    arch = device.arch if device else ARCHS[0]
    found = load(word, sizes, arch) if is_user_kernel(word) else registered(word, **sizes)
    return found if device is None else compiled_for(found, device)


def request_of(name: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Request to the worker for ``my_kernel.py`` or ``calls.json``, either with ``:NAME`` or ``:NAME@CONFIG``."""
    declared, at, config = declared_name(name).partition("@")
    request = {"path": str(Path(file_of(name)).resolve()), "name": declared or None, "sizes": dict(sizes)}
    if not at:
        return request
    if not (config.isascii() and config.isdigit() and len(config) < 10):
        raise CaptureError(
            f"{name}: after @ stands a configuration's number, such as :{declared}@0", code="declaration"
        )
    return {**request, "config": int(config)}


def name_of(request: Mapping[str, Any]) -> str:
    """Inverse of `request_of`, but for the sizes: the file's absolute path, name and configuration."""
    which = (request["name"] or "") + (f"@{request['config']}" if "config" in request else "")
    return request["path"] + (f":{which}" if which else "")


def _check_fixed(name: str, problem: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    for size, value in sizes.items():
        if problem.get(size) != value:
            have = " ".join(f"{n}={v}" for n, v in problem.items())
            raise SizeError(f"{size} = {value}: {name} was captured at {have}; other sizes are another capture")


def stored_capture(
    request: Mapping[str, Any], on_progress: OnProgress | None, arch: str = ARCHS[0]
) -> tuple[Trace, dict[str, Any]]:
    """Trace and manifest of a request from the user's cache, captured where it has none that is valid."""
    version = check_installed()
    path = cache_folder() / f"{_key(request, version)}{SUFFIX}"
    if path.exists():
        with contextlib.suppress(CaptureError):
            trace, manifest = read_trace(path)
            if all(digest(file) == known for file, known in manifest["dependencies"].items()):
                with contextlib.suppress(FileNotFoundError):  # a full cache has dropped it since
                    os.utime(path)
                return trace, manifest
    trace, manifest = capture_file(request, arch=arch, on_progress=on_progress)
    keep(request, trace, manifest)
    return trace, manifest


def keep(request: Mapping[str, Any], trace: Trace, manifest: Mapping[str, Any]) -> None:
    """Store a capture with default options, so that the next command on the same file need not capture."""
    path = cache_folder() / f"{_key(request, check_installed())}{SUFFIX}"
    with contextlib.suppress(OSError, CaptureError):  # a cache that cannot be written is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        write_trace(path, trace, manifest)
        for old in sorted(path.parent.glob(f"*{SUFFIX}"), key=lambda p: p.stat().st_mtime)[:-MAX_CACHED_TRACES]:
            old.unlink(missing_ok=True)


@shared_worker()
def capture_file(
    request: Mapping[str, Any], *, full: bool = False, line_bytes: int = LINE_BYTES, seed: int = 0,
    arch: str | None = None, on_progress: OnProgress | None = None,
) -> tuple[Trace, dict[str, Any]]:  # fmt: skip
    """Capture and compile what a file declares, for ``arch`` or any: trace, and manifest for `write_trace`."""
    described, request = describe(request)
    launch = Launch.from_dict(described["launch"], inputs_of(request))
    if launch.path.suffix in SUFFIXES:
        return _capture_cuda(launch, described, request, line_bytes=line_bytes, full=full, seed=seed)
    check_compiles(launch, arch)
    options: dict[str, Any] = {"full": full, "line_bytes": line_bytes, "seed": seed, "on_progress": on_progress}
    by_tile, sizes = described.pop("launch_by_tile"), described.pop("sizes_by_tile")
    if by_tile is None:
        found = capture(launch, **options)
        return found.trace, _manifest(found, described, request)
    spread = Launch.from_dict(by_tile, inputs_of({**request, "sizes": sizes}))
    if "claims" in described["facts"]:  # the clock decides what a program computes
        tiles = replace(capture(spread, **options), launch=launch)
        return tiles.trace, _manifest(tiles, described, request)
    found, tiles = capture_all([launch, spread], **options)
    check_tiles(described["facts"]["name"], tiles.trace, found.trace)
    return tiles.trace, _manifest(found, described, request)


def _capture_cuda(
    launch: Launch, described: Mapping[str, Any], request: Mapping[str, Any], **options: Any
) -> tuple[Trace, dict[str, Any]]:
    """As `capture_file`, of CUDA or HIP: there is no launch of Triton's, so nothing compiles or rewrites it."""
    from swizzle_sim.capture.cuda.trace import capture_cuda  # noqa: PLC0415  (of Linux)

    facts, asked = described["facts"], dict[str, Any](launch.options)
    found = capture_cuda(launch, Grid.from_dict({**facts, **described}), **options)
    of_arrays = [PEAK[array.dtype] for array in launch.arrays.values() if array.dtype in PEAK]
    resources = {
        "threads": math.prod(asked["block"]), "vgprs": asked["vgprs"], "lds_bytes": found.shared_bytes,
        "instructions_in_flight": asked["instructions_in_flight"],
        "source": f"{asked['vgprs']} registers and {asked['instructions_in_flight']} loads in flight as declared",
    }  # fmt: skip
    ran = f"{found.executed} of {found.trace.n_workgroups} workgroups run on this machine"
    ran += f" ({found.left_out})" if found.left_out else ""
    return found.trace, {
        **{key: described[key] for key in ("grid", "grids", "source")},
        "facts": {**facts, "dtype": facts["dtype"] or [*of_arrays, "fp32"][0], "flops": facts["flops"] or 0.0},
        "source_sha256": hashlib.sha256(described["source"].encode()).hexdigest(),
        "launch": {}, "triton": "", "how": ran, "paths": found.parts, "checked_workgroups": list(found.checked),
        "sectors": dict(found.sectors), "resources": {ARCHS[0]: resources},
        "dependencies": {**found.dependencies, request["path"]: digest(request["path"])},
    }  # fmt: skip


def _manifest(found: Captured, described: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Manifest of a capture, which depends on the file with the declaration too."""
    manifest = {**described, **manifest_of(found, described["source"])}
    manifest["facts"] = {**described["facts"], **_arithmetic(found, described["facts"])}
    return {**manifest, "dependencies": {**found.dependencies, request["path"]: digest(request["path"])}}


def _arithmetic(found: Captured, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Operations and their type: what a declaration states, else what was counted of products."""
    of_arrays = [PEAK[array.dtype] for array in found.launch.arrays.values() if array.dtype in PEAK]
    of_products = sorted((kind for kind in found.flops if kind in PEAK.values()), key=lambda kind: -found.flops[kind])
    counted = float(sum(found.flops.values()))
    flops = counted if stated["flops"] is None else stated["flops"]
    return {
        "dtype": stated["dtype"] or [*of_products, *of_arrays, "fp32"][0],
        "flops": flops,
        "issued_flops": max(flops, counted),  # what is stated may be more than products, or less than whole tiles
    }


def describe(request: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What a file declares, and the request with the autotuner's configuration, the first that compiles and fits."""
    described = _described(request)
    config = described["launch"].get("config", "")
    if not config or "config" in request or described["is_config_given"]:
        return described, request
    return _first_that_compiles(request, described["configs"])


def _described(request: Mapping[str, Any]) -> dict[str, Any]:
    with worker_reply({"verb": "describe", **request}) as (described, _):
        return described


def _first_that_compiles(request: Mapping[str, Any], places: Sequence[int]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """First configuration that fits an MI300X, else that compiles for an AMD GPU or an H200, as `describe` gives it."""
    errors = []
    for arch, fits in ((ARCHS[0], True), (ARCHS[0], False), *((one, False) for one in NVIDIA)):
        for place in places:
            request = {**request, "config": place}
            described = _described(request)
            try:
                check_compiles(Launch.from_dict(described["launch"]), arch, fits=fits)
            except CompileError as error:
                if "AttributeError(" in str(error):  # of the source, whatever the configuration
                    raise
                errors.append(error)
            else:
                return described, request
    raise errors[2 * len(places) - 1]


def capture_kernel(kernel: Kernel, **options: Any) -> tuple[Trace, dict[str, Any]]:
    """As `capture_file`, of a kernel of the registry: its Triton kernel is captured, not its access model."""
    if kernel.launch is None:
        raise CaptureError(f"{kernel.name} has an access model only, no Triton kernel to capture")
    by_tile = replace(kernel.launch, grid=kernel.grid.launch) if kernel.claims else kernel.launch
    found = replace(capture(by_tile, **options), launch=kernel.launch)
    described = {
        "facts": {
            **{key: getattr(kernel, key) for key in ("name", "summary", "sharing", "dtype", "programs")},
            **({"claims": asdict(kernel.claims)} if kernel.claims else {}),
            **{"problem": dict(kernel.problem), "tiles": kernel.grid.as_dict()["tiles"]},
            **{"flops": kernel.flops, "issued_flops": kernel.issued_flops},
        },
        "grid": list(by_tile.grid),
        "grids": [{**grid.as_dict(), "sizes": dict(sizes)} for grid, sizes in kernel.at_grids()],
    }
    return found.trace, {**described, **manifest_of(found, kernel.triton_source)}


def manifest_of(found: Captured, source: str) -> dict[str, Any]:
    """What a capture adds to a manifest."""
    return {
        "launch": found.launch.as_dict(),
        "source": source,
        "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
        "triton": found.triton,
        "how": found.how,
        "paths": found.n_paths,
        "checked_workgroups": list(found.checked),
        "dependencies": found.dependencies,
        "resources": resources_by_arch(found.launch),
    }


def kernel_of(
    trace: Trace,
    manifest: Mapping[str, Any],
    arch: str = ARCHS[0],
    request: Mapping[str, Any] | None = None,
    file: str = "",
) -> Kernel:
    """Kernel of a trace and its manifest; ``request`` is that for its Python file, None for a trace file."""
    facts = manifest["facts"]

    def build_trace(line_bytes: int) -> Trace:
        if line_bytes == trace.line_bytes:
            return trace
        if request is None:
            raise CaptureError(
                f"{facts['name']} was captured for lines of {trace.line_bytes} B, and this GPU's have {line_bytes} B: "
                f"capture again with --line-bytes {line_bytes}"
            )
        return capture_file(request, line_bytes=line_bytes)[0]

    return Kernel(
        name=facts["name"],
        summary=facts["summary"],
        problem=facts["problem"],
        dtype=facts["dtype"],
        grid=Grid.from_dict({**facts, **manifest}),
        flops=facts["flops"],
        issued_flops=facts.get("issued_flops", facts["flops"]),  # files of earlier versions have one number
        resources=stored_resources(manifest, arch),
        build_trace=build_trace,
        reference=lambda inputs: _made(
            request, {"verb": "reference"}, {"given": {name: np.asarray(value) for name, value in inputs.items()}}
        ),
        make_inputs=inputs_of(request),
        triton_source=manifest["source"],
        sharing=facts["sharing"],
        sources=(
            f"{manifest['how']} in Triton {manifest['triton']}'s interpreter"
            if manifest["triton"]
            else manifest["how"],
        ),
        at_grids=lambda: other_grids(manifest),
        programs=facts["programs"],
        claims=Claims(**facts["claims"]) if "claims" in facts else None,
        make_launch=(
            (lambda: Launch.from_dict(manifest["launch"], inputs_of(request)))
            if request and manifest["launch"]
            else None
        ),
        file=file,
        digest=_digest(trace, manifest),
    )


def _digest(trace: Trace, manifest: Mapping[str, Any]) -> str:
    """Of all that the scores of a kernel come from, but for where its file lies."""
    launch = {key: value for key, value in manifest["launch"].items() if key != "path"}
    facts = {key: value for key, value in manifest["facts"].items() if key not in ("summary", "sharing")}
    found = hashlib.sha256(json.dumps([manifest["source"], launch, facts], sort_keys=True).encode())
    found.update(digest_of(b"", {name: getattr(trace, name) for name in ARRAYS}))
    return found.hexdigest()


def other_grids(manifest: Mapping[str, Any]) -> list[tuple[Grid, SizesAt]]:
    """Other grids of a kernel, each with its sizes and the integers that its parameters are there."""
    return [(Grid.from_dict(at), SizesAt(at["sizes"], at.get("values", {}))) for at in manifest["grids"]]


def inputs_of(request: Mapping[str, Any] | None):
    """``make_inputs`` of what a file declares; raises `CaptureError` when called where there is no file."""
    return lambda seed: _made(request, {"verb": "inputs", "seed": seed})


def _made(request: Mapping[str, Any] | None, asked: dict[str, Any], given: Any = None) -> dict[str, np.ndarray]:
    """Arrays that a declaration makes, by parameter."""
    if request is None:
        raise CaptureError(
            "a trace file holds no inputs and no reference: use the kernel's Python file", code="trace-file"
        )
    with worker_reply({**request, **asked}, given) as (_, folder), np.load(folder / "made.npz") as made:
        return dict(made)


def cache_folder() -> Path:
    """Folder of the trace files of captured kernels."""
    return cache_home() / "traces"


def _key(request: Mapping[str, Any], version: str) -> str:
    """Digest of a request, of Triton's version, and of the code that a capture depends on."""
    traced = Path(coalesce.__file__).parent  # lines, waves and passes of an instruction
    return key_of(request, version, LINE_BYTES, code=(Path(__file__).parent, traced))
