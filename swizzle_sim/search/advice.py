"""`advise_run`: one of three answers on the best of some orders, its figures, what limits the time, and commands.

    use it      the whole interval of its time is faster, and such answers were right of judged rows of its class
    measure it  it gains by the figure that decides (`swizzle_sim.search.ranking`), which nothing measured proves here
    leave it    nothing gains, or too little, or the rewritten kernel costs more than it gains

The interval is `Gain.percent`; without one a gain is *unproven*. The answer has at most twenty words.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swizzle_sim.base.text import gigabytes, microseconds
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.candidates import has_families
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import (
    APART,
    HIT_RATE,
    SLOWER,
    TIME,
    UNEVEN,
    Ranking,
    evidence_of,
    gain_of,
    is_costly,
    uneven_of,
)
from swizzle_sim.workload.kernels import kernel as registered
from swizzle_sim.workload.kernels import kernel_names
from xcd_model import Gpu, gpu_names

BOUND = 0.9  # share of the time from which a busy resource bounds it
DISAGREE = 0.1  # of a hit rate 0 to 1: difference of what an order gains in both replays, from which drift decides
WORTH = 1.01, 1.02  # predicted speedup below which nothing is worth measuring; of a time bound by arithmetic
TRUSTED = 0.7  # share of a class's measured pairs that hits must rank right to outweigh a predicted time
WORSE = 1.02  # ratio from which HBM bytes or uneven ends are worse, and the L1 port is busier than the rest
USUAL = "mi300x"  # the GPU of a command that names none
RESOURCES = {
    "compute": "arithmetic",
    "l1": "the L1 port",
    "l2": "the L2",
    "fabric": "the fabric between L2 and memory side",
    "mall": "the Infinity Cache",
    "hbm": "HBM",
    "power": "power",
}


@dataclass(frozen=True)
class Advice:
    """What to do next."""

    verdict: str  # use, measure or leave
    what: str  # the answer, in at most twenty words
    why: str  # its figures, in a sentence
    order: str = ""  # to use or to measure, or the best that was tried; empty where the launch order is the best
    time_pct: tuple[float, float] | None = None  # interval of the change of time [%]; None for unproven
    worse: tuple[str, ...] = ()  # what gets worse by the order
    limit: str = ""  # what limits the time of the order to use; empty where the replay has no time
    next: tuple[str, ...] = ()  # commands to paste


def advise_run(scorer: Scorer, ranking: Ranking, attempts: Sequence[Attempt], run: str = "") -> Advice:
    """Advice on the best of some attempts, the first of which is the launch order."""
    groups = ranking.groups(attempts)
    best, baseline = groups[0][0], attempts[0].score or scorer.baseline
    others = [one for one in attempts if one.number and one.score is not None]
    drifting = _drifting(scorer, baseline, others)
    spills = any(one.score and one.score.price and one.score.price.before.spills for one in attempts)  # in no time
    reason = _leave(scorer, ranking, baseline, best, settled=not drifting and not spills)
    reason = reason if others else "no other order was scored"
    if drifting and reason and ranking.main != TIME:
        best, reason = drifting, ""
    named = best if best.number else others[0] if len(others) == 1 else None
    shown = named.score if named and named.score else baseline
    limit = limit_of(scorer, baseline if reason else shown)
    doubt = "workgroups that drift apart and those in step disagree on its gain" if drifting is best else ""
    tied = [] if reason or len(ranking.objectives) > 1 or best not in groups[0] else groups[0]
    equal = [one.name for one in tied if one.number and one is not best]
    ties = ", ".join(equal[:2]) + (f" and {len(equal) - 2} more" if len(equal) > 2 else "")
    parts = [
        f"L2 {_moved(baseline, shown)}" * bool(reason and named),
        _figures(baseline, shown) * bool(named),
        doubt,
        f"tie: {ties}" * bool(ties),
        one_xcd(scorer.gpu),
    ]
    why, commands = "; ".join(filter(None, parts)), go_on(scorer, best, run, kept=bool(reason))
    name = spoken(named.name) if named else ""
    worse = worse_of(baseline, shown)
    left = f"leave it: {reason}; {limit if 'workgroups on' in limit else limit.partition(':')[0]}".removesuffix("; ")
    found = Advice("leave", left, why, name, worse=worse, limit=limit, next=commands)
    return found if reason else _gains(scorer, ranking, found, baseline, shown)


def _gains(scorer: Scorer, ranking: Ranking, found: Advice, baseline: Score, score: Score) -> Advice:
    """Advice to use an order, or to measure it."""
    known = gain_of(scorer.gpu.name, scorer.work_class) if scorer.replay == "timed" and score.speedup > 1 else None
    span = known.percent(score.speedup) if known else None
    use = known and span and known.proven and span[1] < 0 and ranking.main == TIME and "spills" not in found.worse
    verdict = "use" if use else "measure"
    worse = f"; worse: {'/'.join(found.worse)}" if found.worse else ""
    what, why = f"{verdict} it: {found.order}, ", found.why
    if span:
        what += f"time {span[0]:+.0f} to {span[1]:+.0f} %; {_moved(baseline, score)}{worse}"
    elif ranking.main != HIT_RATE or abs(score.speedup - 1) >= WORTH[0] - 1:
        what += f"time {100 / score.speedup - 100:+.1f} %, unproven; {_moved(baseline, score)}{worse}"
    else:  # so small a change says nothing: hits or bytes are gained
        what += f"{_moved(baseline, score)}; time about the same{worse}"
        if (hits := evidence_of(ranking.gpu, HIT_RATE.name, scorer.work_class)).pairs:
            why += f"; hits put {hits.right} of {hits.pairs} measured pairs right"
    return replace(found, verdict=verdict, what=what, why=why, time_pct=span)


def _leave(scorer: Scorer, ranking: Ranking, baseline: Score, best: Attempt, *, settled: bool) -> str:
    """Why the launch order is kept, in a few words; empty where the best order gains."""
    score, name = best.score, spoken(best.name)
    if best.number == 0 or score is None:
        at_bound = ranking.main == HIT_RATE and baseline.distance_to_bound <= ranking.tolerance
        return "the launch order's L2 hit rate is the bound" if at_bound else "no order tried is better"
    if is_costly(score):
        return f"{name} costs {'/'.join(worse_of(baseline, score))}"
    if ranking.main not in (TIME, HIT_RATE) or ranking.is_behind(baseline, uneven_of(score)):
        return ""
    less, misses = score.hbm_bytes * APART <= baseline.hbm_bytes, score.l2_misses * APART <= baseline.l2_misses
    if ranking.main.gain(score, baseline) <= ranking.tolerance and not less and not misses:
        return f"{name} ties with the launch order"
    return _little(scorer, ranking, score, name, _bound_by(baseline) if settled else "", less, misses)


def _little(scorer: Scorer, ranking: Ranking, score: Score, name: str, busy: str, less: bool, misses: bool) -> str:
    """Why a gain is not worth measuring; empty where it is. Hits outweigh a time where they rank the class's orders."""
    known = evidence_of(ranking.gpu, HIT_RATE.name, scorer.work_class)
    hits = misses and ranking.main == HIT_RATE and bool(known.work_class) and known.right >= TRUSTED * known.pairs
    if score.speedup < 1 - SLOWER and (not hits or busy == "hbm"):
        return f"{name} is predicted {100 / score.speedup - 100:.1f} % slower"
    few = (scorer.kernel.programs or scorer.kernel.grid.num_pids) < scorer.gpu.cus
    if score.speedup < WORTH[busy == "compute"] and (few or busy == "compute" or not (less or hits)):
        return f"{name} gains {max(0.0, 100 - 100 / score.speedup):.1f} % at most"
    return ""


def _moved(baseline: Score, score: Score) -> str:
    """Hit rate and HBM bytes, before and after."""
    rates = [f"{100 * one.l2_hit_rate:.1f}" for one in (baseline, score)]
    return f"hits {_change(*rates)} %, HBM {_change(gigabytes(baseline.hbm_bytes), gigabytes(score.hbm_bytes))} GB"


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} to {after}"


def _figures(baseline: Score, score: Score) -> str:
    """Predicted times, how evenly the CUs end where that changes, and what a costly remap loses."""
    ends, was = uneven_of(score), uneven_of(baseline)
    even = f"; CUs end at {was:.2f} to {ends:.2f} times the ideal" if abs(ends - was) >= 0.05 else ""
    times = f"predicted {_change(microseconds(baseline.time_us), microseconds(score.time_us))} µs"
    price = f"; {score.price}" if score.price is not None and score.price.is_costly else ""
    return f"{times}{even}{price}"


def worse_of(baseline: Score, score: Score) -> tuple[str, ...]:
    """What an order makes worse than the launch order has it."""
    found = {
        "traffic": score.hbm_bytes > WORSE * baseline.hbm_bytes,
        "balance": uneven_of(score) > WORSE * uneven_of(baseline),
    }
    if score.price is not None:
        old, new = score.price.before, score.price.launched
        found |= {
            "occupancy": score.price.loses_occupancy,
            "pipeline": score.price.loses_pipeline,
            "spills": new.spills > old.spills,
            "registers": new.registers > old.registers,
            "LDS": new.lds_bytes > old.lds_bytes,
        }
    return tuple(name for name, is_worse in found.items() if is_worse)


def _drifting(scorer: Scorer, baseline: Score, others: Sequence[Attempt]) -> Attempt | None:
    """The order of most hits of a kernel bound by arithmetic or power, where both replays disagree on what it gains."""
    others = [one for one in others if one.source and one.score is not None]
    if not others or not may_drift(scorer, baseline):
        return None
    rate, best = max(((one.score.l2_hit_rate, one) for one in others if one.score), key=lambda pair: pair[0])
    in_step = scorer.quick
    together = score_on(in_step, in_step.permutation(Swizzle.parse(best.source))).l2_hit_rate
    gained = together - in_step.baseline.l2_hit_rate
    return best if abs(gained - rate + baseline.l2_hit_rate) > DISAGREE else None


def may_drift(scorer: Scorer, baseline: Score) -> bool:
    """Whether advice asks the lockstep replay too."""
    return scorer.replay == "timed" and _bound_by(baseline) in ("compute", "power") and not scorer.work.uneven


def spoken(name: str) -> str:
    """Name of an order as one word of a sentence; of a text its first."""
    words = name.split()
    return name if len(words) < 2 else f"{words[0]}…"


def one_xcd(gpu: Gpu) -> str:
    """Say of one XCD of a chip (CPX) that remaps over XCDs are idle there; empty for other GPUs."""
    if gpu.xcds > 1 or not gpu.arch.startswith("gfx"):
        return ""
    return f"{gpu.name} is one XCD with one L2: nothing to swizzle over XCDs, only the order in that L2 counts"


def limit_of(scorer: Scorer, score: Score) -> str:
    """What limits the predicted time of a score of the timed replay.

    The busiest resource, where it is busy nearly all the time; else too few workgroups, uneven work, a last round of
    workgroups that leaves CUs empty; else waiting.
    """
    gpu, workgroups = scorer.gpu, scorer.kernel.programs or scorer.kernel.grid.num_pids
    if not score.busy_us or scorer.replay != "timed":
        return ""
    name, us = max(score.busy_us.items(), key=lambda one: one[1])
    if (l1_us := min(scorer.l1_us, score.time_us)) > WORSE * us:
        name, us = "l1", l1_us
    what = "vector arithmetic" if name == "compute" and scorer.kernel.resources.vector_loads else RESOURCES[name]
    busy = f"{microseconds(us)} of {microseconds(score.time_us)} µs"
    if us >= BOUND * score.time_us:
        return f"bound by {what}: {busy}"
    if workgroups < gpu.cus:
        return f"{workgroups} workgroups on {gpu.cus} CUs: smaller tiles first"
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
    """Commands that go on: the report, the rewritten kernel and a bundle; a search where the launch order is kept."""
    kernel, report = scorer.kernel, [["report", run, "--open"]] if run else []
    if scorer.gpu.name not in gpu_names():  # a user's own description, or one with changed numbers: no name to paste
        return tuple(shlex.join(["swizzle-sim", *one]) for one in [*report, ["bundle", run]] if run and not kept)
    sizes = {} if (kernel.file or "").endswith(".npz") else kernel.problem  # a trace has one size
    if not kernel.file and kernel.name in kernel_names():
        sizes = {size: value for size, value in sizes.items() if registered(kernel.name).problem.get(size) != value}
    file = kernel.file and min(kernel.file, os.path.relpath(kernel.file), key=len)
    on = [] if scorer.gpu.name == USUAL else ["--gpu", scorer.gpu.name]
    what = [file or kernel.name, *(f"{name}={size}" for name, size in sizes.items()), *on]
    starved = run and kernel.launch is not None and (kernel.programs or kernel.grid.num_pids) < scorer.gpu.cus
    tiles = [["optimize", *what, "--tune"]] if starved else []
    if kept:
        some = scorer.gpu.xcds > 1 or has_families(kernel, scorer.gpu)
        commands = [*report, *tiles, *([["optimize", *what, "--proposer", "search"]] if some and not starved else [])]
    else:
        swizzle = ["--swizzle", f"{run}/best.txt" if run else best.name]
        rewrite, seeds = ["rewrite", *what, *swizzle], ["score", *what, *swizzle, "--seeds", "5"]
        bundle = ["bundle", run] if run else ["bundle", *what, *swizzle]
        after = seeds if run and kernel.file else rewrite  # a run has rewritten it
        of_triton = not kernel.file or kernel.launch is not None
        commands = [*(report or [seeds]), *tiles, after, *([bundle] if of_triton and not tiles else [])]
    return tuple(shlex.join(["swizzle-sim", *one]) for one in commands)
