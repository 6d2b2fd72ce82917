"""Does a rewritten kernel compute what the original does? Interpreted at small sizes, compiled for its registers."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.capture.memory import AddressSpace, real_items
from swizzle_sim.capture.occupancy import Compiled, compile_launch
from swizzle_sim.capture.process import run_worker, shared_worker, triton_version
from swizzle_sim.capture.workload import Workload
from swizzle_sim.rewrite.kernel import Rewritten
from swizzle_sim.rewrite.small_sizes import small_workloads, with_cheap_programs
from swizzle_sim.rewrite.source import read_kernel
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import CaptureError, RewriteError

CHECK_TIMEOUT_S = 600.0
SAMPLES = 4  # programs compared on the target grid
SAMPLES_ALONE = 16  # where no size is small enough to run whole
RACES = (
    "outputs equal bit for bit with tiles in the original's order; the original's own outputs depend on the order of "
    "its programs beyond rounding (a race), so on a GPU they need not be equal"
)
Sampled = tuple[Workload, list[int] | None, str]  # sizes, programs or all, kind: of each the first that runs counts
WORKER = "swizzle_sim.rewrite.check_worker"
# imports that are no neighbours of a file
_IMPORTS = re.compile(
    rb"^(?:from __future__ import|import (?:triton|torch)\b|from (?:triton|torch|swizzle_sim)\b).*$", re.M
)


@dataclass(frozen=True)
class Case:
    """One launch at which both kernels ran."""

    grid: str
    sizes: Mapping[str, int]
    programs: int  # programs that ran
    whole: bool  # whether those were all, with outputs compared bit for bit; otherwise what each touches and stores was
    moved: int  # programs that compute another tile than they would without the swizzle
    unwritten: Mapping[str, int]  # items of outputs that neither kernel writes
    races: bool  # whether the original itself leaves something else where its programs run in another order


@dataclass(frozen=True)
class Checked:
    """What the check of a rewritten kernel found; a kernel that computes otherwise is an error instead."""

    cases: tuple[Case, ...]
    before: Compiled  # both kernels, compiled for the GPU
    after: Compiled

    @property
    def words(self) -> str:
        """What was compared."""
        if any(case.races for case in self.cases):
            return RACES
        if whole := sum(case.whole for case in self.cases):
            return f"outputs equal bit for bit at {whole} small sizes"
        programs = sum(case.programs for case in self.cases)
        return f"no size is small enough to run whole: {programs} programs touch and store what their tiles did"


def check_rewritten(rewritten: Rewritten, work: Workload, arch: str, seed: int = 0) -> Checked:
    """Run original and rewritten kernel side by side, then compile both.

    Every output is poisoned in two ways before each run. Outputs must be equal bit for bit, guards around them
    included, and each program must touch exactly what the original's program of its tile touches.
    """
    cases = compare_interpreted(rewritten, work, seed)
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        new = Path(folder, rewritten.path.name)
        new.write_bytes(rewritten.text)
        before = compile_launch(work.launch, arch)
        after = compile_launch(relaunched(rewritten, work.launch, new), arch, use_cache=False)
    return Checked(cases, before, after)


def compare_interpreted(rewritten: Rewritten, work: Workload, seed: int = 0) -> tuple[Case, ...]:
    """The first half of `check_rewritten`, for a kernel that was compiled already."""
    with shared_worker():
        return run_side_by_side(rewritten, _launches(rewritten, work), seed)


def _launches(rewritten: Rewritten, work: Workload) -> list[Sampled]:
    """Small sizes to run whole, alternatives of one kind each, and the target size to sample; that alone if none is."""
    small = small_workloads(work, rewritten.num_xcds)
    if b"static_assert" in rewritten.original:  # a constant may have to be long
        small += small_workloads(work, rewritten.num_xcds, constants_too=False)
    found: list[Sampled] = [(one, None, kind) for kind, one in small]
    if rewritten.at == "program" and all(work.problem != one.problem for _, one in small):
        cheap = with_cheap_programs(work, blocks=False)
        count = SAMPLES if small else SAMPLES_ALONE
        samples = sorted({*np.linspace(0, cheap.grid.num_pids - 1, count).astype(int).tolist()})
        found += [(one, samples, "sampled") for one in (cheap, work)[: 2 if cheap.problem != work.problem else 1]]
    if not found:
        raise RewriteError(
            f"{work.name} has no known size that is small enough to interpret: give smaller sizes, or --no-check",
            path=rewritten.path,
        )
    return found


def run_side_by_side(rewritten: Rewritten, launches: Iterable[Sampled], seed: int = 0) -> tuple[Case, ...]:
    """Interpret original and rewritten kernel and compare them: of each kind the first that the original runs at."""
    works = list(launches)
    source = read_kernel(rewritten.path, rewritten.original, rewritten.function)
    waiting = source.waiting_loop(source.functions[source.inner(rewritten.function)])
    if waiting:
        raise RewriteError(
            "waits in a loop for another program, which cannot be interpreted one program at a time: rewrite it with "
            "--no-check, and run it on hardware",
            path=rewritten.path,
            line=waiting,
        )
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        new = Path(folder, rewritten.path.name)
        new.write_bytes(rewritten.text)
        cases = [_case(rewritten, *one, new, seed) for one in works]
        reply = _interpreted(rewritten, cases)
    if "different" in reply:
        raise RewriteError(f"the rewritten kernel computes otherwise: {reply['different']}", path=rewritten.path)
    if "error" in reply:
        raise RewriteError(f"the kernel does not run in the interpreter: {reply['error']}", path=rewritten.path)
    is_whole = [case["sample"] is None for case in cases]
    if not any(
        "programs" in found and (whole or not any(is_whole))
        for whole, found in zip(is_whole, reply["cases"], strict=True)
    ):
        why = next(found["not_run"] for found in reply["cases"] if "not_run" in found)
        raise RewriteError(f"the original does not run at any small size ({why}): --no-check", path=rewritten.path)
    return tuple(
        Case(
            grid=case["text"],
            sizes=dict(one.problem),
            programs=found["programs"],
            whole=sample is None,
            moved=sum(tile != program for program, tile in enumerate(case["order"])),
            unwritten=found["unwritten"],
            races=found["races"],
        )
        for (one, sample, _), case, found in zip(works, cases, reply["cases"], strict=True)
        if "programs" in found
    )


def _interpreted(rewritten: Rewritten, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Reply of the worker; from the disk cache where the same texts agreed on the same cases before.

    A file that imports its neighbours is interpreted each time: they may have changed.
    """
    asked = [
        {
            **case,
            "inputs": hashlib.sha256(Path(case["inputs"]).read_bytes()).hexdigest(),
            "launches": [{**one, "path": "", "text_from": ""} for one in case["launches"]],
        }
        for case in cases
    ]
    texts = [hashlib.sha256(one).hexdigest() for one in (rewritten.original, rewritten.text)]
    home = Path(__file__).parents[1]
    code = [home / package for package in ("capture", "rewrite")]
    cache, key = DiskCache("checks"), key_of(triton_version(), texts, asked, code=code)
    alone = "sliced_for" not in cases[0]["launches"][0] and b"import " not in _IMPORTS.sub(b"", rewritten.original)
    if alone and isinstance(known := cache.get(key), dict):
        return known
    reply = run_worker(WORKER, {"cases": cases}, interpret=True, timeout_s=CHECK_TIMEOUT_S)
    if alone and "cases" in reply:
        cache.put(key, reply)
    return reply


def relaunched(rewritten: Rewritten, launch: Launch, path: Path) -> Launch:
    """Launch of the rewritten kernel in a file, which imports from around the original."""
    extra = {rewritten.constexpr: rewritten.num_xcds} if rewritten.constexpr else {}
    return replace(launch, text_from=path, constexprs={**launch.constexprs, **extra})


def stored_inputs(launch: Launch, folder: Path, seed: int, *, everything: bool = True) -> str:
    """Path of a new file with the items of every tensor of a launch, or of those alone that it reads."""
    made = {name: np.asarray(value) for name, value in launch.make_inputs(seed).items()}
    items = real_items(AddressSpace.place(launch.storage), made, everything=everything, seed=seed)
    inputs = folder / f"inputs-{len(list(folder.iterdir()))}.npz"
    np.savez(inputs, **{str(tensor): values for tensor, values in items.items()})  # type: ignore[arg-type]
    return str(inputs)


def _case(
    rewritten: Rewritten, work: Workload, sample: list[int] | None, kind: str, new: Path, seed: int
) -> dict[str, Any]:
    """Sizes to run at, with a file of every tensor's items, or where only a sample runs of those that it reads."""
    launch, sizes = work.launch, work.problem
    grid = rewritten.grid_at(launch, work.grid)
    at = ", ".join(f"{name}={value}" for name, value in sizes.items())
    try:
        inputs = stored_inputs(launch, new.parent, seed, everything=sample is None)
    except CaptureError as error:
        raise CaptureError(f"{error}; the check runs at {at}: make_inputs has to hold there", code=error.code) from None
    return {
        "what": f"grid {grid}, {at}",
        "kind": kind,
        "text": str(grid),
        "grid": list(launch.grid),
        "launches": [one.as_dict() for one in (launch, relaunched(rewritten, launch, new))],
        "inputs": inputs,
        "order": rewritten.guarded.swizzle.permutation(grid, rewritten.num_xcds, sizes).tolist(),
        "sample": sample,
        "by_program": rewritten.at == "program",
        "claimed": rewritten.claimed,
    }
