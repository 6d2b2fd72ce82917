"""`describe`: a kernel of HIP, CK, CUDA or anything else by what its workgroups touch, as every command takes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import cache_home
from swizzle_sim.capture.capture import LINE_BYTES
from swizzle_sim.capture.declare import PEAK
from swizzle_sim.capture.trace_file import ARRAYS, SUFFIX, check_manifest, digest_of, write_trace
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.lattice import lattice_like
from swizzle_sim.workload.kernels import Kernel, check_sizes
from xcd_model import Resources, TraceBuilder
from xcd_model.errors import CaptureError

NEEDED = ("threads", "vgprs", "lds_bytes")


class Ids:
    """Ids of all workgroups in launch order, by the names that a swizzle uses: each (num_pids, 1) int64.

    The second axis is for trips of a loop: ``at.pid_m * 128 + 0 * np.arange(0, K, 64)`` is (num_pids, trips).
    """

    def __init__(self, grid: Grid):
        self._grid = grid

    def __getattr__(self, name: str) -> np.ndarray:
        digits = self._grid.coordinates
        if name not in digits:
            known = ", ".join(one for one in digits if one.isidentifier())
            raise AttributeError(f"a grid of {self._grid} has no {name}; there is: {known}")
        pid = np.arange(self._grid.num_pids, dtype=np.int64)[:, None]
        return pid // digits[name].stride % digits[name].extent


def describe(
    name: str,
    grid: Grid | int | str,
    resources: Resources | Mapping[str, int],
    touches: Callable[[TraceBuilder, Ids], None],
    *,
    sizes: Mapping[str, int] | None = None,
    dtype: str = "fp16",
    flops: float = 0.0,
    file: str | PathLike[str] | None = None,
) -> Kernel:
    """Describe a kernel that is not Triton's by what its workgroups touch, and write that as a trace file.

    Parameters
    ----------
    name : str
    grid : Grid, int or str
        Workgroups: a count, ``"64x64"`` for a launch along x and y, or a `Grid` with the tiles of a launch in a row.
    resources : Resources or mapping
        ``threads``, ``vgprs`` and ``lds_bytes`` of a workgroup as compiled; ``instructions_in_flight`` (2 where not
        given), and the others of `Resources`.
    touches : callable
        ``touches(build, at)`` calls ``build.step`` of a `TraceBuilder` for the loads and stores of all workgroups at
        once, in program order; ``at.pid``, ``at.pid_m``, ``at.x`` and so on are the workgroups' ids.
    sizes : mapping of str to int, optional
        Problem sizes that a swizzle may read. Without any, a swizzle is checked on other grids too.
    dtype : str
        Type that the arithmetic runs in, such as fp16, bf16, fp8, fp32 or int8.
    flops : float
        Floating-point operations of one launch; 0 counts no arithmetic.
    file : path, optional
        Trace file to write, ``NAME.trace.npz``, which every command takes in place of a kernel; by default one in the
        cache, so that ``report``, ``--resume`` and ``bundle`` find the kernel of a run again.

    Returns
    -------
    Kernel

    Raises
    ------
    TraceError
        If nothing is touched, or a figure cannot be; names it, its value and the rule.
    SizeError
        If the grid or a size makes no sense.
    CaptureError
        If ``dtype`` or a key of ``resources`` is unknown, or the file cannot be written.
    """
    where = grid if isinstance(grid, Grid) else Grid.parse(str(grid))
    problem = dict(sizes or {})
    check_sizes(name, problem)
    if dtype not in PEAK.values():
        raise CaptureError(f"{name}: dtype = {dtype!r} is none of {', '.join(sorted(set(PEAK.values())))}")
    build = TraceBuilder(n_workgroups=where.num_pids, line_bytes=LINE_BYTES)
    touches(build, Ids(where))
    trace = build.trace()
    others = [] if problem else lattice_like(where)
    manifest: dict[str, Any] = {
        "facts": {
            "name": name, "summary": f"{name}, as described", "sharing": "", "problem": problem, "dtype": dtype,
            "tiles": where.as_dict()["tiles"], "programs": None, "flops": flops,
        },
        "grid": list(where.launch),
        "grids": [{**one.as_dict(), "sizes": {}} for one in others],
        "launch": {}, "source": "", "triton": "", "how": "described by hand", "paths": 0, "checked_workgroups": [],
        "dependencies": {}, "resources": {"gfx942": _resources(name, resources)},
    }  # fmt: skip
    check_manifest(manifest, trace.n_workgroups)
    path = Path(file) if file is not None else _kept(name, repr(manifest), trace)
    if not path.name.endswith(SUFFIX):
        raise CaptureError(f"{path}: a trace file is called {Path(path.name).stem}{SUFFIX}", code="trace-file")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_trace(path, trace, manifest)
    return load(str(path), {})


def _resources(name: str, given: Resources | Mapping[str, int]) -> dict[str, Any]:
    """Resources as a manifest has them."""
    if isinstance(given, Resources):
        return asdict(given)
    known = set(Resources.__dataclass_fields__)
    if wrong := sorted(set(given) - known) or [key for key in NEEDED if key not in given]:
        rule = f"threads, vgprs and lds_bytes are needed, and {', '.join(sorted(known - set(NEEDED)))} are taken"
        raise CaptureError(f"{name}: resources: {wrong[0]}: {rule}")
    return {"instructions_in_flight": 2, "code_bytes": 0, "loads_per_step": 0, "source": "as described", **given}


def _kept(name: str, manifest: str, trace: Any) -> Path:
    """File in the cache, by what is in it."""
    digest = digest_of(manifest.encode(), {key: getattr(trace, key) for key in ARRAYS}).hex()[:12]
    return cache_home() / "described" / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:40]}-{digest}{SUFFIX}"
