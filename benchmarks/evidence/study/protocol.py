"""`run_benchmark`: a protocol for comparing models that anyone can repeat, at sizes that nobody has seen before.

    tasks     each kernel on each GPU, at sizes that a seed draws and that divide into no block
    runs      `SEEDS` of each task, one order an answer, against a search and the families at equal evaluations
    regret    gain of the best order of all three less that of the model's best, in points or per cent of time

The table has regret of the first answer and after so many tokens, the share of refused texts, and what the model is
above the search, each with the interval that nine of ten resamplings of the tasks stay in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_agent.baselines import FAMILIES, SEARCH
from swizzle_agent.loop import is_models
from swizzle_agent.settings import Inputs, Settings
from swizzle_agent.transcript import STEP, Transcript
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Run
from swizzle_sim.search.ranking import HIT_RATE, Ranking
from swizzle_sim.search.strategies.families import is_settled
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import ModelError, SwizzleSimError

from .runs import StudyRun, collected, slug, written

GPUS = ("mi300x", "mi355x", "h200")
SEEDS = 3  # runs of each task
AFTER_TOKENS = (3_000, 10_000, 30_000)  # of prompts and replies together
DRAWS = 1000  # resamplings of the tasks
INTERVAL = (5, 95)  # percentiles of them
TRIES = 20  # sizes drawn for a kernel before its default is taken
LEAST_SIZE = 512  # below which a size counts heads or blocks, and stays
KEPT_SIZES = ("BLOCK", "SEED", "PROGRAMS", "GROUP")  # beginnings of names that are no sizes of data
FIGURES = ("first", *(f"after {tokens} tokens" for tokens in AFTER_TOKENS), "at the end", "over the search")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """The protocol for one model: kernels as loaders at sizes on a GPU, the seed of the sizes, and where runs lie."""

    kernels: Mapping[str, Callable[[Mapping[str, int], Gpu], Kernel]]
    gpus: tuple[Gpu, ...]
    seed: int
    settings: Settings
    inputs: Inputs
    folder: Path
    seeds: int = SEEDS
    replay: str = "timed"


def run_benchmark(task: Benchmark, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Run what is missing; the protocol, a row for each run, and ``table``, mean and interval of each of `FIGURES`.

    The document is also written to ``study-benchmark.json``.
    """
    runs = [
        StudyRun(kernel, gpu, str(seed), folder, replace(task.settings, seed=seed), task.inputs, task.replay)
        for name, kernel, gpu in _tasks(task, say)
        for seed in range(task.seeds)
        for folder in [task.folder / f"{slug(name)}-{gpu.name}-sizes{task.seed}-run{seed}"]
    ]
    rows = collected(runs, _row, say)
    about: dict[str, Any] = {"which": "benchmark", "kind": "simulated", "models": list(task.settings.models)}
    about |= {"seed": task.seed, "gpus": [gpu.name for gpu in task.gpus], "seeds": task.seeds}
    return written({**about, "rows": rows, "table": table(rows)}, task.folder)


def drawn_sizes(usual: Mapping[str, int], draw: random.Random) -> dict[str, int]:
    """Sizes between half and all of the usual ones, odd multiples of 8: no block of 16 or more divides them."""
    large = [name for name, size in usual.items() if size >= LEAST_SIZE and not name.startswith(KEPT_SIZES)]
    return {name: 8 * (2 * int(draw.uniform(0.5, 1) * usual[name] / 16) + 1) for name in large}


def _tasks(task: Benchmark, say: Callable[[str], None]) -> Iterator[tuple[str, Kernel, Gpu]]:
    for name, load in task.kernels.items():
        for gpu in task.gpus:
            draw = random.Random(f"{task.seed} {name}")  # the same sizes on every GPU
            try:
                kernel = _drawn(load, gpu, draw)
                judge = Judge(Scorer(kernel, gpu, replay=task.replay))
                if judge.ranking.main == HIT_RATE and is_settled(judge.scorer):
                    say(f"{name} on {gpu.name}: left out: its launch order leaves nothing to gain")
                    continue
                yield name, kernel, gpu
            except SwizzleSimError as error:
                say(f"{name} on {gpu.name}: left out: {error}")


def _drawn(load: Callable[[Mapping[str, int], Gpu], Kernel], gpu: Gpu, draw: random.Random) -> Kernel:
    """Kernel at sizes that it takes; at its own where it takes none that were drawn."""
    usual = load({}, gpu)
    for _ in range(TRIES):
        try:
            return load(drawn_sizes(usual.problem, draw), gpu)
        except SwizzleSimError:  # such as a length that has to divide
            continue
    return usual


def _row(one: StudyRun, run: Run) -> dict[str, Any]:
    """Regrets of one run, in points of hit rate, or per cent of predicted time where times rank."""
    with Transcript(run.folder) as transcript:
        steps = transcript.notes(STEP)
    gains = {a.number: 100 * _gain(run.ranking, a, run.baseline) for a in run.attempts}
    of = {who: [g for a in run.attempts if a.proposer == who for g in [gains[a.number]]] for who in (FAMILIES, SEARCH)}
    mine = [a for a in run.attempts if is_models(a)]
    best = max(gains.values())
    tokens, so_far, curve = 0, 0.0, []
    for step in steps:
        tokens += step["tokens"]
        so_far = max([so_far, *(gains[o["attempt"]] for o in step["outcomes"] if o["attempt"] is not None)])
        curve.append((tokens, so_far))
    after = {n: best - max((gain for spent, gain in curve if spent <= n), default=0.0) for n in AFTER_TOKENS}
    first = best - max(0.0, gains[mine[0].number] if mine else 0.0)
    figures = (first, *after.values(), best - so_far, so_far - max([0.0, *of[SEARCH]]))
    return {
        "kernel": one.kernel.name,
        "problem": dict(one.kernel.problem),
        "gpu": one.gpu.name,
        "seed": one.settings.seed,
        "objective": run.ranking.main.name,
        "tokens": tokens,
        "answers": len(mine),
        "refused": sum(not a.verdict.get("bijective") for a in mine),
        "figures": dict(zip(FIGURES, figures, strict=True)),
        "run": run.folder.name,
    }


def _gain(ranking: Ranking, one: Attempt, baseline: Attempt) -> float:
    """Gain over the launch order in the objective; none without a score, or where that is worse."""
    if one.score is None or baseline.score is None:
        return 0.0
    return max(0.0, ranking.main.gain(one.score, baseline.score))


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and interval of each figure over tasks, whose runs are one mean, and the share of refused texts."""
    tasks: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        tasks.setdefault((row["kernel"], row["gpu"]), []).append([row["figures"][name] for name in FIGURES])
    means = np.array([np.mean(runs, axis=0) for runs in tasks.values()]).reshape(-1, len(FIGURES))
    if not len(means):
        raise ModelError("no run of the benchmark was made", code="study")
    chosen = np.random.default_rng(0).integers(len(means), size=(DRAWS, len(means)))
    low, high = np.percentile(means[chosen].mean(axis=1), INTERVAL, axis=0)
    columns = zip(FIGURES, means.mean(axis=0), low, high, strict=True)
    answers = sum(row["answers"] for row in rows)
    return {
        "tasks": len(means),
        "runs": len(rows),
        "tokens": sum(row["tokens"] for row in rows),
        "refused": sum(row["refused"] for row in rows) / max(1, answers),
        **{name: {"mean": float(mean), "low": float(lo), "high": float(hi)} for name, mean, lo, hi in columns},
    }
