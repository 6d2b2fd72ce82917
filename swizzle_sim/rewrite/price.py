"""What a swizzle costs a kernel, by compiling it as launched and as rewritten, and scores that count it.

Each spelling of `swizzle_sim.rewrite.guard` is tried until one costs the kernel as launched nothing; where none does,
one that keeps the software pipeline, then has the most workgroups a CU, fewest spills and registers, shortest code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.occupancy import BURST, COMPILE_TIMEOUT_S, compile_launch
from swizzle_sim.capture.process import run_worker, triton_version
from swizzle_sim.capture.workload import Workload
from swizzle_sim.language.lattice import lattice_like
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.guard import ALL, Emission, emissions, named
from swizzle_sim.rewrite.kernel import rewrite_workload
from swizzle_sim.rewrite.rewritten import Rewritten
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import known_at
from swizzle_sim.workload.price import CompiledKernel, RemapPrice
from xcd_model import Gpu, Resources
from xcd_model.errors import CompileError, NotBijective, RewriteError

_WORKER = "swizzle_sim.rewrite.price_worker"
_FORMAT = 6  # of the entries on disk
_CODE = ("capture", "rewrite", "language", "triton_source")  # packages that decide what is emitted and how it is read


def price(kernel: Kernel | Workload, swizzle: Swizzle, gpu: Gpu, *, spellings: Sequence[Emission] = ALL) -> RemapPrice:
    """Price of a swizzle in its cheapest emission, from the disk cache where it was asked for before."""
    if kernel.launch is None:
        raise CompileError(f"{kernel.name} has no Triton source here")
    before = compile_launch(kernel.launch, gpu.arch).on(gpu)
    request = _request(kernel, swizzle, gpu, spellings, before)
    cache, key = DiskCache("prices"), _key(request, kernel.launch.path)
    known = cache.get(key)
    if isinstance(known, dict) and all(digest(path) == was for path, was in known["files"].items()):
        return RemapPrice.from_dict(known["price"])
    reply = run_worker(_WORKER, request, interpret=False, timeout_s=COMPILE_TIMEOUT_S)
    if "error" in reply:
        raise (CompileError if reply["kind"] == "compile" else RewriteError)(reply["error"])
    cache.put(key, reply)
    return RemapPrice.from_dict(reply["price"])


def cheapest(work: Workload, swizzle: Swizzle, gpu: Gpu, *, elsewhere: str = "any") -> tuple[Rewritten, RemapPrice]:
    """Kernel with a swizzle in its cheapest emission, and the price; ``elsewhere`` is that of `emissions`."""
    found = price(work, swizzle, gpu, spellings=emissions(elsewhere))
    return rewrite_workload(work, swizzle, num_xcds=gpu.xcds, emission=named(found.emission)), found


def as_compiled(scorer: Scorer, swizzle: Swizzle) -> tuple[Scorer, RemapPrice | None]:
    """Scorer with the occupancy and the loads in flight of a candidate's own compile, and the price."""
    if is_launch_order(scorer, swizzle):
        return scorer, None
    found = price(scorer.kernel, swizzle, scorer.gpu)
    own = resources_after(scorer.kernel.resources, found, scorer.gpu, scorer.kernel.grid.levels)
    return scorer if own == scorer.kernel.resources else scorer.with_resources(own), found


def is_launch_order(scorer: Scorer, swizzle: Swizzle) -> bool:
    """Whether a candidate leaves every workgroup where it is, at this launch and on small grids of its kind."""
    if not _is_identity(scorer.permutation(swizzle)) or swizzle.form.reads_sizes:
        return False
    try:
        return all(
            _is_identity(swizzle.permutation(grid, scorer.gpu.xcds)) for grid in lattice_like(scorer.kernel.grid)
        )
    except NotBijective:
        return False


def _is_identity(order: np.ndarray) -> bool:
    return np.array_equal(order, np.arange(order.size))


def score_as_compiled(scorer: Scorer, swizzle: Swizzle, known: Score | None = None) -> Score:
    """Score of a candidate under `as_compiled`, relative to the scorer's launch order."""
    own, found = as_compiled(scorer, swizzle)
    if own is scorer:
        return replace(known or scorer.score(swizzle), price=found)
    order = scorer.permutation(swizzle)
    return replace(own.score_order(order, baseline_us=scorer.baseline.time_us), price=found)


def resources_after(resources: Resources, price: RemapPrice, gpu: Gpu, levels: int = 1) -> Resources:
    """Resources of the rewritten kernel: those of the kernel as launched, but for what the compiler makes otherwise.

    Registers alone, with the same workgroups a CU, change nothing; nor do instructions before the loop where the GPU's
    description has no time for them. A pipelined step's code keeps its share of a full CU, which moves with which of
    several equal loops the compiler puts first; what its next loads wait for is the new code's.
    """
    old, new = price.before, price.launched
    more = new.executed_before_loop(levels) - old.executed_before_loop(levels)
    if gpu.limits.scalar_cycles and more > 0:
        resources = replace(resources, remap_instructions=more)
    if resources.loads_per_step:
        loop = ("step_instructions", "after_products", "ahead_cycles", "past_l1")
        resources = replace(resources, **{key: getattr(new, key) for key in loop})
    if old.workgroups_per_cu != new.workgroups_per_cu:
        resources = replace(resources, step_cycles=new.step_cycles)
    if resources.burst_loads:
        resources = replace(resources, **{key: getattr(new, key) for key in BURST})

    def decides(one: CompiledKernel) -> tuple[int, int, int]:
        return one.workgroups_per_cu, one.lds_bytes, one.instructions_in_flight

    if decides(old) == decides(new):
        return resources
    return replace(
        resources,
        vgprs=resources.vgprs if old.registers == new.registers else new.registers,
        lds_bytes=resources.lds_bytes if old.lds_bytes == new.lds_bytes else new.lds_bytes,
        instructions_in_flight=max(
            1, resources.instructions_in_flight + new.instructions_in_flight - old.instructions_in_flight
        ),
    )


def _request(
    kernel: Kernel | Workload, swizzle: Swizzle, gpu: Gpu, spellings: Sequence[Emission], before: CompiledKernel
) -> dict[str, Any]:
    assert kernel.launch is not None
    others = kernel.others if isinstance(kernel, Workload) else kernel.lattice
    return {
        "launch": {**kernel.launch.as_dict(), "path": str(Path(kernel.launch.path).resolve())},
        "name": kernel.name,
        "programs": kernel.programs,
        "grid": kernel.grid.as_dict(),
        "sizes": dict(kernel.problem),
        "lattice": [[grid.as_dict(), dict(sizes) if sizes else None, known_at(sizes or {})] for grid, sizes in others],
        "swizzle": swizzle.source,
        "spellings": [one.name for one in spellings],
        "gpu": gpu.as_dict(),
        "before": asdict(before),
    }


def _key(request: Mapping[str, Any], path: Path) -> str:
    """Digest of all that a price depends on, as far as it is known beforehand."""
    launch = {name: value for name, value in request["launch"].items() if name != "path"}
    asked = {**request, "launch": launch, "gpu": [request["gpu"][part] for part in ("name", "arch", "xcds", "limits")]}
    home = Path(__file__).parents[1]
    return key_of(_FORMAT, triton_version(), digest(path), asked, code=[home / package for package in _CODE])
