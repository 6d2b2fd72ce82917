"""`tune_loop`: orders together with the direction of the main loop and the cache policy of loads.

Only settings that can be written into the kernel's source are tried.
"""

from __future__ import annotations

import itertools
from typing import Any

from swizzle_sim.pricing.knobs import DEFAULT, Knobs, argument_names, emit_knobs, periods
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.strategies.settings import Found, OnReplay, Settings
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import RewriteError, SearchError

EVALUATIONS = 120  # lockstep replays of a search without a budget
FINALISTS = 6  # timed replays beside those of the two that leave the knobs alone


def settings_of(kernel: Kernel, gpu: Gpu, workgroups_per_cu: int) -> tuple[list[Knobs], dict[str, str]]:
    """Settings that can be written into a kernel's source, the default first, and why others cannot."""
    if kernel.launch is None:
        raise SearchError(f"--tune loop: {kernel.name} has no Triton source to change", code="tune")
    trace, refused = kernel.build_trace(gpu.l2.line_bytes), {}
    given: dict[str, Any] = {
        "function": kernel.launch.function,
        "arguments": argument_names(trace, kernel.launch),
        "axes": len(kernel.launch.grid),
        "arch": gpu.arch,
        "path": kernel.launch.path,
    }

    def can(knobs: Knobs, name: str) -> bool:
        try:
            emit_knobs(kernel.triton_source, knobs=knobs, **given)
        except RewriteError as error:
            refused[name] = str(error)
            return False
        return True

    walks: tuple[int, ...] = ()
    if kernel.programs is not None:
        refused["direction"] = f"{kernel.name} is persistent: its programs walk several loops"
    elif trace.trip.size == 0:
        refused["direction"] = "the trace does not say which instructions are trips of a loop"
    elif can(Knobs(period=1), "direction"):
        walks = periods(gpu, workgroups_per_cu, kernel.grid.num_pids)
    read = {int(tensor) for tensor in trace.tensor[~trace.is_write]}
    streams = [name for i, name in enumerate(t.name for t in trace.tensors) if i in read]
    streams = [name for name in streams if can(Knobs(streamed=(name,)), name)]
    policies = [(), *((name,) for name in streams)]
    settings = [Knobs(period, policy) for period, policy in itertools.product((0, *walks), policies)]
    return [DEFAULT, *(one for one in settings if one != DEFAULT)], refused


def tune_loop(
    kernel: Kernel,
    gpu: Gpu,
    *,
    objective: str = "l2_hit_rate",
    evaluations: int = EVALUATIONS,
    seed: int = 0,
    on_replay: OnReplay = lambda done, budget: None,
) -> Found:
    """Search orders together with the knobs; ``evaluations`` are lockstep replays, the seed is the timed replay's."""
    by = {"lockstep": Scorer(kernel, gpu, replay="lockstep"), "timed": Scorer(kernel, gpu, seed=seed)}
    every, refused = settings_of(kernel, gpu, by["lockstep"].occupancy)
    if len(every) == 1:
        raise SearchError(f"--tune loop: {'; '.join(refused.values())}", code="tune")

    def scorer(knobs: Knobs, replay: str) -> Scorer:
        return by[replay] if knobs is DEFAULT else by[replay].with_knobs(knobs)

    settings = Settings(every=every, scorer=scorer, weight=every.index, finalists=FINALISTS, refused=refused)
    return settings.search(objective, evaluations, on_replay)
