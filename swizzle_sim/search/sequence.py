"""`replay_in_order`: launches of a recording one after the other, each with what those before it left in the caches.

    tensors lie where they lay in memory -> one Infinity Cache (of an NVIDIA GPU the L2) for all launches, never emptied

What ran between them, such as a library's kernels, is not in a recording: it neither fills these caches nor empties
them. Writes pass the Infinity Cache by, so of a producer's output a consumer finds what others have read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.recorder import PAGE_BYTES
from swizzle_sim.capture.recording import launched_in_order
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.replaying import Replayer
from swizzle_sim.search.fleet import Launched, loaded
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Plan, Tensor, Trace
from xcd_model.cache.packed import aligned_words, words_of
from xcd_model.errors import CaptureError, SearchError
from xcd_model.replay.plan import Caches, l2_words

# Replays of a launch: with empty caches, after those before it, and so too with each in the order that ranks first.
KINDS = ("alone", "after", "ordered")
FIGURES = ("mall_hit_rate", "l2_hit_rate", "hbm_read_bytes")


class _Placed(Replayer[Kernel]):
    """Replays a launch whose caches others share: set by set."""

    symmetry = False

    def figures(self, order: np.ndarray, caches: Caches | None = None) -> dict[str, float]:
        """Figures of one launch, by default with empty caches."""
        traffic = self.traffic_after(order, empty_caches(self.plan) if caches is None else caches)
        found = {name: float(getattr(traffic, name)) for name in FIGURES}
        kept = {name: value for name, value in found.items() if not math.isnan(value)}  # without an Infinity Cache
        return {"time_us": self.time(traffic).total_us, **kept}


def empty_caches(plan: Plan) -> Caches:
    """Caches for launches of any tensors."""
    machine = plan.machine
    l2 = aligned_words(machine.xcds * l2_words(machine)).reshape(machine.xcds, -1)
    return Caches(plan.gpu, l2, aligned_words(words_of(machine.mall, machine.mall_ways)), frozenset())


def replay_in_order(
    file: Path,
    launched: Sequence[Launched],
    rows: Sequence[Mapping[str, Any]],
    points: Mapping[str, tuple[Mapping[str, Any], Sequence[Launched]]],
    most: int,
    on_step: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Figures by `KINDS` of the first launches that were judged, by the rows and points of their fleet on one GPU."""
    keys = {id(one): key for key, (_, group) in points.items() for one in group}
    about = {row["key"]: row for row in rows if not row["error"]}
    known = {i: keys[id(one)] for i, one in enumerate(launched) if keys.get(id(one)) in about}
    order = [(place, at) for place, at in launched_in_order(file) if place in known][:most]
    if not order:
        raise SearchError(f"{file}: none of its launches was judged, so there is no sequence", code="fleet")
    gpu = Gpu.from_dict(next(point for point, _ in points.values())["gpu"])
    kernels = {place: loaded(points[known[place]][0], gpu) for place in {place for place, _ in order}}
    lines = placed([(kernels[place].build_trace(gpu.l2.line_bytes), at) for place, at in order])
    alone: dict[int, dict[str, float]] = {}
    shared: list[Caches] = []  # of the launches as they were made, and of those in other orders
    steps: list[dict[str, Any]] = []
    for (place, _), at in zip(order, lines, strict=True):
        kernel, row = kernels[place], about[known[place]]
        one = _Placed(kernel, gpu, replay=points[known[place]][0]["replay"])
        vars(one)["trace"] = moved(one.trace, at)
        shared = shared or [empty_caches(one.plan), empty_caches(one.plan)]
        first = as_launched = np.arange(kernel.grid.num_pids)
        if row["verdict"] in ("use", "measure"):
            first = Swizzle.parse(row["source"]).permutation(kernel.grid, gpu.xcds, kernel.problem)
        alone[place] = alone.get(place) or one.figures(as_launched)
        found = (alone[place], one.figures(as_launched, shared[0]), one.figures(first, shared[1]))
        steps.append({"launch": row["launch"], **dict(zip(KINDS, found, strict=True))})
        on_step(len(steps), len(order))
    return steps


def moved(trace: Trace, lines: Mapping[str, int]) -> Trace:
    """Trace whose tensors begin at other lines; those that overlap there, as views do, are one."""
    found: list[Tensor] = []
    place = np.zeros(len(trace.tensors), np.int32)
    shift = np.array([lines[one.name] - one.base_line for one in trace.tensors])
    for i in np.argsort([lines[one.name] for one in trace.tensors], kind="stable"):
        one = replace(trace.tensors[i], base_line=lines[trace.tensors[i].name])
        if found and (inside := found[-1].base_line + found[-1].n_lines - one.base_line) > 0:
            n_lines = found[-1].n_lines + max(0, one.n_lines - inside)
            found[-1] = replace(found[-1], n_lines=n_lines, size_bytes=n_lines * trace.line_bytes)
        else:
            found.append(one)
        place[i] = len(found) - 1
    base = trace.base + shift[trace.tensor[trace.template]]
    return replace(trace, tensors=tuple(found), base=base, tensor=place[trace.tensor])


def placed(launches: Sequence[tuple[Trace, Mapping[str, int]]]) -> list[dict[str, int]]:
    """First line of each tensor of each launch: where it lay, with wide gaps between tensors left out."""
    spans = []
    for trace, at in launches:
        if missing := [one.name for one in trace.tensors if one.name not in at]:
            raise CaptureError(f"the recording does not say where {', '.join(missing)} lay", code="format")
        spans += [(at[one.name], at[one.name] + one.n_lines * trace.line_bytes) for one in trace.tensors]
    gone: dict[int, int] = {}  # bytes left out before an address
    end = left_out = 0
    for first, last in sorted(spans):
        left_out += max(0, first - end) // PAGE_BYTES * PAGE_BYTES
        gone[first], end = left_out, max(end, last)
    return [
        {one.name: (at[one.name] - gone[at[one.name]]) // trace.line_bytes for one in trace.tensors}
        for trace, at in launches
    ]
