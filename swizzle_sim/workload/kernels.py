"""`Kernel`, a workload at one problem size, and the registry that finds workloads by name.

The registry is the entry-point group ``swizzle_sim.kernels``: the built-in suite is listed in this distribution's
``setup.cfg``, and any installed package can add its own kernels the same way.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import metadata
from typing import Any

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.launch import Launch
from swizzle_sim.workload.work import Work
from xcd_model import Gpu, Waits
from xcd_model.errors import CaptureError, SizeError, SwizzleSimError, UnknownName
from xcd_model.integers import is_whole

GROUP = "swizzle_sim.kernels"
DECLARING = (".py", ".json")  # endings of files that declare kernels: Python, and recordings
MAX_SIZE = 2**31 - 1  # sizes reach the kernel as signed 32-bit integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel(Work):
    """One workload at one problem size.

    Parameters
    ----------
    name, summary : str
    problem : mapping of str to int
        Every size by the name the kernel's source uses; a candidate may read them.
    dtype : str
        Type the arithmetic runs in, a key of ``Gpu.peak_tflops``.
    grid : Grid
    flops : float
        Floating-point operations of one launch.
    issued_flops : float
        Operations that the hardware executes for them, masked-out parts of tiles included.
    vector_ops : float
        Vector instructions of one launch, per lane, that no matrix operation can overlap, such as a softmax between two
        products.
    resources : Resources
        Resources of a CU that a workgroup of the compiled kernel occupies.
    build_trace : callable
        ``build_trace(line_bytes) -> Trace``; each kernel builds it once per line size.
    reference : callable
        ``reference(inputs) -> outputs``, numpy arrays by name.
    make_inputs : callable
        ``make_inputs(seed) -> dict`` of numpy arrays.
    triton_source : str
        Text of the Triton kernel.
    sharing : str
        In words, which workgroups share which data.
    sources : tuple of str
    at_grids : callable
        ``at_grids() -> iterable of (Grid, sizes)``: the same kernel at other grids, ragged sizes among them, for the
        check over a lattice.
    programs : int, optional
        Programs launched of a persistent kernel, whose grid is its tiles: program p computes tiles p, p + programs, ...
        of the order.
    claims : Claims, optional
        Of a persistent kernel whose programs claim their tiles from atomic counters instead.
    clusters : Clusters, optional
        Of a launch each of whose programs is a cluster of workgroups, as Triton's ``num_ctas`` has it; ``grid`` and the
        trace are of programs, so a candidate moves whole clusters. ``resources`` are those of one workgroup.
    waits : callable, optional
        ``waits(sizes) -> Waits``, of a kernel of several stages whose tiles wait for others; of the tiles at those
        sizes, which ``problem`` and ``at_grids`` name.
    make_launch : callable, optional
        ``make_launch() -> Launch``, the Triton launch, by which the kernel can be captured, compiled and rewritten.
    launches : int
        Back-to-back launches of a run on the same arrays, such as time steps.
    file : str
        Origin of a user's kernel, as an absolute ``my_kernel.py:NAME`` or ``my.trace.npz``; empty for the
        registry's.
    digest : str
        Of such a kernel's source, launch and trace.
    fitted : mapping of str to tuple of str
        Constants of this description that were fitted to measured rows: ids of those rows, by the constant's name.
    """

    name: str
    summary: str
    grid: Grid
    reference: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(repr=False)
    make_inputs: Callable[[int], Mapping[str, Any]] = field(repr=False)
    triton_source: str = field(repr=False)
    sharing: str = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    at_grids: Callable[[], Iterable[tuple[Grid, Mapping[str, int]]]] = field(repr=False)
    waits: Callable[[Mapping[str, int]], Waits] | None = field(repr=False, default=None)
    make_launch: Callable[[], Launch] | None = field(repr=False, default=None)
    file: str = ""
    digest: str = ""

    def __post_init__(self):
        object.__setattr__(self, "build_trace", lru_cache(maxsize=2)(self.build_trace))

    @cached_property
    def launch(self) -> Launch | None:
        """The Triton launch, if there is one."""
        return None if self.make_launch is None else self.make_launch()

    def runs_on(self, gpu: Gpu) -> bool:
        """Whether a GPU dispatches such clusters as the kernel is launched in; true without clusters."""
        return self.clusters is None or self.clusters.size <= (gpu.limits.workgroups_per_cluster or 1)

    @cached_property
    def lattice(self) -> tuple[tuple[Grid, Mapping[str, int]], ...]:
        """The kernel at other grids, with its sizes there."""
        return tuple(self.at_grids())


def check_sizes(name: str, sizes: Mapping[str, int], switches: Iterable[str] = ()) -> None:
    """Refuse sizes that are no positive 32-bit integers, and switches that are neither 0 nor 1."""
    for size, value in sizes.items():
        if size in switches:
            if value not in (0, 1):
                raise SizeError(f"{name}: {size} = {value!r}: a switch is 0 or 1")
            continue
        if not is_whole(value):
            raise SizeError(f"{name}: {size} = {value!r}: a size is an integer")
        if not 1 <= value <= MAX_SIZE:
            raise SizeError(f"{name}: {size} = {value}: a size is at least 1 and at most {MAX_SIZE}")


def is_user_kernel(name: str) -> bool:
    """Whether a KERNEL argument names a file: ``my_kernel.py``, ``calls.json``, both with ``:NAME`` too, or a trace."""
    return name.endswith(".npz") or any(
        name.endswith(suffix) or name.partition(suffix)[2].startswith((":", "@")) for suffix in DECLARING
    )


def file_of(name: str) -> str:
    """Path in ``my_kernel.py``, ``calls.json``, either with ``:NAME``, or ``my.trace.npz``."""
    return name if name.endswith(".npz") else _parted(name)[0]


def declared_name(name: str) -> str:
    """``NAME`` in ``my_kernel.py:NAME`` or ``calls.json:NAME``; empty without one."""
    return _parted(name)[1]


def _parted(name: str) -> tuple[str, str]:
    suffix = max(DECLARING, key=name.rfind)
    file, _, which = name.rpartition(suffix)
    return file + suffix, which.lstrip(":")


def registered(group: str) -> dict[str, metadata.EntryPoint]:
    """Entry points of a group by name, of what is installed now."""
    return dict(_entry_points(group, tuple((place, *_changed_ns(place)) for place in sys.path)))


@lru_cache(maxsize=16)
def _entry_points(group: str, places: tuple[tuple[str | int, ...], ...]) -> dict[str, metadata.EntryPoint]:
    """Read the names of all packages in all places: some ms, and a search asks thousands of times."""
    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def _changed_ns(place: str) -> list[int]:
    """When packages came into a folder or left it, and when the entry points of each were written; empty for none."""
    try:
        listed = [one.path for one in os.scandir(place or os.curdir) if one.name.endswith((".dist-info", ".egg-info"))]
        return [os.stat(place or os.curdir).st_mtime_ns, *map(_written_ns, sorted(listed))]
    except OSError:
        return []


def _written_ns(package: str) -> int:
    try:
        return os.stat(os.path.join(package, "entry_points.txt")).st_mtime_ns
    except OSError:
        return 0


def kernel_names() -> list[str]:
    """Names of all registered kernels, sorted."""
    return sorted(registered(GROUP))


def kernel(name: str, **sizes: int) -> Kernel:
    """Kernel of the registry at given sizes; sizes not given keep the kernel's default."""
    found = registered(GROUP)
    if name.partition(":")[0].endswith((".cu", ".cuh", ".hip")):
        raise CaptureError(
            f"{name}: a CUDA or HIP file is declared in a Python file; draft one: swizzle-sim init-kernel "
            f"{name.partition(':')[0]}:FUNCTION",
            code="declaration",
        )
    if name not in found:
        raise UnknownName("kernel", name, found)
    with faults_of(name, found[name].module):
        make = found[name].load()
    known = inspect.signature(make).parameters
    for size in sizes:
        if size not in known:
            raise UnknownName(f"size of kernel {name}", size, known)
    switches = [p.name for p in known.values() if isinstance(p.default, bool)]
    check_sizes(name, {p.name: sizes.get(p.name, p.default) for p in known.values()}, switches)
    with faults_of(name, found[name].module):
        return make(**sizes)


@contextmanager
def faults_of(name: str, module: str) -> Iterator[None]:
    """Say in a line where a kernel's declaration is at fault; ``module`` has it."""
    try:
        yield
    except (SwizzleSimError, MemoryError, RecursionError, OverflowError):
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise CaptureError(f"{_place_of(error, module)}: kernel {name}: {words}", code="declaration") from error


def _place_of(error: Exception, module: str) -> str:
    """``file:line`` of the innermost frame of an error in a module; the module where none is."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [(one.f_globals.get("__name__"), one.f_code, line) for one, line in traceback.walk_tb(error.__traceback__)]
    return next((f"{code.co_filename}:{line}" for name, code, line in reversed(frames) if name == module), module)
