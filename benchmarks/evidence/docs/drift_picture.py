"""``docs/pictures/drift.png``: the workgroups of one XCD in the lockstep and in the timed replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.colours import AFTER, BEFORE
from swizzle_sim.report.display.picture import png
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu
from xcd_model.analysis.schedule import schedule_of
from xcd_model.dispatch import seat_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = {"M": 8192, "N": 8192, "K": 256, "BLOCK_M": 128, "BLOCK_N": 128}


def spans_of_xcd() -> tuple[np.ndarray, np.ndarray]:
    """CU, begin and end of each workgroup on the first slots of XCD 0: in turns of lockstep, and in us if timed."""
    device = gpu("mi300x")
    timed = Scorer(kernel("gemm", **SIZES), device)
    order = np.arange(timed.kernel.grid.num_pids)
    spans = timed.traffic_and_spans(order)[1]
    seat = seat_of(spans[:, 2], device.xcds, device.cus_per_xcd)
    mine = (seat.xcd == 0) & (seat.row == 0)
    march = schedule_of(timed.plan, order, workgroups_per_cu=timed.occupancy)
    ids = np.flatnonzero(march.xcd == 0)
    slots = device.cus_per_xcd * timed.occupancy
    rows = np.arange(ids.size) % slots  # equal work: the slots are filled in turn
    first = rows < device.cus_per_xcd
    lockstep = np.column_stack([rows[first], march.begin[ids[first]], march.end[ids[first]]])
    return lockstep, np.column_stack([seat.cu[mine], spans[mine, 0] / 1e9, spans[mine, 1] / 1e9])


def _draw(axes: Axes, bars: np.ndarray, title: str, unit: str) -> None:
    """Draw a bar for each workgroup, those of one CU in turns of two colours."""
    bars = bars[np.lexsort((bars[:, 1], bars[:, 0]))]
    turn = np.arange(len(bars)) - np.searchsorted(bars[:, 0], bars[:, 0])
    colours = np.where(turn % 2, AFTER, BEFORE)
    axes.barh(bars[:, 0], bars[:, 2] - bars[:, 1], left=bars[:, 1], height=0.8, color=colours.tolist(), linewidth=0)
    axes.set(title=title, xlabel=unit, ylabel="CU of XCD 0", ylim=(-1, bars[:, 0].max() + 1), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)


def drift_picture() -> bytes:
    """The picture as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    lockstep, timed = spans_of_xcd()
    _draw(left, lockstep, "lockstep: all issue together", "turn")
    _draw(right, timed, "timed: workgroups drift apart", "time [µs]")
    right.set_ylabel("")
    return png(figure, note="simulated; the workgroups of a CU in turns of two colours")
