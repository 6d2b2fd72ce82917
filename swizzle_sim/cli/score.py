"""``score``: hit rate, traffic and time of one swizzle, next to those of the launch order; of several, a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import (
    Json,
    KernelName,
    Launch,
    ReplayOptions,
    Sizes,
    grouped,
    known_families,
    known_gpus,
    offer,
)
from swizzle_sim.cli.score_more import OfOne

if TYPE_CHECKING:
    import numpy as np

    from swizzle_sim.language import Swizzle, Verdict
    from swizzle_sim.pricing.access_patterns import Uncoalesced
    from swizzle_sim.pricing.scores import Score
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.pricing.waiting import Waited
    from swizzle_sim.search.advice import Advice
    from swizzle_sim.workload.price import RemapPrice
    from xcd_model import Traffic

Swizzles = Annotated[
    list[str] | None,
    typer.Option(
        "--swizzle",
        metavar="FAMILY|TEXT|FILE",
        help="A family such as 'group_m(size=8)', a text, a file, or - for stdin; repeatable.",
        autocompletion=offer(known_families),
    ),
]
Gpus = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu",
        metavar="GPU",
        help="GPU by name, or a TOML file; repeatable; by default mi300x.",
        autocompletion=offer(known_gpus),
    ),
]
LAUNCHED = "launch order"
NOT_REWRITTEN = "the launch order, which needs no rewriting"


@dataclass(frozen=True)
class Launches:
    """A kernel at sizes, on one GPU or several."""

    kernel: KernelName
    sizes: Sizes = None
    gpu: Gpus = None

    @property
    def each(self) -> list[Launch]:
        """The launch on each GPU."""
        return [Launch(self.kernel, self.sizes, one) for one in dict.fromkeys(self.gpu or ["mi300x"])]


@grouped
def score(
    launch: Launches,
    swizzle: Swizzles = None,
    how: ReplayOptions = ReplayOptions(),
    more: OfOne = OfOne(),
    json: Json = False,
) -> None:
    """Score swizzles next to the launch order, on one or several GPUs; exit 1, and no score, if one is no bijection."""
    from swizzle_sim.cli.arguments import load_swizzle
    from swizzle_sim.cli.output import print_json, print_verdict
    from swizzle_sim.language import Swizzle
    from swizzle_sim.pricing.scoring import Scorer

    words, launches = list(dict.fromkeys(swizzle or ())), launch.each
    _check(more, how.replay, one=len(launches) == 1 >= len(words))
    candidates = [_not_launched(load_swizzle(word)) for word in words] or [Swizzle.parse("identity", name=LAUNCHED)]
    if len(candidates) > 1 or len(launches) > 1:
        from swizzle_sim.cli.score_table import compare

        compare(candidates if words else [], launches, how, scored_as_compiled, json)
        return
    scorer = Scorer(*launches[0].load(how.compile), replay=how.replay, seed=how.seed, jitter_ns=how.jitter)
    verdict = scorer.verify(candidates[0])
    if verdict.bijective:
        _score_one(scorer, candidates[0], verdict, how, more, json)
        return
    if json:
        print_json(_document(scorer, candidates[0], verdict))
    else:
        print_verdict(candidates[0], str(scorer.kernel.grid), scorer.gpu.xcds, verdict)
    raise typer.Exit(1)


def _check(more: OfOne, replay: str, *, one: bool) -> None:
    """Refuse what cannot be told, or not of more than one order on one GPU.

    Raises
    ------
    ReplayError
    """
    from xcd_model.errors import ReplayError

    if more.draws is not None and not more.uncertainty:
        raise ReplayError("--draws belongs to --uncertainty: add it")
    if more.perfetto is not None and replay == "lockstep":
        raise ReplayError("--perfetto shows times, and lockstep has none: use --replay timed")
    given = {"--seeds": more.seeds > 1, "--uncertainty": more.uncertainty, "--plots": more.plots is not None}
    given["--lengths"] = more.lengths > 1
    given["--perfetto"] = more.perfetto is not None
    if not one and (typed := [name for name, is_given in given.items() if is_given]):
        raise ReplayError(f"{', '.join(typed)}: of one swizzle on one GPU; name one of each")


def _not_launched(candidate: Swizzle) -> Swizzle:
    """Candidate by another name than that of the launch order, which a file may have."""
    return replace(candidate, name=f"{LAUNCHED} (file)") if candidate.name == LAUNCHED else candidate


def _score_one(
    scorer: Scorer, candidate: Swizzle, verdict: Verdict, how: ReplayOptions, more: OfOne, json: bool
) -> None:
    """Score one bijection, and print it."""
    import numpy as np

    from swizzle_sim.cli.output import cores, print_advice, print_json, print_price, print_verdict
    from swizzle_sim.cli.score_more import (
        of_lengths,
        print_lengths,
        print_next,
        print_spread,
        print_uncertainty,
        replayed_ranges,
        write_perfetto,
        write_plots,
    )
    from swizzle_sim.pricing.scoring import spread
    from xcd_model.replay.traffic import traffic_as_dict

    order = scorer.permutation(candidate)
    own, found, traffic, not_priced = scored_as_compiled(scorer, candidate, order, compile=how.compile)
    over_seeds = spread(scorer, candidate, more.seeds) if more.seeds > 1 else None
    over_lengths = of_lengths(scorer, candidate, more.lengths) if more.lengths > 1 else None
    name, files = candidate.name or "candidate", []
    launched = name == LAUNCHED
    advice = _advice(scorer, candidate, verdict, found) if how.replay == "timed" and not launched else None
    if more.plots is not None:
        before = scorer.traffic(np.arange(order.size), threads=cores())
        files = write_plots(more.plots, name, (before, traffic), (scorer.baseline, found))
    if more.perfetto is not None:
        files.append(write_perfetto(more.perfetto, own, order, name))
    ranges = replayed_ranges(scorer, order, more.draws) if more.uncertainty else None
    if json:
        document = _document(scorer, candidate, verdict) | {"spread": over_seeds and over_seeds.as_dict()}
        document |= {"over_lengths": over_lengths and over_lengths.as_dict()}
        document |= {"assigned_bound_l2_hit_rate": scorer.assigned_bound(order), "traffic": traffic_as_dict(traffic)}
        document |= {"baseline": scorer.baseline.as_dict(), "score": found.as_dict()}
        document |= _of_kernel(scorer, _waited(own, order))
        print_json({**document, "advice": advice and advice.as_dict(), "uncertainty": ranges and ranges.as_dict()})
        return
    if advice:
        print_advice(advice)
    _print_scores(scorer, candidate, traffic, found)
    if not launched:
        print_price(scorer, found.price, not_priced)
    _print_constants(scorer, _waited(own, order))
    if over_seeds:
        print_spread(over_seeds)
    if over_lengths:
        print_lengths(over_lengths)
    if ranges:
        print_uncertainty(ranges, name, how.replay)
    for file in files:
        print(file)
    if launched:
        print_next(scorer)
    else:
        print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)


def scored_as_compiled(
    scorer: Scorer, candidate: Swizzle, order: np.ndarray, *, compile: bool
) -> tuple[Scorer, Score, Traffic, str]:
    """Scorer of a candidate's rewritten kernel, score and traffic with it, and why its price is not known."""
    from swizzle_sim.cli.output import cores

    if candidate.program.keeps_launch_order:  # replayed once, and not again to be compared with itself
        return scorer, *scorer.score_launch_order(threads=cores()), NOT_REWRITTEN
    own, price, not_priced = _priced(scorer, candidate) if compile else (scorer, None, "--no-compile")
    traffic = own.traffic(order, threads=cores())
    found = own.score_traffic(traffic, baseline_us=scorer.baseline.time_us)
    return own, replace(found, price=price), traffic, not_priced


def _advice(scorer: Scorer, candidate: Swizzle, verdict: Verdict, found: Score) -> Advice:
    """Advice on the candidate, by what ranks orders of the GPU."""
    from swizzle_sim.search.advice import advise
    from swizzle_sim.search.history import Attempt
    from swizzle_sim.search.ranking import Ranking, default_objectives

    name = candidate.name or "the candidate"
    one = Attempt(
        number=1, name=name, source=candidate.source, proposer="given", verdict=verdict.as_dict(), score=found
    )
    ranking = Ranking(default_objectives(scorer.gpu.name, scorer.replay), gpu=scorer.gpu.name)
    return advise(scorer, ranking, scorer.baseline, one)


def _priced(scorer: Scorer, candidate: Swizzle) -> tuple[Scorer, RemapPrice | None, str]:
    """Scorer of the kernel as rewritten, the price of the swizzle, and why there is none."""
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.rewrite.price import as_compiled
    from xcd_model.errors import SwizzleSimError

    try:
        with Progress("compiling the rewritten kernel"):
            own, price = as_compiled(scorer, candidate)
    except SwizzleSimError as error:
        return scorer, None, str(error).splitlines()[0]
    return own, price, "" if price else NOT_REWRITTEN


def _waited(scorer: Scorer, order: np.ndarray) -> Waited | None:
    if scorer.kernel.waits is None:
        return None
    from swizzle_sim.pricing.waiting import waited

    return waited(scorer, order)


def _of_kernel(scorer: Scorer, of_waiting: Waited | None) -> dict[str, Any]:
    """JSON of what a user's kernel holds already, and of what its workgroups wait for."""
    from swizzle_sim.cli.score_more import remap_and_score_without

    inside = remap_and_score_without(scorer) if scorer.kernel.file else None
    found = {"own_remap": inside[0].as_dict(inside[1])} if inside else {}
    return {**found, "waited": of_waiting.as_dict()} if of_waiting else found


def _document(scorer: Scorer, candidate: Swizzle, verdict: Verdict) -> dict[str, Any]:
    """JSON of a candidate without a score."""
    from swizzle_sim.cli.output import scored_on

    return {
        **scored_on(scorer),
        "swizzle": candidate.name,
        "source": candidate.source,
        "verdict": verdict.as_dict(),
        "fitted_constants": len(_fitted(scorer)),
        "work": scorer.work.as_dict(),
        "uncoalesced": [one.as_dict() for one in _uncoalesced(scorer)],
        "advice": None,
        "baseline": None,
        "score": None,
        "spread": None,
        "uncertainty": None,
        "assigned_bound_l2_hit_rate": None,
        "traffic": None,
    }


def _uncoalesced(scorer: Scorer) -> list[Uncoalesced]:
    """What no order of the workgroups mends; empty for most kernels."""
    if not scorer.trace.uncoalesced.any():
        return []
    from swizzle_sim.pricing.access_patterns import uncoalesced

    return uncoalesced(scorer.trace)


def _print_scores(scorer: Scorer, candidate: Swizzle, traffic: Traffic, found: Score) -> None:
    from swizzle_sim.cli.output import (
        console,
        print_balance,
        print_levels,
        score_cells,
        score_columns,
        simulated,
        sizes_text,
        table,
    )

    name = candidate.name or "candidate"
    scores = {LAUNCHED: scorer.baseline, name: found}
    rows = [(one, *score_cells(score)) for one, score in scores.items()]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    gpu = scorer.gpu.name
    table(title, ("swizzle", *score_columns(gpu, scorer.replay)), rows, note=simulated(gpu, scorer.replay))
    for far in _uncoalesced(scorer):
        console(wide=True).print(str(far), markup=False)
    print_balance(scorer.work, scores)
    note = f"launch {traffic.launch}, {'steady' if traffic.steady else 'not steady'}" if traffic.launch > 1 else ""
    print_levels(traffic, f"{name}, by tensor", note)


def _fitted(scorer: Scorer) -> list[str]:
    """Names of the fitted constants that the scores depend on."""
    from swizzle_sim.pricing.fitted import fitted_constants

    return list(fitted_constants(scorer.gpu, scorer.kernel, scorer.replay, scorer.occupancy))


def _print_constants(scorer: Scorer, of_waiting: Waited | None) -> None:
    """What the figures hold of the kernel's own, leave out, and depend on that is fitted, or is assumed here."""
    from swizzle_sim.cli.output import console

    if scorer.kernel.file:
        from swizzle_sim.cli.score_more import print_own_remap

        print_own_remap(scorer)
    names, say = _fitted(scorer), console(wide=True)
    if of_waiting:
        say.print(str(of_waiting), markup=False)
    listed = f": {', '.join(names)} (rows: docs/gpus.md)" if names else ""
    say.print(f"{len(names)} constant{'' if len(names) == 1 else 's'} fitted to measured rows{listed}", markup=False)
    if pitches := scorer.trace.power_of_two_pitches:
        from swizzle_sim.pricing.access_patterns import pitch_note

        if note := pitch_note(pitches, scorer.gpu):
            say.print(note, markup=False)
