"""`advise`: what to do with an order, why, what limits the time, and the commands that go on.

One sentence a case, chosen from the scores alone:

    no gain told apart -> keep the launch order     fewer workgroups a CU -> do not use it as emitted
    time ranks         -> use it, so much faster    time does not rank   -> try it, and measure
    no gain told apart, but less read from HBM, where that was faster    -> try it, and measure
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swizzle_sim.base.text import gigabytes, microseconds
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import has_families
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import READS_LESS, SLOWER, UNEVEN, Evidence, Ranking, evidence_of
from xcd_model import Gpu, gpu_names

BOUND = 0.9  # share of the time from which a busy resource bounds it
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


def advise(
    scorer: Scorer, ranking: Ranking, baseline: Score, best: Attempt, *, tied: Sequence[str] = (), run: str = ""
) -> Advice:
    """Advice on the best candidate of a run, or on the only one of a command."""
    score = best.score or baseline
    evidence = evidence_of(scorer.gpu.name, "time")
    limit = limit_of(scorer, score) if scorer.replay == "timed" else ""
    gain = ranking.main.gain(score, baseline)
    if best.number and abs(gain) <= ranking.tolerance and ranking.reads_less(score, baseline):
        why = _fewer_reads(scorer.gpu.name, baseline, score)
        return Advice("try", f"try {best.name}, and measure", why, limit, go_on(scorer, best, run, kept=False))
    if best.number == 0 or abs(gain) <= ranking.tolerance:
        verdict, what, why = "keep", "keep the launch order", _no_gain(ranking, best, tied, gain) + one_xcd(scorer.gpu)
        return Advice(verdict, what, why, limit, go_on(scorer, best, run, kept=True))
    verdict, what = _choice(scorer, ranking, score, best.name, gain, evidence)
    why = _figures(scorer, ranking, baseline, score, evidence)
    if tied:
        why += f"; tied with {_few(tied)}"
    why += one_xcd(scorer.gpu)
    kept = verdict in ("slower", "keep")
    limit = limit_of(scorer, baseline) if kept and limit else limit  # of the order that is kept
    return Advice(verdict, what, why, limit, go_on(scorer, best, run, kept=kept))


def advise_run(scorer: Scorer, ranking: Ranking, attempts: Sequence[Attempt], run: str) -> Advice:
    """Advice on the best of a run's attempts, the first of which is the launch order."""
    groups = ranking.groups(attempts)
    baseline = attempts[0].score or scorer.baseline
    tied = [one.name for one in groups[0][1:] if one.number] if len(ranking.objectives) == 1 else []
    return advise(scorer, ranking, baseline, groups[0][0], tied=tied, run=run)


def _choice(
    scorer: Scorer, ranking: Ranking, score: Score, name: str, gain: float, evidence: Evidence
) -> tuple[str, str]:
    """Code and what to do, where the objective tells the order from the launch order."""
    if score.price is not None and score.price.loses_occupancy:
        return "loses-occupancy", f"do not use {name} as emitted"
    if gain < 0:
        return "keep", f"keep the launch order, not {name}"
    slower = score.speedup < 1 - SLOWER
    if slower and (evidence.ranks or ranking.main.name == "time"):
        return "slower", f"keep the launch order: {name} is better in {ranking.main.spoken} alone"
    if evidence.ranks and scorer.replay == "timed" and not slower:
        return "use", f"use {name}"
    return "try", f"try {name}, and measure"


def _figures(scorer: Scorer, ranking: Ranking, baseline: Score, score: Score, evidence: Evidence) -> str:
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
    if scorer.replay == "timed" and not evidence.ranks:
        parts.append(f"times do not rank orders here: {evidence.sentence()}")
    if score.price is not None and score.price.loses_occupancy:
        old, new = score.price.before, score.price.launched
        lost = f"registers {old.registers} to {new.registers}, workgroups a {new.place}"
        parts.insert(0, f"{lost} {old.workgroups_per_cu} to {new.workgroups_per_cu}")
    return "; ".join(parts)


def _no_gain(ranking: Ranking, best: Attempt, tied: Sequence[str], gain: float) -> str:
    """Why the launch order is kept."""
    unit = "points" if ranking.main.largest else "%"
    if best.number:
        change = f"{100 * gain:+.2f} {unit} of {ranking.main.spoken}"
        return f"{best.name} changes it by {change}, which the model does not tell apart"
    if ranking.main.name == "l2_hit_rate" and best.score and best.score.distance_to_bound <= ranking.tolerance:
        return "its L2 hit rate is the bound, which no balanced order exceeds"
    if tied:
        gain_nothing = "gain nothing" if len(tied) > 1 else "gains nothing"
        return f"{_few(tied)} {gain_nothing} in {ranking.main.spoken} that the model tells apart"
    return f"no candidate is better in {ranking.main.spoken}"


def _fewer_reads(gpu: str, baseline: Score, score: Score) -> str:
    """Why an order is tried whose time the model does not tell from the launch order's."""
    less, launched = gigabytes(score.hbm_read_bytes), gigabytes(baseline.hbm_read_bytes)
    known = evidence_of(gpu, READS_LESS)
    return (
        f"it reads {less} GB from HBM, the launch order {launched}, in predicted times that are not told apart; "
        f"of orders that tie so the one that reads less was faster in {known.right} of {known.pairs} pairs on {gpu}"
    )


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
    if not score.busy_us:
        return ""
    name = max(score.busy_us, key=lambda one: score.busy_us[one])
    busy = f"{microseconds(score.busy_us[name])} of {microseconds(score.time_us)} µs"
    if score.busy_us[name] >= BOUND * score.time_us:
        helpless = "; no other order can help" if name == "compute" and not scorer.work.uneven else ""
        return f"bound by {RESOURCES[name]}: {busy}{helpless}"
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
    return f"waits for loads: {RESOURCES[name]}, the busiest, is busy {busy}"


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
