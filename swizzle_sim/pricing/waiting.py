"""Orders of a kernel whose tiles wait for others: which of them may wait for ever, and for how long the others would.

A replay lets a tile begin when its program is free, whether what it waits for has ended or not. `Waited` counts, after
the replay, what that leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import NOWHERE, PROVED, REFUTED, THIS_GRID_ONLY, Counterexample, Verdict, where_text
from xcd_model.errors import Deadlock, NotBijective
from xcd_model.trace.waits import check_waits, waited_fs

if TYPE_CHECKING:
    from swizzle_sim.pricing.replaying import Replayer
    from swizzle_sim.workload.kernels import Kernel
    from swizzle_sim.workload.launch import Launch

FS_PER_US = 1e9


@dataclass(frozen=True, kw_only=True)
class Waited:
    """What waiting would have cost that a timed replay leaves out."""

    tiles: int  # tiles that wait for others
    early: int  # those that the replay began before all that they wait for had ended
    longest_us: float  # [us]: how long before, at most, and in the mean of all that wait
    mean_us: float

    def __str__(self) -> str:
        if not self.early:
            return f"Waiting: none of {self.tiles} tiles began before what it waits for had ended"
        return (
            f"Waiting is not in the time: {self.early} of {self.tiles} tiles that wait for others began before those "
            f"had ended, by {self.longest_us:.1f} us at most and {self.mean_us:.1f} us in the mean"
        )


def waited(replayer: Replayer[Kernel], order: np.ndarray) -> Waited | None:
    """What waiting would cost under an order; None of a kernel without stages, and in lockstep, which has no times."""
    kernel = replayer.kernel
    if kernel.waits is None or replayer.replay != "timed":
        return None
    _, spans = replayer.traffic_and_spans(order)
    waits = kernel.waits(kernel.problem)
    late_us = waited_fs(spans, order, waits)[waits.awaits[order] >= 0] / FS_PER_US
    return Waited(
        tiles=late_us.size,
        early=int((late_us > 0).sum()),
        longest_us=float(late_us.max(initial=0.0)),
        mean_us=float(late_us.mean()) if late_us.size else 0.0,
    )


def with_flags_unset(launch: Launch) -> Launch:
    """The launch as hardware gets it: index arrays that the kernel writes, its flags, hold zeros at first.

    Where programs run one after the other, and in a capture, they are set already, so that none waits.
    """
    flags = [name for name, array in launch.arrays.items() if array.is_index and array.role == "inout"]

    def inputs(seed: int) -> dict[str, Any]:
        made = dict(launch.make_inputs(seed))
        return made | {name: np.zeros_like(made[name]) for name in flags}

    return replace(launch, make_inputs=inputs)


def with_waits(verdict: Verdict, swizzle: Swizzle, kernel: Kernel, num_xcds: int, *, lattice: bool) -> Verdict:
    """Verdict of a candidate that is refused where it hands out a tile before one that it waits for.

    Other grids are tried with the GPU's XCDs only; one that refuses leaves ``this grid only``.
    """
    if kernel.waits is None or not verdict.bijective:  # without stages, or refused already
        return verdict
    if here := _deadlock(swizzle, kernel, kernel.grid, kernel.problem, num_xcds):
        return replace(verdict, bijective=False, counterexample=here, domain=NOWHERE, status=REFUTED, passed=0)
    points = kernel.lattice if lattice else ()
    others = [one for grid, sizes in points if (one := _deadlock(swizzle, kernel, grid, sizes, num_xcds))]
    if not others:
        return verdict
    passed, first = verdict.passed - len(others), verdict.lattice_counterexample or others[0]
    return replace(verdict, domain=THIS_GRID_ONLY, status=PROVED, passed=passed, lattice_counterexample=first)


def _deadlock(swizzle: Swizzle, kernel: Kernel, grid: Any, sizes: Any, num_xcds: int) -> Counterexample | None:
    try:
        order = swizzle.permutation(grid, num_xcds, sizes)
    except NotBijective:  # which the verdict has already
        return None
    assert kernel.waits is not None
    try:
        check_waits(order, kernel.waits(sizes))
    except Deadlock as error:
        return Counterexample(error.code, f"{error} {where_text(grid, num_xcds)}", (), None, None, grid.num_pids)
    return None
