"""What ``score`` computes, and how it is printed: one order in full, or orders by GPUs in a table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.base.atomic_write import check_folder, write_whole
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli import output
from swizzle_sim.cli.arguments import Launch, OfOne, ReplayOptions
from swizzle_sim.cli.output import line, table
from swizzle_sim.language import Swizzle, Verdict
from swizzle_sim.pricing.access_patterns import emulated, emulated_note, fitted_constants, pitch_note, uncoalesced
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer, Spread, spread
from swizzle_sim.pricing.waiting import Waited, waited
from swizzle_sim.report.bottleneck import why_better
from swizzle_sim.search.advice import Advice, advise_run, limit_of, one_xcd
from swizzle_sim.search.candidates import shortlist
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking, default_objectives, is_costly, times_note
from swizzle_sim.uncertainty import Span, Uncertainty, uncertainty
from swizzle_sim.uncertainty.study import DRAWS
from swizzle_sim.workload.price import RemapPrice
from xcd_model import Traffic
from xcd_model.errors import SwizzleSimError
from xcd_model.replay.traffic import traffic_as_dict

if TYPE_CHECKING:
    from swizzle_sim.capture.own_remap import OwnRemap

LAUNCHED = "launch order"
NOT_REWRITTEN = "the launch order, which needs no rewriting"
IN_SEVERAL = ("L2 hit\nrate [%]", "HBM\n[GB]", "time\n[µs]")  # the columns of each of several GPUs
RANGE_COLUMNS = ("as it is", "low", "high", "moved most by", "to, alone")
Figure = tuple[str, Callable[[float], str]]
OF_CANDIDATE: dict[str, Figure] = {
    "l2_hit_rate": ("L2 hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "mall_hit_rate": ("Infinity Cache hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "l2_misses": ("L2 misses [M]", lambda value: f"{value / 1e6:.3f}"),
    "hbm_bytes": ("HBM [GB]", lambda value: f"{value / 1e9:.3f}"),
    "time_us": ("time [µs]", lambda value: f"{value:.1f}"),
}
OF_DIFFERENCE: dict[str, Figure] = {
    "l2_hit_rate": ("L2 hit rate gained [points]", lambda value: f"{100 * value:+.2f}"),
    "hbm_bytes": ("HBM bytes, relative to launch order", lambda value: f"{value:.3f}"),
    "speedup": ("speedup", lambda value: f"{value:.3f}"),
}


def scorer_of(launch: Launch, how: ReplayOptions) -> Scorer:
    """Scorer of a launch on its GPU."""
    return Scorer(*launch.load(how.compile), replay=how.replay, seed=how.seed, jitter_ns=how.jitter)


@dataclass(frozen=True)
class Scored:
    """Score of one order as its rewritten kernel is compiled, whose scorer is ``own``, and why it has no price."""

    own: Scorer
    score: Score
    traffic: Traffic
    not_priced: str


def scored_as_compiled(scorer: Scorer, candidate: Swizzle, order: np.ndarray, *, compile: bool) -> Scored:
    """Score of a candidate's rewritten kernel, or of the kernel as launched where that cannot be had."""
    threads = output.cores()
    if candidate.program.keeps_launch_order:  # replayed once, and not again to be compared with itself
        return Scored(scorer, *scorer.score_launch_order(threads=threads), NOT_REWRITTEN)
    own, price, not_priced = _priced(scorer, candidate) if compile else (scorer, None, "--no-compile")
    traffic = own.traffic(order, threads=threads)
    found = own.score_traffic(traffic, baseline_us=scorer.baseline.time_us)
    return Scored(own, replace(found, price=price), traffic, not_priced)


def _priced(scorer: Scorer, candidate: Swizzle) -> tuple[Scorer, RemapPrice | None, str]:
    """Scorer of the kernel as rewritten, the price of the swizzle, and why there is none."""
    from swizzle_sim.rewrite.price import as_compiled  # slow to import

    try:
        with Progress("compiling the rewritten kernel"):
            own, price = as_compiled(scorer, candidate)
    except SwizzleSimError as error:
        return scorer, None, str(error).splitlines()[0]
    return own, price, "" if price else NOT_REWRITTEN


def _attempt(number: int, one: Swizzle, verdict: Verdict, score: Score | None) -> Attempt:
    name = one.name or "the candidate"
    return Attempt(
        number=number, name=name, source=one.source, proposer="given", verdict=verdict.as_dict(), score=score
    )


def _ranking(scorer: Scorer) -> Ranking:
    """What ranks orders of the GPU."""
    return Ranking(default_objectives(scorer.gpu.name, scorer.replay, scorer.work_class), gpu=scorer.gpu.name)


def score_one(given: Sequence[Swizzle], launch: Launch, how: ReplayOptions, more: OfOne, json: bool) -> bool:
    """Score an order, without one the launch order, and print it; whether it is a bijection."""
    scorer = scorer_of(launch, how)
    candidate = given[0] if given else Swizzle.parse("identity", name=LAUNCHED)
    verdict = scorer.verify(candidate)
    found = InFull.of(scorer, candidate, verdict, how, more) if verdict.bijective else None
    if json:
        output.print_json(_document(scorer, candidate, verdict, found))
    elif found:
        found.print(lambda: _say(candidate, scorer, verdict), verbose=how.verbose)
    else:
        _say(candidate, scorer, verdict)
    return verdict.bijective


def _say(candidate: Swizzle, scorer: Scorer, verdict: Verdict, on: str = "") -> None:
    """Say what `check` says of a candidate."""
    from swizzle_sim.testing.settle import settle_verdict

    grid, xcds = scorer.kernel.grid, scorer.gpu.xcds
    output.print_verdict(candidate, grid, xcds, settle_verdict(verdict, candidate, grid, xcds), on)


def _document(scorer: Scorer, candidate: Swizzle, verdict: Verdict, found: InFull | None) -> dict[str, Any]:
    """JSON of a candidate; of one that is no bijection without figures."""
    return {
        **output.scored_on(scorer),
        "swizzle": candidate.name,
        "source": candidate.source,
        "verdict": verdict,
        "fitted_constants": len(_fitted(scorer)),
        "work": scorer.work,
        "uncoalesced": uncoalesced(scorer.trace),
        **(found.as_dict() if found else dict.fromkeys(InFull.FIGURES)),
    }


def _fitted(scorer: Scorer) -> list[str]:
    """Names of the fitted constants that the scores depend on."""
    return list(fitted_constants(scorer.gpu, scorer.kernel, scorer.replay, scorer.occupancy))


@dataclass(frozen=True, kw_only=True)
class InFull:
    """Everything that is told of one order on one GPU."""

    FIGURES = ("advice", "baseline", "score", "spread", "uncertainty", "assigned_bound_l2_hit_rate", "traffic")

    scorer: Scorer
    candidate: Swizzle
    order: np.ndarray
    found: Scored
    advice: Advice | None
    over_seeds: Spread | None
    ranges: Uncertainty | None
    inside: tuple[OwnRemap, Score] | None  # the remap of a user's kernel, and the score without it
    waits: Waited | None
    why_better: tuple[str, ...]
    files: list[Path]

    @classmethod
    def of(cls, scorer: Scorer, candidate: Swizzle, verdict: Verdict, how: ReplayOptions, more: OfOne) -> InFull:
        """Score a bijection, and compute what is asked of it."""
        order = scorer.permutation(candidate)
        found = scored_as_compiled(scorer, candidate, order, compile=how.compile)
        advice: Advice | None = None
        why: tuple[str, ...] = ()
        if how.replay == "timed" and candidate.name != LAUNCHED:
            launched = Swizzle.parse("identity", name=LAUNCHED)
            two = ((launched, verdict, scorer.baseline), (candidate, verdict, found.score))
            both = [_attempt(n, *one) for n, one in enumerate(two)]
            advice, why = advise_run(scorer, _ranking(scorer), both), why_better(scorer, both, both[1].name)
        remap = None
        if scorer.kernel.file:
            from swizzle_sim.capture.own_remap import own_remap

            remap = own_remap(scorer.kernel, scorer.gpu.xcds)
        ranges: Uncertainty | None = None
        if more.uncertainty:
            with Progress("replaying under other constants", "sets of constants") as progress:
                ranges = uncertainty(scorer, order, draws=more.draws or DRAWS, on_replay=progress)
        return cls(
            scorer=scorer,
            candidate=candidate,
            order=order,
            found=found,
            advice=advice,
            over_seeds=spread(scorer, candidate, more.seeds) if more.seeds > 1 else None,
            files=_drawn(scorer, candidate.name or "candidate", order, found, more),
            ranges=ranges,
            inside=(remap, scorer.score_order(remap.without, baseline_us=scorer.baseline.time_us)) if remap else None,
            waits=waited(found.own, order) if found.own.kernel.waits is not None else None,
            why_better=why,
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON of the figures."""
        found, counts = self.found, (self.scorer.assigned_bound(self.order), traffic_as_dict(self.found.traffic))
        figures = (self.advice, self.scorer.baseline, found.score, self.over_seeds, self.ranges, *counts)
        return {
            **dict(zip(self.FIGURES, figures, strict=True)),
            **({"why_better": self.why_better} if self.why_better else {}),
            **({"own_remap": self.inside[0].as_dict(self.inside[1])} if self.inside else {}),
            **({"waited": self.waits} if self.waits else {}),
        }

    def print(self, candidate: Callable[[], None], *, verbose: bool) -> None:
        """Print advice, figures and what was asked for; with ``verbose`` all else, and what ``candidate`` prints."""
        scorer, name = self.scorer, self.candidate.name or "candidate"
        if self.advice:
            output.print_advice(self.advice, self.why_better)
        elif name == LAUNCHED and (said := limit_of(scorer, scorer.baseline)):
            line(said)
        self._print_scores(name, verbose)
        if verbose:
            if name != LAUNCHED:
                output.print_price(scorer, self.found.score.price, self.found.not_priced)
            self._print_constants()
        if one := self.over_seeds:
            line(
                f"over {one.seeds} seeds: L2 hit rate {100 * one.l2_hit_rate_mean:.2f} ± "
                f"{100 * one.l2_hit_rate_std:.2f} %, time {one.time_us_mean:.1f} ± {one.time_us_std:.1f} µs "
                "(mean and standard deviation)"
            )
        if self.ranges:
            _print_uncertainty(self.ranges, name, scorer.replay)
        for file in self.files:
            print(file)
        if name == LAUNCHED:
            _print_next(scorer)
        else:
            candidate()
        if self.advice:
            output.print_last(self.advice)

    def _print_scores(self, name: str, verbose: bool) -> None:
        scorer, traffic = self.scorer, self.found.traffic
        scores = {LAUNCHED: scorer.baseline, name: self.found.score}
        full = output.simulated(scorer.gpu.name, scorer.replay, scorer.work_class)
        output.score_table(
            output.title_of(scorer.kernel, scorer.gpu),
            ("swizzle",),
            list(scores.items()),
            full if verbose else output.COUNTED[scorer.replay],
            columns=output.SCORE_COLUMNS if verbose else output.IN_BRIEF,
        )
        if note := emulated_note(emulated(scorer.kernel, scorer.gpu), scorer.gpu):
            line(note)
        for far in uncoalesced(scorer.trace):
            line(str(far))
        if verbose:
            output.print_balance(scorer.work, scores)
            note = f"launch {traffic.launch}, {'steady' if traffic.steady else 'not steady'}" * (traffic.launch > 1)
            counts = traffic_as_dict(traffic)
            levels = {**counts["by_tensor"], "all": counts["all"]}.items()
            output.table_of(f"{name}, by tensor", "tensor", output.LEVELS, levels, note=note)

    def _print_constants(self) -> None:
        """The remap inside the kernel, waits, fitted constants, and tensors whose rows lie a power of two apart."""
        if self.inside:
            _print_own_remap(self.scorer, *self.inside)
        if self.waits:
            line(str(self.waits))
        names = _fitted(self.scorer)
        listed = f": {', '.join(names)} (rows: docs/gpus.md)" if names else ""
        line(f"{len(names)} constant{'' if len(names) == 1 else 's'} fitted to measured rows{listed}")
        pitches = self.scorer.trace.power_of_two_pitches
        if pitches and (note := pitch_note(pitches, self.scorer.gpu)):
            line(note)


def _drawn(scorer: Scorer, name: str, order: np.ndarray, found: Scored, more: OfOne) -> list[Path]:
    """Write the pictures that were asked for; their files."""
    if more.plots is None:
        return []
    from swizzle_sim.report import over_time, per_xcd, png

    check_folder(more.plots)
    before = scorer.traffic(np.arange(order.size), threads=output.cores())
    pictures = (over_time(before, found.traffic, name=name), per_xcd(scorer.baseline, found.score, name=name))
    files = [more.plots / "over_time.png", more.plots / "per_xcd.png"]
    for path, picture in zip(files, pictures, strict=True):
        write_whole(path, png(picture, note=f"simulated, {scorer.replay} replay"))
    return files


def _print_own_remap(scorer: Scorer, found: OwnRemap, without: Score) -> None:
    """Print what a remap is worth that the kernel holds already."""
    before = scorer.baseline
    line(
        f"{found}: L2 hit rate {100 * before.l2_hit_rate:.2f} % with it, {100 * without.l2_hit_rate:.2f} % without; "
        f"{before.time_us:.1f} and {without.time_us:.1f} µs. The candidate is stacked on it."
    )
    if found.constants:
        given = " ".join(f"{name}={value}" for name, value in found.constants.items())
        line(f"  in its place: swizzle-sim score {scorer.kernel.file} {given} ...")


def _print_next(scorer: Scorer) -> None:
    """Print the commands that go on from the launch order: a family that is an order of this kernel, and the search."""
    if said := one_xcd(scorer.gpu):
        line(f"  {said}")
    words = shlex.join(["swizzle-sim", *sys.argv[1:]])
    first = next(shortlist(scorer.kernel, scorer.gpu), None)
    try_one = [f"{words} --swizzle {shlex.quote(first.name)}"] if first else []
    for command in (*try_one, words.replace(" score ", " optimize ", 1)):
        line(f"  next: {command}")


def _print_uncertainty(found: Uncertainty, name: str, replay: str) -> None:
    """Print the ranges of a candidate, and of its difference from the launch order."""
    spans = [(OF_CANDIDATE[key], span) for key, span in found.candidate.items()]
    spans += [(OF_DIFFERENCE[key], span) for key, span in found.difference.items()]
    rows = [_range_row(*figure, span) for figure, span in spans if span.value is not None]
    note = (
        f"simulated, {replay} replay; {len(found.effects)} constants, each alone at its ends and all together in "
        f"{found.draws} draws, {found.replays} replays; the last rows take the same constants for both orders"
    )
    table(f"{name}, over the plausible constants", ("", *RANGE_COLUMNS), rows, left=1, note=note)
    ahead, draws = found.ahead
    line(f"L2 hit rate above the launch order's in {ahead} of {draws} draws")


def _range_row(words: str, figure: Callable[[float], str], span: Span) -> list[str]:
    cells = ["-" if value is None else figure(value) for value in (span.value, span.low, span.high)]
    if span.moved_low is None or span.moved_high is None or span.value is None:
        return [words, *cells, "nothing", ""]
    far = max(span.moved_low, span.moved_high, key=lambda value: abs(value - (span.value or 0.0)))
    return [words, *cells, span.moved_by, figure(far)]


@dataclass(frozen=True)
class OnGpu:
    """All orders on one GPU: the launch order first."""

    scorer: Scorer
    attempts: list[Attempt]
    verdicts: list[Verdict]
    advice: Advice | None
    why_better: tuple[str, ...] = ()


def compare(candidates: Sequence[Swizzle], launches: Sequence[Launch], how: ReplayOptions, json: bool) -> bool:
    """Score every order on every GPU and print them; whether all are bijections everywhere."""
    orders = [Swizzle.parse("identity", name=LAUNCHED), *candidates]
    found: list[OnGpu] = []
    with Progress("scoring", "orders") as progress:
        for launch in launches:
            scorer, done = scorer_of(launch, how), len(found) * len(orders)

            def on_order(k: int, done: int = done) -> None:
                progress(done + k, len(launches) * len(orders))

            found.append(_on_gpu(scorer, orders, how, on_order))
    if json:
        output.print_json(_table_document(orders, found))
    else:
        _print_table(orders, found, how.verbose)
    return all(verdict.bijective for on in found for verdict in on.verdicts)


def _on_gpu(scorer: Scorer, orders: Sequence[Swizzle], how: ReplayOptions, on_order: Callable[[int], None]) -> OnGpu:
    attempts, verdicts = [], []
    for number, one in enumerate(orders):
        verdict = scorer.verify(one)
        score = scorer.baseline if number == 0 else None
        if number and verdict.bijective:
            score = scored_as_compiled(scorer, one, scorer.permutation(one), compile=how.compile).score
        verdicts.append(verdict)
        attempts.append(_attempt(number, one, verdict, score))
        on_order(number + 1)
    if how.replay != "timed" or len(orders) < 2:
        return OnGpu(scorer, attempts, verdicts, None)
    advice = advise_run(scorer, _ranking(scorer), attempts)
    return OnGpu(scorer, attempts, verdicts, advice, why_better(scorer, attempts, advice.order))


def _table_document(orders: Sequence[Swizzle], found: Sequence[OnGpu]) -> dict[str, Any]:
    def on_each(k: int) -> list[dict[str, Any]]:
        rows = [(on.scorer.gpu.name, on.verdicts[k], on.attempts[k].score) for on in found]
        return [{"gpu": g, "verdict": v, "score": score} for g, v, score in rows]

    return {
        "on": [{**output.scored_on(on.scorer), "advice": on.advice, "why_better": list(on.why_better)} for on in found],
        "orders": [{"swizzle": one.name, "source": one.source, "on": on_each(k)} for k, one in enumerate(orders)],
    }


def _print_table(orders: Sequence[Swizzle], found: Sequence[OnGpu], verbose: bool) -> None:
    several = len(found) > 1
    advised = [(on, on.advice) for on in found if on.advice]
    for on, advice in advised:
        if not several:
            output.print_advice(advice, on.why_better)
            continue
        line(f"{on.scorer.gpu.name}: {advice.what}", style="bold")
        for said in on.why_better[:1] if advice.verdict != "leave" else ():
            line(f"  {said}")
    title = output.title_of(found[0].scorer.kernel, *(on.scorer.gpu for on in found))
    columns = IN_SEVERAL if several else output.SCORE_COLUMNS if verbose else output.IN_BRIEF
    heads = [f"{on.scorer.gpu.name}\n{column}" if several else column for on in found for column in columns]
    first = [one.number for one in _ranking(found[0].scorer).order(found[0].attempts) if one.number]
    # the launch order, the others as `optimize` ranks them, and what has no score
    ranked = [0, *first, *(one.number for one in found[0].attempts if one.score is None)]
    cells = [
        [str(orders[k].name), *(cell for on in found for cell in output.score_cells(on.attempts[k].score, columns))]
        for k in ranked
    ]
    table(title, ["swizzle", *heads], cells, note=_note(found) if verbose else output.COUNTED[found[0].scorer.replay])
    for on in found:
        for one, verdict, attempt in zip(orders, on.verdicts, on.attempts, strict=True):
            if not verdict.bijective:
                _say(one, on.scorer, verdict, f", {on.scorer.gpu.name}")
            elif attempt.score and is_costly(attempt.score):
                line(f"{one.name} on {on.scorer.gpu.name}: {attempt.score.price}")
    for on, advice in advised:
        if not several:
            output.print_last(advice)
        elif output.console().is_terminal:
            line(f"{on.scorer.gpu.name}: {advice.what}", style="bold")


def _note(found: Sequence[OnGpu]) -> str:
    """What kind of numbers these are, and on which of the GPUs times rank orders."""
    replay = found[0].scorer.replay
    notes = {times_note(on.scorer.gpu.name, replay, on.scorer.work_class) for on in found}
    return "\n".join([output.SIMULATED[replay], *(sorted(notes) if replay == "timed" else ()), output.BELIEVE])
