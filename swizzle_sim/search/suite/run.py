"""`score_suite`: launch order, best family and bound of many kernels, stored one by one so that a run can go on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.release import version
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import distinct_shortlist, family_specs
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, InMemory, one_after_another, run
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.suite.result import Result, Suite
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, workgroups_per_cu
from xcd_model.cache.replacement import POLICY
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

    ``effort`` multiplies `LOOKUPS`, so what is tried does not depend on the machine; with ``resume`` kernels that an
    earlier call stored in the folder are not repeated. ``on_kernel(name, done, total, best_l2_hit_rate)`` is called as
    candidates are scored.
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
        "replacement": POLICY,
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
    """Score one kernel, until a candidate reaches the bound where that decides; see `score_suite`."""
    began = time.perf_counter()
    judge = Judge(Scorer(kernel, gpu, replay=replay))
    scorer, ranking, attempts = judge.scorer, judge.ranking, InMemory()
    if on_kernel:
        on_kernel(kernel.name, 0, 0, 0.0)
    most = most_candidates(scorer, effort)

    def told(attempt: Attempt) -> None:
        best = ranking.order(attempts)[0].score
        if on_kernel and attempt.number and best:
            on_kernel(kernel.name, attempt.number, most, best.l2_hit_rate)

    strategy = one_after_another(one for one, _ in islice(distinct_shortlist(scorer), most))
    run(
        strategy, judge, attempts,
        Budget(threads=threads or os.cpu_count() or 1, enough=lambda: _cannot_be_beaten(ranking, attempts[-1])),
        on_attempt=told,
    )  # fmt: skip
    best = ranking.order(attempts)[0]
    return Result(
        kernel=kernel.name,
        problem=dict(kernel.problem),
        grid=str(kernel.grid),
        launches=kernel.launches,
        baseline=scorer.baseline,
        best_name=best.name,
        best_source=best.source,
        best_domain=best.verdict["domain"],
        best=best.score or scorer.baseline,
        tried=len(attempts),
        known=sum(1 for _ in family_specs(kernel, gpu)),
        seconds=round(time.perf_counter() - began, 1),
    )


def most_candidates(scorer: Scorer, effort: float) -> int:
    """How many candidates of a kernel the effort pays for, at least `FEWEST`."""
    return max(FEWEST, int(effort * LOOKUPS / scorer.lookups))


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
