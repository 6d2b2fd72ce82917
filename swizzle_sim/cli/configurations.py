"""``optimize --tune configs``: all configurations of a kernel's autotuner, each with swizzles, in one table."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import capture_progress, counted, parse_sizes
from swizzle_sim.cli.output import line, pct, print_json, simulated, table, title_of
from swizzle_sim.search.jobs import FILE, PointStore
from xcd_model.errors import SearchError

if TYPE_CHECKING:
    from swizzle_sim.cli.arguments import Launch
    from swizzle_sim.cli.proposer_options import RunOptions
    from swizzle_sim.search.jobs import PointStore
    from swizzle_sim.search.strategies.configurations import Tuned
    from xcd_model import Gpu

WORTH_SAYING_S = 20.0  # of an estimate
MOST_WORDS = 160  # characters of a refusal


def tune_configurations(
    launch: Launch, run: RunOptions, replays: int | None, max_minutes: float | None, json: bool
) -> None:
    """Try every configuration with swizzles, and print the pairs, fastest first."""
    from xcd_model import gpu as load_gpu

    began, device = time.monotonic(), load_gpu(launch.gpu)
    _check(launch.kernel, run)
    stopped = False
    go_on_with(run.resume or run.out, FILE)
    with PointStore(run.resume or run.out, resume=run.resume is not None) as store:
        every: list[Tuned] = []
        try:
            _gather(every, launch, device, run)
            end_s = began + 60 * max_minutes if max_minutes is not None else float("inf")
            _tune(every, store, replays, run.threads or os.cpu_count() or 1, end_s)
        except KeyboardInterrupt:
            stopped = True
    if not any(one.scores for one in every):
        _nothing(launch.kernel, every, stopped)
    ranked = sorted(every, key=lambda one: (one.time_us, one.configuration.place))
    if json:
        _print_json(launch.kernel, ranked, device, run)
    else:
        _print(launch, ranked, device)
    if stopped:
        raise KeyboardInterrupt


def _check(kernel: str, run: RunOptions) -> None:
    from swizzle_sim.workload.kernels import DECLARING, file_of, is_user_kernel

    if not is_user_kernel(kernel) or not file_of(kernel).endswith(DECLARING):
        raise SearchError(f"--tune configs: {kernel} has no autotuner: give a file with a declaration", code="tune")
    if run.objective not in (None, "time"):
        raise SearchError("--tune configs ranks by time: other tiles make other requests", code="objective")


def _gather(every: list[Tuned], launch: Launch, gpu: Gpu, run: RunOptions) -> None:
    """Compile and capture all configurations."""
    from swizzle_sim.capture.configurations import configurations
    from swizzle_sim.capture.own_remap import own_remap
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.strategies.configurations import Tuned

    with capture_progress() as progress:
        for one in configurations(launch.kernel, parse_sizes(launch.sizes), gpu, counted(progress)):
            scorer = (
                Scorer(one.kernel, gpu, replay=run.replay or "timed", seed=run.seed, jitter_ns=run.jitter)
                if one.kernel
                else None
            )
            every.append(Tuned(one, scorer))
    inside = next((own_remap(one.scorer.kernel, gpu.xcds) for one in every if one.scorer), None)
    if inside:
        print(inside.advice, file=sys.stderr, flush=True)


def _tune(every: Sequence[Tuned], store: PointStore, replays: int | None, threads: int, end_s: float) -> None:
    from swizzle_sim.search.strategies.configurations import tune

    began, best = time.monotonic(), float("inf")

    def on_replay(done: int, budget: int, one: Tuned) -> None:
        nonlocal best, began
        best = min(best, one.time_us)
        if done == threads:  # the first compile the replay, or load it
            began = time.monotonic()
        if done == 2 * threads:
            left = (time.monotonic() - began) / threads * (budget - done)
            if left > WORTH_SAYING_S:
                print(f"{budget} replays at most: about {max(1, round(left / 60))} min", file=sys.stderr, flush=True)
        progress(done, budget, note=f"best {best:.1f} µs")

    with Progress("tuning configurations", "replays") as progress:
        tune(every, store, replays=replays, threads=threads, end_s=end_s, on_replay=on_replay)


def _nothing(kernel: str, every: Sequence[Tuned], stopped: bool) -> None:
    """Say why there is no table."""
    if stopped:
        raise KeyboardInterrupt
    refused = next((one.configuration.refused for one in every if one.configuration.refused), "there was no time")
    raise SearchError(f"--tune configs: no configuration of {kernel} was scored: {refused}", code="tune")


def _autotuned(ranked: Sequence[Tuned]) -> Tuned:
    """What an autotuner would choose, if the times were right: the fastest in launch order."""
    return min((one for one in ranked if one.launch_order), key=lambda one: one.scores["identity"].time_us)


def _print_json(kernel: str, ranked: Sequence[Tuned], gpu: Gpu, run: RunOptions) -> None:
    first = ranked[0].scorer
    assert first
    print_json(
        {
            "kernel": first.kernel.name,
            "kernel_file": kernel,
            "gpu": gpu.name,
            "problem": dict(first.kernel.problem),
            "replay": first.replay,
            "seed": run.seed,
            "kind": "simulated",
            "fastest_in_launch_order": _autotuned(ranked).configuration.place,
            "configurations": [one.as_dict() for one in ranked],
        }
    )


def _print(launch: Launch, ranked: Sequence[Tuned], gpu: Gpu) -> None:
    first, chosen = ranked[0].scorer, _autotuned(ranked)
    assert first and chosen.launch_order and ranked[0].best
    names = _differing([one.configuration.chosen for one in ranked])
    columns = ["", *names, "best swizzle", "time [µs]", "launch order [µs]", "L2 hit [%]", "VGPRs", "WG/CU", "tried"]
    rows = []
    for one in ranked:
        if not (one.scorer and one.best and one.launch_order):
            continue
        swizzle, score = one.best
        shown = [str(one.configuration.chosen.get(name, "")) for name in names]
        figures = [f"{score.time_us:.1f}", f"{one.launch_order.time_us:.1f}", pct(score.l2_hit_rate)]
        figures += [str(one.scorer.kernel.resources.vgprs), str(one.scorer.occupancy), str(len(one.scores))]
        rows.append([f"@{one.configuration.place}", *shown, _words(swizzle), *figures])
    title = f"{title_of(first.kernel, gpu)}, configuration x swizzle"
    table(title, columns, rows, left=2 + len(names), note=simulated(gpu.name, first.replay))
    for said in _remarks(launch, ranked, chosen):
        line(said)


def _words(swizzle: str) -> str:
    return "launch order" if swizzle == "identity" else swizzle


def _differing(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    """Constants and options that are not the same in all configurations."""
    names = dict.fromkeys(name for one in chosen for name in one)
    return [name for name in names if len({str(one.get(name)) for one in chosen if one}) > 1]


def _remarks(launch: Launch, ranked: Sequence[Tuned], chosen: Tuned) -> list[str]:
    """The gain, what was not scored, and the command that goes on."""
    best, alone = ranked[0].best, chosen.launch_order
    assert best and alone
    place, (swizzle, score) = ranked[0].configuration.place, best
    lines = [
        f"fastest in launch order: @{chosen.configuration.place}, {alone.time_us:.1f} µs; fastest of all: @{place} "
        f"with {_words(swizzle)}, {score.time_us:.1f} µs, a predicted speedup of {alone.time_us / score.time_us:.3f}"
    ]
    refused = [one.configuration for one in ranked if one.configuration.refused]
    lines += [f"@{one.place} is not scored: {' '.join(one.refused.split())[:MOST_WORDS]}" for one in refused]
    waiting = [f"@{one.configuration.place}" for one in ranked if one.scorer and not one.scores]
    lines += [f"no time was left for {', '.join(waiting)}"] if waiting else []
    named = launch.kernel if ":" in launch.kernel.rpartition("/")[2] else f"{launch.kernel}:"
    words = ["swizzle-sim", "optimize", f"{named}@{place}", *(launch.sizes or ()), "--gpu", launch.gpu]
    return [*lines, f"next: {shlex.join(words)}"]
