"""What the jobs of the figures work out: families and search of a kernel, scores of given texts, and sweeps of sizes.

Families and search have the same number of evaluations: replays of permutations not seen before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import distinct_shortlist
from swizzle_sim.search.history import FILE, Attempt
from swizzle_sim.search.jobs import FILE as POINTS_FILE
from swizzle_sim.search.jobs import PointStore, run_points
from swizzle_sim.search.loop import OnAttempt
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.search.strategies.halving import SearchPlan, search
from swizzle_sim.search.sweep import evaluate, point_of
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import gpu
from xcd_model.errors import RunError

Say = Callable[[str], None]
REPLAY = "timed"
MOST_LAUNCHES = 2
KEPT = ("l2_hit_rate", "bound_l2_hit_rate", "time_us", "speedup", "limiter", "launch")


def find(about: Mapping[str, Any], folder: Path, say: Say) -> dict[str, Any]:
    """All arms of one kernel; a stopped run in ``folder`` goes on."""
    work, device, most = counted_kernel(about), gpu(about["gpu"]), about["evaluations"]
    scorer = Scorer(work, device, replay=REPLAY)

    def families(where: Path, resume: bool) -> Iterable[Attempt]:
        say("families: which permutations")
        candidates = [one for one, _ in islice(distinct_shortlist(scorer), most)]
        return optimize(
            work, device, where, candidates=candidates, replay=REPLAY, threads=1, resume=resume,
            on_attempt=_saying(say, "families"),
        ).attempts  # fmt: skip

    def two_stage(where: Path, resume: bool) -> Iterable[Attempt]:
        say("search: launch order")
        plan = SearchPlan(evaluations=most)
        return search(
            [work], device, where, plan, replay=REPLAY, threads=1, resume=resume, on_attempt=_saying(say, "search")
        ).attempts

    found = {name: list(_resumed(run, folder / name)) for name, run in (("families", families), ("search", two_stage))}
    launched = found["families"][0].score
    assert launched is not None  # a baseline always has one
    return {
        "kernel": work.name,
        "problem": dict(work.problem),
        "grid": str(work.grid),
        "gpu": device.name,
        "replay": REPLAY,
        "evaluations": most,
        "launched": kept(launched),
        **{name: _arm(attempts, scorer) for name, attempts in found.items()},
    }


def counted_kernel(about: Mapping[str, Any]) -> Kernel:
    """Kernel of a job; one that is launched again and again is counted at launch `MOST_LAUNCHES` at the latest.

    In the timed replay of FDTD some orders never settle: no launch takes quite the time of the one before it.
    """
    work = kernel(about["kernel"], **about["problem"])
    return replace(work, launches=min(work.launches, MOST_LAUNCHES))


def _resumed(run: Callable[[Path, bool], Iterable[Attempt]], where: Path) -> Iterable[Attempt]:
    """Go on with a run; one that was cut off before it could be read begins again."""
    try:
        return run(where, (where / FILE).is_file())
    except RunError:
        shutil.rmtree(where, ignore_errors=True)
        return run(where, False)


def _saying(say: Say, what: str) -> OnAttempt:
    return lambda attempt, done, total: say(f"{what}: {done} of {total}")


def _arm(attempts: Sequence[Attempt], scorer: Scorer) -> dict[str, Any]:
    best = Ranking().order(attempts)[0]
    assert best.score is not None  # ranked
    return {
        "name": best.name,
        "source": best.source,
        "domain": scorer.verify(Swizzle.parse(best.source, name=best.name)).domain,
        "score": kept(best.score),
        "rates": [a.score.l2_hit_rate for a in attempts[1:] if a.score is not None],
    }


def kept(score: Score) -> dict[str, Any]:
    """Figures of a score that the paper's figures need."""
    values = score.as_dict()
    return {name: values[name] for name in KEPT}


def score_texts(about: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Score texts; ``about`` has ``kernel``, ``problem``, ``gpu`` and ``texts``, by label."""
    scorer = Scorer(counted_kernel(about), gpu(about["gpu"]), replay=REPLAY)
    found = {}
    for label, text in about["texts"].items():
        say(label)
        swizzle = Swizzle.parse(text, name=label)
        verdict = scorer.verify(swizzle)
        score = kept(scorer.score(swizzle)) if verdict.bijective else None
        found[label] = {"score": score, "domain": verdict.domain}
    return {"replay": REPLAY, "launched": kept(scorer.baseline), "texts": found}


def sweep(about: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Score ``about["swizzles"]``, family specifications, on ``about["kernel"]`` at each of ``about["problems"]``."""
    device, swizzles = gpu(about["gpu"]), [Swizzle.parse(family(spec), name=spec) for spec in about["swizzles"]]
    points = [
        point_of(kernel(about["kernel"], **problem), device, swizzles, about["replay"]) for problem in about["problems"]
    ]
    with PointStore(folder, resume=(folder / POINTS_FILE).exists()) as store:
        rows = run_points(
            points, evaluate, store, backend="serial",
            on_point=lambda point, row, done, total: say(f"size {done} of {total}"),
        )  # fmt: skip
    return {"replay": about["replay"], "rows": rows}
