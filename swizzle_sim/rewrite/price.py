"""What a swizzle costs a kernel, by compiling it as launched and as rewritten, and scores that count it.

Each spelling of `swizzle_sim.rewrite.guard` is tried until one costs the kernel as launched nothing; where none does,
one that keeps the software pipeline, then has the most workgroups a CU, fewest spills and registers, shortest code.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.occupancy import BURST, Compiled, compile_each, compile_launch
from swizzle_sim.capture.process import triton_version
from swizzle_sim.capture.workload import Workload, of_kernel
from swizzle_sim.language.lattice import lattice_like
from swizzle_sim.language.parse import one_parser
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.check import relaunched
from swizzle_sim.rewrite.guard import ALL, Emission, emissions, named
from swizzle_sim.rewrite.kernel import Rewritten, rewrite_workload
from swizzle_sim.search.history import BEFORE_PRICE, Attempt, History
from swizzle_sim.search.sweep import evaluate
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch, known_at
from swizzle_sim.workload.price import CompiledKernel, RemapPrice
from xcd_model import Gpu, Resources, workgroups_per_cu
from xcd_model.errors import CompileError, NotBijective, ReplayError, RewriteError, SwizzleSimError

_FORMAT = 7  # of the entries on disk
_CODE = ("capture", "rewrite", "language", "triton_source")  # packages that decide what is emitted and how it is read
FINALISTS = 5
Rank = Callable[[Sequence[Attempt]], Sequence[Attempt]]
OnPriced = Callable[[int, int], None]
TOGETHER = ((0, 1), (1, 3), (3, None))  # spellings that are compiled in one process: most often the first is free
MOST_REGISTERS = 248  # that ``maxnreg`` is tried with, downwards by the granule
Tried = tuple[RemapPrice, Rewritten, Compiled]


def price(kernel: Kernel | Workload, swizzle: Swizzle, gpu: Gpu, *, spellings: Sequence[Emission] = ALL) -> RemapPrice:
    """Price of a swizzle in its cheapest emission, from the disk cache where it was asked for before."""
    if kernel.launch is None:
        raise CompileError(f"{kernel.name} has no Triton source here")
    work = kernel if isinstance(kernel, Workload) else of_kernel(kernel)
    before = compile_launch(work.launch, gpu.arch).on(gpu)
    cache, key = DiskCache("prices"), _key(work, swizzle, gpu, spellings, before)
    known = cache.get(key)
    if isinstance(known, dict) and all(digest(path) == was for path, was in known["files"].items()):
        return RemapPrice.from_dict(known["price"])
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as name:
        folder = Path(name).resolve()
        tried = _tried(work, swizzle, gpu, spellings, before, folder)
        levels = work.grid.levels if gpu.limits.scalar_cycles else 0
        best = min(tried, key=lambda one: _cost(one, levels))
        found = _with_offer(*best, gpu, relaunched(best[1], work.launch, folder / "offered.py"))
    files = {name: sha for *_, one in tried for name, sha in one.files.items() if Path(name).parent != folder}
    cache.put(key, {"price": found.as_dict(), "files": files})
    return found


def _tried(
    work: Workload, swizzle: Swizzle, gpu: Gpu, spellings: Sequence[Emission], before: CompiledKernel, folder: Path
) -> list[Tried]:
    """Spellings up to the first that costs nothing, each rewritten and compiled."""
    tried: list[Tried] = []
    why: SwizzleSimError | None = None
    for part in (spellings[first:end] for first, end in TOGETHER):
        written: list[tuple[Emission, Rewritten, Launch]] = []
        for emission in part:
            try:
                with one_parser():  # finalists are priced in threads
                    one = rewrite_workload(work, swizzle, num_xcds=gpu.xcds, emission=emission)
            except SwizzleSimError as error:
                why = why or error
                continue
            path = folder / f"{len(tried) + len(written)}.py"
            path.write_bytes(one.text)
            written.append((emission, one, relaunched(one, work.launch, path)))
        every = compile_each([launch for *_, launch in written], gpu.arch)
        for (emission, one, _), compiled in zip(written, every, strict=True):
            try:
                if isinstance(compiled, CompileError):
                    raise compiled
                after = compiled.on(gpu)
            except SwizzleSimError as error:
                why = why or error
                continue
            tried.append((RemapPrice(before=before, after=after, emission=emission.name), one, compiled))
            if tried[-1][0].is_free:
                return tried
    if not tried:
        assert why is not None
        raise why if isinstance(why, CompileError) else RewriteError(str(why)) from why
    return tried


def _cost(one: Tried, levels: int) -> tuple[int, ...]:
    """What a spelling costs: the pipeline, workgroups, spills, instructions where they take time, registers, text."""
    found, after, text = one[0], one[0].after, one[1].text
    instructions = after.executed_before_loop(levels) if levels else 0
    grown = (-after.workgroups_per_cu, after.spills, instructions, after.registers, after.code_bytes, len(text))
    return (found.loses_pipeline, *grown)


def _with_offer(price: RemapPrice, rewritten: Rewritten, compiled: Compiled, gpu: Gpu, launch: Launch) -> RemapPrice:
    """Price with the compile option that gives lost workgroups back, where the compile shows that it does, unspilled.

    Registers that spill in a loop cost more than a workgroup: of a published GEMM in fp8 on an H200, four words spilled
    with five workgroups an SM took 15 % longer than none with four.
    """
    wanted = price.before.workgroups_per_cu
    options = _option(wanted, compiled, gpu) if price.loses_occupancy else {}
    if not options:
        return price
    assert launch.text_from is not None
    launch.text_from.write_bytes(rewritten.text)
    (bounded,) = compile_each([replace(launch, options={**launch.options, **options})], gpu.arch)
    try:
        found = bounded.on(gpu) if isinstance(bounded, Compiled) else None
    except ReplayError:
        return price
    if found is None or found.workgroups_per_cu < wanted or found.spills > price.after.spills:
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


def cheapest(work: Workload, swizzle: Swizzle, gpu: Gpu, *, elsewhere: str = "any") -> tuple[Rewritten, RemapPrice]:
    """Kernel with a swizzle in its cheapest emission, and the price; ``elsewhere`` is that of `emissions`."""
    found = price(work, swizzle, gpu, spellings=emissions(elsewhere))
    return rewrite_workload(work, swizzle, num_xcds=gpu.xcds, emission=named(found.emission)), found


def as_compiled(
    scorer: Scorer, swizzle: Swizzle, spellings: Sequence[Emission] = ALL
) -> tuple[Scorer, RemapPrice | None]:
    """Scorer with the occupancy and the loads in flight of a candidate's own compile, and the price."""
    if is_launch_order(scorer, swizzle):
        return scorer, None
    found = price(scorer.kernel, swizzle, scorer.gpu, spellings=spellings)
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


def score_as_compiled(
    scorer: Scorer, swizzle: Swizzle, known: Score | None = None, spellings: Sequence[Emission] = ALL
) -> Score:
    """Score of a candidate under `as_compiled`, relative to the scorer's launch order."""
    own, found = as_compiled(scorer, swizzle, spellings)
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


def _key(work: Workload, swizzle: Swizzle, gpu: Gpu, spellings: Sequence[Emission], before: CompiledKernel) -> str:
    """Digest of all that a price depends on, as far as it is known beforehand."""
    launch = {name: value for name, value in work.launch.as_dict().items() if name != "path"}
    others = [[grid.as_dict(), known_at(sizes or {})] for grid, sizes in work.others]
    about = [work.name, work.programs, work.grid.as_dict(), dict(work.problem), launch, others]
    device = gpu.as_dict()
    asked = [swizzle.source, [one.name for one in spellings], [device[p] for p in ("name", "arch", "xcds", "limits")]]
    home = Path(__file__).parents[1]
    code = [home / package for package in _CODE]
    return key_of(_FORMAT, triton_version(), digest(work.launch.path), about, asked, asdict(before), code=code)


# The best attempts of a run, compiled as they would be rewritten, and scored so.


def price_finalists(
    history: History, scorer: Scorer, rank: Rank, *, most: int = FINALISTS, on_priced: OnPriced | None = None
) -> tuple[list[Attempt], str]:
    """Score the best attempts of a run with their own occupancy, until the first of the ranking all have a price.

    The ranking begins without prices, those of an earlier command are looked up, and an attempt that is no finalist any
    more loses its own: so a run that went on ends as one that was never stopped.
    """
    stored = {one.number: one for one in history}
    known = {number: one for number, one in stored.items() if BEFORE_PRICE in one.verdict}
    attempts = {number: one.judged for number, one in stored.items()}
    why_not = ""
    tried: set[int] = set()
    while not why_not:
        first = [one for one in rank(list(attempts.values()))[:most] if one.number]
        waiting = [one for one in first if one.number not in tried and one.score is not None and not one.score.price]
        waiting = waiting[: 2 * most - len(tried)]
        if not waiting:
            break
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # compilers are processes of their own
            found = pool.map(lambda one: known.get(one.number) or _priced(one, scorer), waiting)
            try:
                for one, new in zip(waiting, found, strict=True):
                    tried.add(one.number)
                    attempts[one.number] = new
                    if new is not stored[one.number]:
                        history.replace(new)
                    if on_priced:
                        on_priced(len(tried), most)
            except CompileError as error:  # the others would fail as well
                why_not = str(error).splitlines()[0]
    for number in known.keys() - tried:
        history.replace(attempts[number])
    return list(attempts.values()), why_not


def _priced(one: Attempt, scorer: Scorer) -> Attempt:
    """Attempt with its score as compiled, or with the reason for which it has none."""
    try:
        score = score_as_compiled(scorer, one.swizzle, one.score)
    except CompileError:
        raise
    except SwizzleSimError as error:
        return one.priced(one.score, f"no price: {str(error).splitlines()[0]}")
    lost = score.price is not None and score.price.is_costly
    return one.priced(score, str(score.price) if lost else one.critique)


def evaluate_as_compiled(point: Mapping[str, Any]) -> dict[str, Any]:
    """`swizzle_sim.search.sweep.evaluate` of a point, each swizzle with its own compile where there is one."""
    return evaluate(point, scored_as_compiled)


def scored_as_compiled(scorer: Scorer, swizzle: Swizzle, spellings: Sequence[Emission] = ALL) -> Score:
    """Score of a swizzle with its own compile where there is one."""
    try:
        return score_as_compiled(scorer, swizzle, spellings=spellings)
    except SwizzleSimError:  # no source or compiler: the kernel's own resources; no bijection: refused
        return scorer.score(swizzle)
