"""How far measured gains of orders lie from predicted ones, by GPU and class of kernels: the intervals of a verdict.

A gain is the logarithm of an order's time over the launch order's; an error is the measured gain less the predicted
one, of orders that the model calls faster. The interval of a class holds the middle `PART` % of its errors. It is
judged on launches that it did not see: `HALVINGS` times half of the launches give an interval, the other half is judged
by it. `PART` was chosen with all these launches in view, of 90 to 98: the coverage is no test on launches unseen.
Launches differ more than the orders of one do, so fewer of them are inside than `PART`. A verdict to
use an order is one whose whole interval is faster; it was right where the measured time was less.

The class of a kernel of the suite is that of its `Scorer`. Of published kernels it is given here by what they compute:
their packages are not at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from xcd_model import gpu

from . import held_out
from .amd import scores
from .predict import predict_all
from .rows import measured_speedups, paper_rows

HALVINGS, SEED, PART = 200, 0, 97.0
ENOUGH = 10  # launches with an order that is predicted faster, below which a class has no interval
REGISTERS = 128  # of kernels whose registers on AMD no SM holds; the class does not depend on them
OF_PUBLISHED = {  # the others multiply matrices
    "sglang decode": "memory",
    "flag-gems conv2d": "memory",
    "fla chunk_o": "memory",
    "mlstm": "memory",
    "conch unified": "uneven",
    "sage attention": "uneven",
    "aiter attention": "uneven",
}
OF_SIX = {"gate_up": "compute", "splitk": "compute", "atb": "compute", "swa": "uneven"}  # else ``memory``
OF_PAGE = {"attention": "compute", "gemm": "compute"}  # in the name of a workload; else ``memory``


@dataclass(frozen=True)
class Gains:
    """Predicted and measured gains of orders of a class that are predicted faster than the launch order."""

    gpu: str
    work_class: str
    launch: np.ndarray  # (n_orders,) int64: launches of which the orders are
    predicted: np.ndarray  # (n_orders,) float: logarithms of times over the launch order's
    measured: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Measured less predicted."""
        return self.measured - self.predicted

    def judged(self) -> tuple[float, float, float]:
        """Of launches not seen: share of gains inside, orders to use, and how many of these were faster."""
        draw, inside, used, right = np.random.default_rng(SEED), [], 0, 0
        names = np.unique(self.launch)
        for _ in range(HALVINGS):
            seen = np.isin(self.launch, draw.permutation(names)[: names.size // 2])
            low, high = interval(self.error[seen])
            inside.append(float(np.mean((self.error[~seen] >= low) & (self.error[~seen] <= high))))
            use = ~seen & (self.predicted + high < 0)
            used, right = used + int(use.sum()), right + int((use & (self.measured < 0)).sum())
        return float(np.mean(inside)), used / HALVINGS, right / HALVINGS

    def entry(self) -> str:
        """Entry of the table; empty for a class of too few launches."""
        launches = np.unique(self.launch).size
        if launches < ENOUGH:
            return ""
        (low, high), (inside, used, right) = interval(self.error), self.judged()
        return (
            f"[{self.gpu}.{self.work_class}.gain]\nlaunches = {launches}\norders = {self.launch.size}\n"
            f"low = {low:.4f}\nmiddle = {np.median(self.error):.4f}\nhigh = {high:.4f}\n"
            f"inside = {inside:.3f}\nused = {used:.1f}\nright = {right:.1f}\n"
        )


def interval(error: np.ndarray) -> tuple[float, float]:
    """Ends of the middle `PART` % of errors, a little wider where they are few.

    Parameters
    ----------
    error : (n_orders,) float
    """
    beside = (100 - PART) / 2 * error.size / (error.size + 1)
    low, high = np.percentile(error, [beside, 100 - beside])
    return float(low), float(high)


@cache
def classes() -> dict[str, str]:
    """Class of each drawn launch, by draw and bundle."""
    found: dict[str, str] = {}
    for line in (one for name in held_out.DRAWS for one in held_out.predicted_of(name)):
        key, what = f"{line['draw']} {line['bundle']}", line["kernel"]
        if key not in found and held_out.KERNELS[what].declared:
            found[key] = OF_PUBLISHED.get(what, "compute")
        elif key not in found:
            device = gpu(held_out.gpu_of(line["draw"]))
            sizes = {name: int(size) for name, _, size in (one.partition("=") for one in line["problem"].split())}
            one = held_out.kernel_of(what, sizes, device)
            few = min(REGISTERS, one.resources.vgprs)
            found[key] = Scorer(replace(one, resources=replace(one.resources, vgprs=few)), device).work_class
    return found


def class_of(workload: str) -> str:
    """Class of a launch that was drawn, of six kernels on an H100, or of a workload of ``fidelity.csv``."""
    if workload in classes():
        return classes()[workload]
    names = OF_PAGE if ":" in workload else OF_SIX
    return next((of for name, of in names.items() if name in workload), "memory")


Timed = tuple[str, str, float, float]  # an order: GPU, workload, predicted and measured time [us]
Times = Mapping[str, Sequence[tuple[float, float]]]  # by launch: (predicted, measured), the launch order first


def gains_of(device: str, work_class: str, times: Times, least: float) -> Gains:
    """Gains of orders that are predicted faster by more than ``least``, a logarithm; times are logarithms."""
    rows = [
        (number, predicted - orders[0][0], measured - orders[0][1])
        for number, orders in enumerate(times.values())
        for predicted, measured in orders[1:]
        if predicted - orders[0][0] < -least
    ]
    launch, predicted, measured = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.empty(0)] * 3
    )
    return Gains(device, work_class, launch, predicted, measured)


def of_orders(orders: Iterable[Timed], tells_apart: Mapping[str, float]) -> list[Gains]:
    """Gains of orders of whole launches on NVIDIA's GPUs, by class; the launch order of each comes first."""
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for device, workload, predicted_us, measured_us in orders:
        of = found.setdefault((device, class_of(workload)), {})
        of.setdefault(workload, []).append((math.log(predicted_us), math.log(measured_us)))
    return [gains_of(*key, times, tells_apart.get(key[0], 0.0)) for key, times in sorted(found.items())]


def of_amd(tells_apart: float) -> list[Gains]:
    """Gains of orders that AMD's hardware measured, by class; the first order of each group is the reference."""
    lines, time = scores.replayed(), scores.COSTS["time"]
    groups = {
        ("mi300x", "compute"): scores.sweep_groups(lines, time, list(scores.tables.sweep())),
        ("mi300x", "uneven"): scores.attention_groups(lines, time),
        ("mi355x", "compute"): scores.aiter_groups(lines, time),
    }
    return [
        gains_of("mi300x", "memory", paper_times(), tells_apart),
        *(
            gains_of(
                *key, {str(name): [(cost, took) for took, cost, _ in one] for name, one in of.items()}, tells_apart
            )
            for key, of in groups.items()
        ),
    ]


def paper_times() -> Times:
    """Predicted and measured times of the paper's logs on the MI300X, relative to the launch order's."""
    speedups, found = measured_speedups(), {}
    for one in predict_all([row for row in paper_rows() if row.bijective], ["timed"]):
        times = math.log(float(one.counts["time_us"])), -math.log(speedups[one.row.id])
        found.setdefault(one.row.workload, []).append((one.row.order != "baseline", times))
    return {name: [times for _, times in sorted(each)] for name, each in found.items()}
