"""Orders of workgroups together with the leading dimension of a kernel's matrices: rows padded by whole lines.

A launch can choose that where the kernel takes the stride as an argument: ``stride_bk`` of ``b_ptr``. Every padding is
replayed in lockstep under the launch order and the first of the families' shortlist; the best are replayed in time,
beside the launch order as it is and the best order without padding. Nothing in the source changes: the tensor is
allocated with longer rows, and the stride says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from swizzle_sim.pricing.knobs import argument_names
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.configurations import distinct_orders
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu
from xcd_model.errors import SearchError, TraceError
from xcd_model.trace.padding import padded

EVALUATIONS = 60  # lockstep replays of a search without a budget
FINALISTS = 4  # timed replays beside those of the two without padding
LINES = (1, 2, 4)  # by which rows are made longer
OnReplay = Callable[[int, int], None]


@dataclass(frozen=True)
class Padding:
    """Rows of one tensor made longer; of none by default.

    Parameters
    ----------
    tensor, pointer, stride : str
        Its name in the trace, the kernel's parameter, and the argument that is its leading dimension.
    items, more_items : int
        Leading dimension as launched, and what is added to it.
    item_bytes : int [bytes]
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
        return {**asdict(self), "instruction": self.instruction}


@dataclass(frozen=True)
class Laid:
    """One order with one padding, and its scores; ``timed`` of a finalist."""

    order: Candidate
    padding: Padding
    lockstep: Score
    timed: Score | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        scores = {"lockstep": self.lockstep.as_dict(), "timed": self.timed and self.timed.as_dict()}
        return {"swizzle": self.order.name, "padding": self.padding.as_dict(), **scores}


def paddings_of(kernel: Kernel, gpu: Gpu) -> tuple[list[Padding], dict[str, str]]:
    """Paddings that the launch can choose, none first, and by tensor why it cannot choose others.

    Raises
    ------
    SearchError
        With code ``tune`` if the kernel has no launch.
    """
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


def tune_layout(
    kernel: Kernel,
    gpu: Gpu,
    *,
    objective: str = "l2_hit_rate",
    evaluations: int = EVALUATIONS,
    seed: int = 0,
    on_replay: OnReplay = lambda done, budget: None,
) -> tuple[list[Laid], int, dict[str, str]]:
    """Search orders together with paddings.

    Returns
    -------
    ranked : list of Laid
        Finalists by the timed replay, best first; the launch order as it is among them.
    tried : int
        Lockstep replays.
    refused : dict of str to str

    Raises
    ------
    SearchError
        If the launch can choose no leading dimension.
    """
    paddings, refused = paddings_of(kernel, gpu)
    if len(paddings) == 1:
        said = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise SearchError(f"--tune layout: {said}", code="tune")
    launched = Scorer(kernel, gpu, replay="lockstep")
    orders = list(itertools.islice(distinct_orders(launched), max(1, evaluations // len(paddings))))
    found: list[tuple[Laid, np.ndarray]] = []
    for padding in paddings[: max(2, evaluations)]:
        scorer = Scorer(padding.on(kernel), gpu, replay="lockstep")
        for order, permutation in orders:
            scored = scorer.score_order(permutation, baseline_us=launched.baseline.time_us)
            found.append((Laid(order, padding, scored), permutation))
            on_replay(len(found), len(orders) * len(paddings))
    cost, baseline_us = OBJECTIVES[objective].cost, Scorer(kernel, gpu, seed=seed).baseline.time_us
    found.sort(key=lambda one: (cost(one[0].lockstep), one[0].padding.more_items))
    ranked = []
    for one, permutation in _finalists(found):
        scorer = Scorer(one.padding.on(kernel), gpu, seed=seed)
        ranked.append(replace(one, timed=scorer.score_order(permutation, baseline_us=baseline_us)))
    ranked.sort(
        key=lambda one: (cost(one.timed or one.lockstep), one.padding.more_items)
    )  # of equals the shortest rows
    return ranked, len(found), refused


def _finalists(found: Sequence[tuple[Laid, np.ndarray]]) -> Iterator[tuple[Laid, np.ndarray]]:
    """The best order of the best paddings, and without padding the best and the launch order."""
    plain = [one for one in found if not one[0].padding.tensor]
    best: dict[Padding, tuple[Laid, np.ndarray]] = {}
    for one in found:
        best.setdefault(one[0].padding, one)
    yield from [one for padding, one in best.items() if padding.tensor][:FINALISTS]
    yield plain[0]
    if plain[0][0].order.name != "identity":
        yield next(one for one in plain if one[0].order.name == "identity")
