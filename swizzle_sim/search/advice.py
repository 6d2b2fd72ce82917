"""`advise_run`: what to do with the best of some orders, why, what limits the time, and the commands that go on.

One sentence a case, by what puts the order before the launch order in `swizzle_sim.search.ranking`:

    nothing           -> keep the launch order     fewer workgroups a CU -> do not use it as emitted
    predicted time    -> use it, so much faster    even ends, hits, or what breaks a tie -> try it, and measure
    nothing, but in step it hits far more often than when workgroups drift apart         -> try it, and measure
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swizzle_sim.base.text import gigabytes, microseconds
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import lockstep_like, score_on
from swizzle_sim.search.candidates import has_families
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import (
    APART,
    LESS_MOVED,
    SLOWER,
    UNEVEN,
    Ranking,
    evidence_of,
    loses_occupancy,
    times_rank,
    uneven_of,
)
from xcd_model import Gpu, gpu_names

BOUND = 0.9  # share of the time from which a busy resource bounds it
DISAGREE = (
    0.1  # of a hit rate 0 to 1: difference of what both replays say that an order gains, from which drift decides
)
HELPLESS = "; no other order can help"
KEPT = ("keep", "slower")  # verdicts that leave the launch order
RESOURCES = {
    "compute": "arithmetic",
    "l2": "the L2",
    "fabric": "the fabric between L2 and memory side",
    "mall": "the Infinity Cache",
    "hbm": "HBM",
    "power": "power",
}


@dataclass(frozen=True)
class Advice:
    """What to do next."""

    verdict: str  # stable code: use, try, keep, slower or loses-occupancy
    what: str  # what to do, and the figures that say so
    why: str
    limit: str = ""  # what limits the time of the order to use; empty where the replay has no time
    next: tuple[str, ...] = ()  # commands to paste

    @property
    def line(self) -> str:
        """All but the commands, on one line."""
        return f"{self.what}: {self.why}" + (f"; {self.limit}" if self.limit else "")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "next": list(self.next)}


def advise_run(scorer: Scorer, ranking: Ranking, attempts: Sequence[Attempt], run: str = "") -> Advice:
    """Advice on the best of some attempts, the first of which is the launch order."""
    groups = ranking.groups(attempts)
    best, baseline = groups[0][0], attempts[0].score or scorer.baseline
    tied = [one.name for one in groups[0] if one.number and one is not best] if len(ranking.objectives) == 1 else []
    verdict, what, why = _choice(scorer, ranking, attempts, best, tied)
    chosen = baseline if verdict in KEPT else best.score or baseline
    limit = limit_of(scorer, chosen)
    if scorer.replay == "timed" and _bound_by(chosen) == "compute" and not scorer.work.uneven:
        drifting = _drifting(scorer, attempts)
        limit += "" if drifting or spills(attempts) else HELPLESS
        if drifting and verdict == "keep" and ranking.main.name != "time":
            best, verdict, what, why = drifting[0], "try", f"try {drifting[0].name}, and measure", drifting[1]
    return Advice(verdict, what, why + one_xcd(scorer.gpu), limit, go_on(scorer, best, run, kept=verdict in KEPT))


def _choice(
    scorer: Scorer, ranking: Ranking, attempts: Sequence[Attempt], best: Attempt, tied: Sequence[str]
) -> tuple[str, str, str]:
    """Code, what to do, and why: from the rule of `Ranking` that puts the best order before the launch order."""
    baseline, score = attempts[0].score or scorer.baseline, best.score
    if best.number == 0 or score is None:
        return _kept(scorer, ranking, attempts, tied)
    figures = _figures(scorer, ranking, baseline, score) + (f"; tied with {_few(tied)}" if tied else "")
    if loses_occupancy(score):
        return "loses-occupancy", f"do not use {best.name} as emitted", figures
    measure = f"try {best.name}, and measure"
    if ranking.is_behind(baseline, uneven_of(score)):
        ends = f"its CUs end at {uneven_of(score):.2f} times the ideal, in launch order at {uneven_of(baseline):.2f}"
        return "try", measure, f"{ends}; {figures}"
    ranks = times_rank(scorer.gpu.name, scorer.replay, scorer.work_class)
    if ranking.main.gain(score, baseline) <= ranking.tolerance:
        why = _breaks_a_tie(scorer.gpu.name, ranking, baseline, score, ranks)
        return ("try", measure, why) if why else _kept(scorer, ranking, attempts, [best.name, *tied])
    slower = score.speedup < 1 - SLOWER
    if slower and (ranks or ranking.main.name == "time" or _bound_by(score) == "hbm"):
        return "slower", f"keep the launch order: {best.name} is better in {ranking.main.spoken} alone", figures
    return ("use", f"use {best.name}", figures) if ranks else ("try", measure, figures)


def _figures(scorer: Scorer, ranking: Ranking, baseline: Score, score: Score) -> str:
    """The figures behind a choice: hit rate, predicted time with what it is worth, registers."""
    rate = f"L2 hit rate {100 * baseline.l2_hit_rate:.1f} to {100 * score.l2_hit_rate:.1f} %"
    change = "slower" if score.speedup < 1 - SLOWER else "faster" if score.speedup > 1 + SLOWER else "no change"
    times = f"{microseconds(baseline.time_us)} to {microseconds(score.time_us)} µs"
    percent = f"{abs(100 * (1 / score.speedup - 1)):.1f} % {change}" if change != "no change" else change
    time = f"predicted {percent} ({times})"
    parts = [time, rate] if ranking.main.name == "time" else [rate, time]
    if ranking.main.name not in ("time", "l2_hit_rate"):
        was, now = ranking.main.of(baseline), ranking.main.of(score)
        parts.insert(0, f"{ranking.main.spoken} {was:.3g} to {now:.3g} {ranking.main.unit}")
    if scorer.replay == "timed" and not times_rank(scorer.gpu.name, scorer.replay, scorer.work_class):
        parts.append("time does not decide here")
    if score.price is not None and score.price.loses_occupancy:
        old, new = score.price.before, score.price.launched
        lost = f"registers {old.registers} to {new.registers}, workgroups a {new.place}"
        parts.insert(0, f"{lost} {old.workgroups_per_cu} to {new.workgroups_per_cu}")
    return "; ".join(parts)


def _kept(scorer: Scorer, ranking: Ranking, attempts: Sequence[Attempt], tied: Sequence[str]) -> tuple[str, str, str]:
    """Why the launch order is kept; of one candidate alone its figures."""
    launched = attempts[0].score or scorer.baseline
    others = [(one.name, one.score) for one in attempts[1:] if one.score is not None]
    if len(others) == 1:
        name, score = others[0]
        why = _figures(scorer, ranking, launched, score)
        return "keep", f"keep the launch order, not {name}", f"{why}, which is a tie" if tied else why
    why = f"no candidate is better in {ranking.main.spoken}"
    if ranking.main.name == "l2_hit_rate" and launched.distance_to_bound <= ranking.tolerance:
        why = "its L2 hit rate is the bound, which no balanced order exceeds"
    elif tied:
        gain_nothing = "gain nothing" if len(tied) > 1 else "gains nothing"
        why = f"{_few(tied)} {gain_nothing} in {ranking.main.spoken} that the model tells apart"
    return "keep", "keep the launch order", why


def _breaks_a_tie(gpu: str, ranking: Ranking, baseline: Score, score: Score, ranks: bool) -> str:
    """Why an order is tried whose figure ties with the launch order's; empty for a time that does not decide."""
    known, tie = evidence_of(gpu, LESS_MOVED), f"in {ranking.main.spoken} that is not told apart"
    if score.hbm_bytes * APART <= baseline.hbm_bytes:
        less, launched = gigabytes(score.hbm_bytes), gigabytes(baseline.hbm_bytes)
        moved = f"it moves {less} GB to and from HBM, the launch order {launched}"
        faster = f"; of orders that tie so the one that reads less was faster in {known.right} of {known.pairs} pairs"
        return f"{moved}, {tie}" + (f"{faster} on {gpu}" if known.pairs else "")
    if score.l2_misses * APART <= baseline.l2_misses:
        return f"it misses the L2 {score.l2_misses:,} times, the launch order {baseline.l2_misses:,}, {tie}"
    return f"it is predicted {100 * (score.speedup - 1):.1f} % faster, {tie}" if ranks else ""


def spills(attempts: Sequence[Attempt]) -> bool:
    """Whether the kernel spills registers as it is compiled, which is in no predicted time."""
    prices = [one.score.price for one in attempts if one.score is not None and one.score.price is not None]
    return any(price.before.spills for price in prices)


def _drifting(scorer: Scorer, attempts: Sequence[Attempt]) -> tuple[Attempt, str] | None:
    """The order of most hits, where the replays disagree by over `DISAGREE` on what it gains, and what both say."""
    others = [(one.score.l2_hit_rate, one) for one in attempts[1:] if one.score is not None and one.source]
    if scorer.replay != "timed" or not others:
        return None
    rate, best = max(others, key=lambda pair: pair[0])
    in_step = lockstep_like(scorer)
    drifted = ((attempts[0].score or scorer.baseline).l2_hit_rate, rate)
    together = (
        in_step.baseline.l2_hit_rate,
        score_on(in_step, in_step.permutation(Swizzle.parse(best.source))).l2_hit_rate,
    )
    if abs(together[1] - together[0] - drifted[1] + drifted[0]) <= DISAGREE:
        return None
    apart, in_turns = (f"{100 * one:.1f} to {100 * other:.1f} %" for one, other in (drifted, together))
    return best, f"L2 hit rate {apart} where workgroups drift apart, {in_turns} in lockstep: the replays disagree"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def one_xcd(gpu: Gpu) -> str:
    """Say of one XCD of a chip (CPX) that remaps over XCDs are idle there; empty for other GPUs."""
    if gpu.xcds > 1 or not gpu.arch.startswith("gfx"):
        return ""
    return f"; {gpu.name} is one XCD with one L2: nothing to swizzle over XCDs, only the order in that L2 counts"


def limit_of(scorer: Scorer, score: Score) -> str:
    """What limits the predicted time of a score of the timed replay.

    The busiest resource, where it is busy nearly all the time; else too few workgroups, uneven work, a last round of
    workgroups that leaves CUs empty; else waiting.
    """
    gpu, workgroups = scorer.gpu, scorer.kernel.programs or scorer.kernel.grid.num_pids
    if not score.busy_us or scorer.replay != "timed":
        return ""
    name = max(score.busy_us, key=lambda one: score.busy_us[one])
    what = "vector arithmetic" if name == "compute" and scorer.kernel.resources.vector_loads else RESOURCES[name]
    busy = f"{microseconds(score.busy_us[name])} of {microseconds(score.time_us)} µs"
    if _bound_by(score):
        return f"bound by {what}: {busy}"
    if workgroups < gpu.cus:
        return f"{workgroups} workgroups on {gpu.cus} CUs"
    balance = score.balance
    if balance is not None and balance.over_ideal > UNEVEN:
        last = f"the last XCD ends {balance.last_over_first:.1f} times later than the first"
        tail = f"the time is {balance.over_ideal:.2f} times what even work would take"
        if balance.last_over_first <= UNEVEN and not scorer.work.uneven:
            return f"the last round of workgroups leaves CUs idle: {tail}"
        how = "work uneven" if scorer.work.uneven else "XCDs end unevenly"
        return f"{how}: {last if balance.last_over_first > UNEVEN else tail}"
    return f"waits for loads: {what}, the busiest, is busy {busy}"


def _bound_by(score: Score) -> str:
    """Resource that is busy nearly all the time; empty where none is."""
    name = max(score.busy_us, key=lambda one: score.busy_us[one], default="")
    return name if name and score.busy_us[name] >= BOUND * score.time_us else ""


def go_on(scorer: Scorer, best: Attempt, run: str, *, kept: bool) -> tuple[str, ...]:
    """Three commands that go on: more seeds, rewrite and bundle; or other proposers where the launch order is kept."""
    kernel = scorer.kernel
    if scorer.gpu.name not in gpu_names():  # a user's own description, or one with changed numbers: no name to paste
        return (f"swizzle-sim bundle {shlex.quote(run)}",) if run and not kept else ()
    sizes = {} if (kernel.file or "").endswith(".npz") else kernel.problem  # a trace has one size
    what = [kernel.file or kernel.name, *(f"{name}={size}" for name, size in sizes.items()), "--gpu", scorer.gpu.name]
    if kept:
        search = ["optimize", *what, "--proposer", "search"]
        some = scorer.gpu.xcds > 1 or has_families(kernel, scorer.gpu)
        commands = [["ceiling", *what], *([search] if some else [])]
    else:
        swizzle = ["--swizzle", f"{run}/best.txt" if run else best.name]
        rewrite = ["rewrite", *what, *swizzle]
        bundle = ["bundle", run] if run else ["bundle", *what, *swizzle]
        commands = [["score", *what, *swizzle, "--seeds", "5"], rewrite, bundle]
    return tuple(shlex.join(["swizzle-sim", *one]) for one in commands)
