"""Orders of workgroups together with settings of a kernel: the direction of its main loop, or the rows of its matrices.

Every setting is replayed in lockstep under the launch order and the first of the families' shortlist; the best are
replayed in time, beside the launch order as it is and the best order that leaves the kernel alone.

``loop`` tries the direction of the main loop and the cache policy of loads, as far as they can be written into the
kernel's source. ``layout`` tries the leading dimension of a kernel's matrices, rows padded by whole lines. A launch can
choose that where the kernel takes the stride as an argument: ``stride_bk`` of ``b_ptr``. Nothing in the source changes:
the tensor is allocated with longer rows, and the stride says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

from swizzle_sim.pricing.knobs import DEFAULT, Knobs, argument_names, emit_knobs, periods
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import InMemory, one_after_another, run
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu
from xcd_model.errors import RewriteError, SearchError, TraceError
from xcd_model.trace.padding import padded

OnReplay = Callable[[int, int], None]
# Lockstep replays of a search without a budget, and timed replays beside those of the two that leave the kernel alone.
EVALUATIONS, FINALISTS = {"loop": 120, "layout": 60}, {"loop": 6, "layout": 4}
LINES = (1, 2, 4)  # by which rows are made longer


def tune(
    what: str,
    kernel: Kernel,
    gpu: Gpu,
    *,
    objective: str = "l2_hit_rate",
    evaluations: int | None = None,
    seed: int = 0,
    on_replay: OnReplay = lambda done, budget: None,
) -> Found:
    """Search orders together with settings of ``loop`` or ``layout``.

    ``evaluations`` are lockstep replays, by default `EVALUATIONS`; the seed is the timed replay's.
    """
    by = {"lockstep": Scorer(kernel, gpu, replay="lockstep"), "timed": Scorer(kernel, gpu, seed=seed)}
    every, refused = loops_of(kernel, gpu, by["lockstep"].occupancy) if what == "loop" else paddings_of(kernel, gpu)
    if len(every) == 1:
        said = refused.values() if what == "loop" else (f"{name}: {why}" for name, why in refused.items())
        raise SearchError(f"--tune {what}: {'; '.join(said)}", code="tune")

    def scorer(setting: Knobs | Padding, replay: str) -> Scorer:
        if setting == every[0]:
            return by[replay]
        if isinstance(setting, Padding):
            return Scorer(setting.on(kernel), gpu, replay=replay, seed=seed)
        return by[replay].with_knobs(setting)

    search = _Search(every, scorer, OBJECTIVES[objective].cost)
    found = search.tried(evaluations or EVALUATIONS[what], on_replay)
    return Found(search.ranked(found, FINALISTS[what]), len(found), refused)


@dataclass(frozen=True)
class Setting:
    """One order with one setting, `Knobs` or a `Padding`, and its scores; ``timed`` of a finalist."""

    order: Candidate
    what: Any
    lockstep: Score
    timed: Score | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        scores = {"lockstep": self.lockstep.as_dict(), "timed": self.timed and self.timed.as_dict()}
        return {"swizzle": self.order.name, **self.what.as_dict(), **scores}


@dataclass(frozen=True)
class Found:
    """Finalists by the timed replay, best first, the launch order as it is among them; settings refused, and why.

    ``tried`` are the lockstep replays.
    """

    ranked: list[Setting]
    tried: int
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Search:
    """Settings, the one that leaves the kernel alone first, ``scorer(setting, replay)`` of each, and what is least."""

    every: Sequence[Any]
    scorer: Callable[[Any, str], Scorer]
    cost: Callable[[Score], float]

    def tried(self, evaluations: int, on_replay: OnReplay) -> list[Setting]:
        """Every setting under as many orders as the evaluations allow, in lockstep, best first."""
        launched = self.scorer(self.every[0], "lockstep")
        orders = [one for one, _ in islice(distinct_shortlist(launched), max(1, evaluations // len(self.every)) - 1)]
        place = {one.name: i for i, one in enumerate([LAUNCH_ORDER, *orders])}
        tried = self.every[: max(2, evaluations)]
        found: list[Setting] = []
        for what in tried:
            attempts = run(
                one_after_another(orders), Judge(self.scorer(what, "lockstep")), InMemory(),
                on_attempt=lambda one: on_replay(len(found) + 1 + one.number, len(place) * len(tried)),
            )  # fmt: skip
            for one in attempts:
                if one.score is not None:
                    order = Candidate(one.name, one.source, one.proposer)
                    found.append(Setting(order, what, _against(one.score, launched)))
        return sorted(found, key=lambda one: (self.cost(one.lockstep), self._weight(one), place[one.order.name]))

    def ranked(self, found: Sequence[Setting], finalists: int) -> list[Setting]:
        """The finalists in time, best first."""
        timed = self.scorer(self.every[0], "timed")
        ranked: list[Setting] = []
        for final in self._finalists(found, finalists):
            scorer = self.scorer(final.what, "timed")
            score = score_on(scorer, Judge(scorer).orders(final.order.source)[0])
            ranked.append(replace(final, timed=_against(score, timed)))
        return sorted(ranked, key=lambda one: (self.cost(one.timed or one.lockstep), self._weight(one)))

    def _weight(self, one: Setting) -> int:
        """What orders settings that are equal in the objective."""
        return one.what.more_items if isinstance(one.what, Padding) else self.every.index(one.what)

    def _finalists(self, found: Sequence[Setting], most: int) -> Iterator[Setting]:
        """The best order of each of the best settings, and of those that leave the kernel alone best and launched."""
        plain = [one for one in found if one.what == self.every[0]]
        best: dict[Any, Setting] = {}
        for one in found:
            best.setdefault(one.what, one)
        yield from [one for what, one in best.items() if what != self.every[0]][:most]
        yield plain[0]
        if plain[0].order.name != LAUNCH_ORDER.name:
            yield next(one for one in plain if one.order.name == LAUNCH_ORDER.name)


def _against(score: Score, launched: Scorer) -> Score:
    """Score whose speedup is over the launch order of the kernel as it is."""
    return replace(score, speedup=launched.baseline.time_us / score.time_us)


def loops_of(kernel: Kernel, gpu: Gpu, workgroups_per_cu: int) -> tuple[list[Knobs], dict[str, str]]:
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


@dataclass(frozen=True)
class Padding:
    """Rows of one tensor made longer; of none by default.

    ``pointer`` is the kernel's parameter, ``stride`` the argument that is the leading dimension: ``items`` as launched,
    to which ``more_items`` are added.
    """

    tensor: str = ""
    pointer: str = ""
    stride: str = ""
    items: int = 0
    more_items: int = 0
    item_bytes: int = 1

    def __str__(self) -> str:
        return f"{self.tensor} + {self.more_items * self.item_bytes} B a row" if self.tensor else "as launched"

    @property
    def instruction(self) -> str:
        """What the launch has to do."""
        if not self.tensor:
            return "leave the layout as it is"
        wide = self.items + self.more_items
        return (
            f"allocate {self.pointer} with rows of {wide} items instead of {self.items}, and pass {self.stride}={wide}"
        )

    def on(self, kernel: Kernel) -> Kernel:
        """The kernel with trace and launch so padded."""
        if not self.tensor:
            return kernel
        far, more = self.items * self.item_bytes, self.more_items * self.item_bytes

        def trace(line_bytes: int) -> Any:
            return padded(kernel.build_trace(line_bytes), self.tensor, pitch_bytes=far, more_bytes=more)

        return replace(kernel, build_trace=trace, make_launch=lambda: self._launch(kernel.launch))

    def _launch(self, launch: Launch | None) -> Launch:
        assert launch
        wide, arguments = self.items + self.more_items, dict(launch.arguments)
        arguments[self.pointer] = replace(launch.arrays[self.pointer], strides=(wide, 1))
        return replace(launch, arguments={**arguments, self.stride: wide})

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"padding": {**asdict(self), "instruction": self.instruction}}


def paddings_of(kernel: Kernel, gpu: Gpu) -> tuple[list[Padding], dict[str, str]]:
    """Paddings that the launch can choose, none first, and by tensor why it cannot choose others."""
    if kernel.launch is None:
        raise SearchError(f"--tune layout: {kernel.name} has no Triton launch whose strides could change", code="tune")
    line_bytes = gpu.l2.line_bytes
    trace = kernel.build_trace(line_bytes)
    found, refused = [Padding()], {}
    for tensor, pointer in argument_names(trace, kernel.launch).items():
        array = kernel.launch.arrays[pointer]
        stem, (*_, far, near) = pointer.removesuffix("_ptr"), (0, *array.item_strides)
        named = [
            name
            for name, value in kernel.launch.arguments.items()
            if name.startswith(f"stride_{stem}") and value == far and name not in kernel.launch.arrays
        ]
        if len(array.shape) != 2 or near != 1:
            refused[tensor] = "no matrix stored row by row"
        elif len(named) != 1:
            refused[tensor] = (
                f"no argument stride_{stem}... is its leading dimension {far}, so the launch cannot choose it"
            )
        elif far * array.item_bytes % line_bytes:
            refused[tensor] = f"its rows of {far * array.item_bytes} B are no whole lines of {line_bytes} B"
        else:
            of_tensor = [
                Padding(tensor, pointer, named[0], far, n * line_bytes // array.item_bytes, array.item_bytes)
                for n in LINES
            ]
            try:
                of_tensor[0].on(kernel).build_trace(line_bytes)
                found += of_tensor
            except TraceError as error:
                refused[tensor] = str(error)
    return found, refused
