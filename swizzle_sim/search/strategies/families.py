"""`optimize`: the published families, all of them or as many as there is time for, most promising first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.sharing import shared_lines
from swizzle_sim.search.candidates import Candidate, distinct_shortlist, family_candidates, family_specs, shortlist
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.kept import kept_candidates, read_kept
from swizzle_sim.search.loop import Run, RunConfig, about_run, counting, one_after_another, open_run, run
from swizzle_sim.search.ranking import HIT_RATE, Objective, ranking_of
from swizzle_sim.search.templates import read_template
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu

LOOKUPS = 3.6e9  # of a run of families without a limit of time, as `Scorer.lookups`: half a minute on two cores
FEWEST = 12  # candidates that are tried, however long that takes
NOTHING_TO_GAIN = 1e-3  # of the requests: the launch order is at the bound but for that
SHARE_NOTHING = 2e-3  # of the lines: what is left is a line in which many rows have a number each, and is tried
CORNER = 1 / 16  # of an L2: lines that all workgroups share and that fit there stay in any order
SETTLED = 2  # candidates that are tried then: the launch order, and the first of the shortlist, for its time


def optimize(
    kernel: Kernel,
    gpu: Gpu,
    folder: str | Path,
    *,
    candidates: Sequence[Candidate] | None = None,
    scorer: Scorer | None = None,
    **options: Any,
) -> Run:
    """Try candidates on a kernel and rank them by time, or by L2 hit rate where that decides for its class on the GPU.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    candidates : sequence of Candidate, optional
        By default the published families over their parameters: all where ``max_minutes`` says how long, else as many
        as `LOOKUPS` allows, the first of `swizzle_sim.search.candidates.shortlist`.
    scorer : Scorer, optional
        Of the kernel on the GPU, where the caller has use for it afterwards: the trace, the bound and the launch
        order's replay are in it. Its replay, seed and jitter are those of the run.
    **options
        Fields of `RunConfig`.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or the run in it has other settings.

    Source: the loop and its objective are those of SwizzlePerf (arXiv 2508.20258), with a simulator for the GPU.
    """
    if scorer is not None:
        options |= {"replay": scorer.replay, "seed": scorer.seed, "jitter_ns": scorer.jitter_ns}
    how = RunConfig(**options)
    scorer = scorer or Scorer(kernel, gpu, **how.of_scorer)
    objectives = how.objectives_on(scorer)
    about = about_run(scorer, how.command, objectives)
    distinct: Iterator[Candidate] = (one for one, _ in distinct_shortlist(scorer))
    if candidates is None and not how.resume:
        most, distinct = _beside(lambda: most_candidates(scorer, objectives, how.max_minutes), distinct)
        about |= {"most_candidates": most} if most else {}
    if candidates is None and not how.resume and (kept := read_kept()):
        about["kept"] = [template.text for template in kept]
    with open_run(Path(folder), about, how.resume) as history:
        most, own = history.about.get("most_candidates"), map(read_template, history.about.get("kept", ()))
        tried = list(candidates or ())
        if candidates is None:
            first = () if most == SETTLED else kept_candidates(tuple(own), kernel, gpu)
            tried = [*first, *_families(scorer, most, distinct)]
        with history.running():
            on_attempt = counting(how.on_attempt, 1 + len(tried), lambda attempt: True)
            judge, each = Judge(scorer, objectives), one_after_another(tried)
            run(each, judge, history, how.budget, on_attempt=on_attempt)
        return Run(history.folder, tuple(history), ranking_of(history.about))


def most_candidates(scorer: Scorer, objectives: Sequence[Objective], max_minutes: float | None = None) -> int | None:
    """Candidates of a run of families, the launch order among them; None for all, in the order of their families."""
    if tuple(objectives) == (HIT_RATE,) and is_settled(scorer):
        return SETTLED
    every = 1 + sum(1 for _ in family_specs(scorer.kernel, scorer.gpu))
    most = every if max_minutes is not None else max(FEWEST, int(LOOKUPS / scorer.lookups))
    return None if max_minutes is None and most >= every else most


def is_settled(scorer: Scorer) -> bool:
    """Whether no order can raise the hit rate, and the work is even.

    The launch order is at the bound, or workgroups share next to no lines, and these fit a corner of each L2.
    """
    if scorer.baseline.launch > 1 or scorer.work.uneven:
        return False
    if scorer.baseline.distance_to_bound < NOTHING_TO_GAIN:
        return True
    shared, lines = shared_lines(scorer.trace, SHARE_NOTHING * sum(one.n_lines for one in scorer.trace.tensors))
    return shared < SHARE_NOTHING * lines and shared * scorer.gpu.l2.line_bytes < CORNER * scorer.gpu.l2.size_bytes


def _beside(task: Callable[[], int | None], found: Iterator[Candidate]) -> tuple[int | None, Iterator[Candidate]]:
    """Result of a task, and an iterator of which a thread begins meanwhile to find what it gives."""
    first, over = list[Candidate](), Event()

    def begin() -> None:
        while not over.is_set() and (one := next(found, None)):
            first.append(one)

    def both() -> Iterator[Candidate]:
        yield from first
        begun.result()  # raises what finding did
        yield from found

    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(begin)
        try:
            return task(), both()
        finally:
            over.set()


def _families(scorer: Scorer, most: int | None, distinct: Iterator[Candidate]) -> list[Candidate]:
    if most is None:
        return family_candidates(scorer.kernel, scorer.gpu)
    listed = list(shortlist(scorer.kernel, scorer.gpu))
    new = [] if len(listed) < most else list(islice(distinct, most - 1))
    return new if len(new) == most - 1 else listed  # those that repeat another cost no replay
