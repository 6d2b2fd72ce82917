"""`score_suite`: launch order, best family and bound of many kernels, stored one by one so that a run can go on."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.release import version
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate, distinct_shortlist, family_specs
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking, default_objectives
from swizzle_sim.search.suite.result import Result, Suite
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, workgroups_per_cu
from xcd_model.errors import ReplayError, RunError

# In the order of the paper, arXiv 2508.20258, section 4; its GEMM is the Stream-K form.
PAPER = (
    *("gemm_streamk", "fused_elementwise", "layer_norm", "softmax", "spmv", "transpose"),
    *("black_scholes", "fdtd_2d", "smith_waterman", "stencil_2d"),
)
ABOUT = "suite.json"  # of the run folder: the command's options
LOOKUPS = 6e8  # spent on the candidates of one kernel, as `Scorer.lookups`: four seconds on two cores
FEWEST = 6  # candidates, however much they cost

OnKernel = Callable[[str, int, int, float], None]


def score_suite(
    kernels: Sequence[Kernel],
    gpu: Gpu,
    folder: str | Path,
    *,
    replay: str = "timed",
    effort: float = 1.0,
    threads: int | None = None,
    resume: bool = False,
    on_kernel: OnKernel | None = None,
) -> Suite:
    """Score kernels one after the other: launch order, and families as far as the effort goes.

    Parameters
    ----------
    kernels : sequence of Kernel
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left: its kernels are not repeated.
    replay : {"timed", "lockstep"}
    effort : float
        Multiple of `LOOKUPS` a kernel; what is tried does not depend on the machine.
    threads : int, optional
        Replays at once, by default one a core; the result does not depend on it.
    resume : bool
    on_kernel : callable, optional
        Called as ``on_kernel(name, done, total, best_l2_hit_rate)`` as candidates of a kernel are scored.

    Returns
    -------
    Suite

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or it holds a run of another command.
    ReplayError
        If a kernel does not fit the GPU; before anything is replayed.
    """
    for kernel in kernels:
        try:
            workgroups_per_cu(kernel.resources, gpu)
        except ReplayError as error:
            raise ReplayError(f"{kernel.name}: {error}; leave it out") from None
    where = Path(folder)
    about = {
        "gpu": gpu.name,
        "gpu_description": gpu.as_dict(),
        "replay": replay,
        "effort": effort,
        "version": version(),
    }
    _open_folder(where, json.loads(json.dumps(about)), resume)
    results = []
    for kernel in kernels:
        found = _stored(where, kernel)
        if found is None:
            found = score_kernel(kernel, gpu, replay=replay, effort=effort, threads=threads, on_kernel=on_kernel)
            _store(where / f"{kernel.name}.json", found.as_dict())
        results.append(found)
    return Suite(where, gpu.name, replay, tuple(results))


def score_kernel(
    kernel: Kernel,
    gpu: Gpu,
    *,
    replay: str = "timed",
    effort: float = 1.0,
    threads: int | None = None,
    on_kernel: OnKernel | None = None,
) -> Result:
    """Score one kernel; see `score_suite`."""
    began = time.perf_counter()
    scorer = Scorer(kernel, gpu, replay=replay)
    ranking = Ranking(default_objectives(gpu.name, replay), gpu=gpu.name)
    if on_kernel:
        on_kernel(kernel.name, 0, 0, 0.0)
    attempts = [_attempt(0, Candidate("identity", family("identity"), "baseline"), scorer.baseline)]
    if not _cannot_be_beaten(ranking, attempts[0]):
        tried = _Tried(scorer, ranking, attempts, most_candidates(scorer, effort), on_kernel)
        _try(tried, threads or os.cpu_count() or 1)
    best = ranking.order(attempts)[0]
    verdict = scorer.verify(Swizzle.parse(best.source, name=best.name))
    return Result(
        kernel=kernel.name,
        problem=dict(kernel.problem),
        grid=str(kernel.grid),
        launches=kernel.launches,
        baseline=scorer.baseline,
        best_name=best.name,
        best_source=best.source,
        best_domain=verdict.domain,
        best=best.score or scorer.baseline,
        tried=len(attempts),
        known=sum(1 for _ in family_specs(kernel, gpu)),
        seconds=round(time.perf_counter() - began, 1),
    )


def most_candidates(scorer: Scorer, effort: float) -> int:
    """How many candidates of a kernel the effort pays for, at least `FEWEST`."""
    return max(FEWEST, int(effort * LOOKUPS / scorer.lookups))


@dataclass(frozen=True)
class _Tried:
    """What was tried of one kernel, and up to how much."""

    scorer: Scorer
    ranking: Ranking
    attempts: list[Attempt]
    most: int
    on_kernel: OnKernel | None


def _try(tried: _Tried, threads: int) -> None:
    """Replay candidates, ``threads`` at a time, and note them in order; stop at the bound."""
    scorer = tried.scorer
    queue: deque[tuple[Candidate, Future[Score]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            wanted = islice(distinct_shortlist(scorer), tried.most)
            for candidate, order in wanted:
                queue.append((candidate, pool.submit(scorer.score_order, order, baseline_us=scorer.baseline.time_us)))
                if len(queue) > 2 * threads and _note(tried, queue):
                    return
            while queue:
                if _note(tried, queue):
                    return
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _note(tried: _Tried, queue: deque) -> bool:
    """Take the next score; True where nothing can be better."""
    candidate, future = queue.popleft()
    attempts = tried.attempts
    attempts.append(_attempt(len(attempts), candidate, future.result()))
    if tried.on_kernel:
        best = tried.ranking.order(attempts)[0].score
        name, rate = tried.scorer.kernel.name, best.l2_hit_rate if best else 0.0
        tried.on_kernel(name, len(attempts) - 1, tried.most, rate)
    return _cannot_be_beaten(tried.ranking, attempts[-1])


def _attempt(number: int, candidate: Candidate, score: Score) -> Attempt:
    return Attempt(
        number=number,
        name=candidate.name,
        source=candidate.source,
        proposer=candidate.proposer,
        verdict={"bijective": True},
        score=score,
    )


def _cannot_be_beaten(ranking: Ranking, attempt: Attempt) -> bool:
    """Whether the bound on the hit rate is reached, where that decides; a time has no bound."""
    score = attempt.score
    return ranking.main.name == "l2_hit_rate" and score is not None and score.l2_hit_rate >= score.bound_l2_hit_rate


def _open_folder(folder: Path, about: dict[str, Any], resume: bool) -> None:
    """Make the run folder, or check that it is a run of the same command."""
    if not resume:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise RunError(f"{folder} exists, and a run is never overwritten: name another, or --resume it") from None
        except OSError as error:
            raise RunError(f"{folder}: cannot make the run folder ({error.strerror})") from error
        _store(folder / ABOUT, about)
        return
    was = _load(folder / ABOUT)
    for key, value in about.items():
        if was.get(key) != value:
            raise RunError(f"{folder}: cannot resume: its {key} is {was.get(key)}, this command's is {value}")


def _stored(folder: Path, kernel: Kernel) -> Result | None:
    """Result of a kernel that the run has finished."""
    path = folder / f"{kernel.name}.json"
    if not path.exists():
        return None
    try:
        found = Result.from_dict(_load(path))
    except (KeyError, TypeError) as error:
        raise RunError(f"{path}: not the result of a kernel ({error}); delete it to score the kernel again") from error
    if dict(found.problem) != dict(kernel.problem):
        raise RunError(
            f"{path}: cannot resume: its sizes are {dict(found.problem)}, this command's are {dict(kernel.problem)}"
        )
    return found


def _load(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}): there is no run to go on with") from error
    except ValueError as error:
        raise RunError(f"{path}: damaged ({error})") from error
    if not isinstance(values, dict):
        raise RunError(f"{path}: damaged (no JSON object)")
    return values


def _store(path: Path, values: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(values, indent=1, allow_nan=False).encode())
