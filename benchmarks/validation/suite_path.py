"""Orders that an H200 ran from our own bundles, predicted on the path that a user takes: no fact of a profiler enters.

    python -m swizzle_benchmarks.validation.suite_path

Each kernel is compiled as launched and as its bundle spelled each order then, in the general form, and replayed with
the occupancy and the loads in flight of that compile. The rows were measured with Triton 3.6, whose registers differ
from 3.9's: ``SWIZZLE_SIM_TRITON`` names the folder of another version.

The same orders were predicted again as bundles are written now, in the cheapest emission, committed, and counted:
``h200_suite_path_predicted.csv`` beside ``h200_suite_path_counted.csv``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources

from swizzle_sim.base.progress import Progress
from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.guard import GENERAL
from swizzle_sim.rewrite.price import price, resources_after
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.price import CompiledKernel
from xcd_model import gpu

from . import held_out
from .rows import DATA

LAUNCHED = "as launched"
WITHIN = 0.15  # of the measured time, relative to the order as launched
_FILE = "data/h200_suite_path.csv"


@dataclass(frozen=True)
class Row:
    """One order: measured, and as predicted."""

    kernel: str
    problem: dict[str, int]
    order: str
    measured_us: float  # cold median time; bytes read from memory
    read_bytes: float
    registers: int  # as Triton 3.6 compiled it for the measurement
    workgroups: int


@dataclass(frozen=True)
class Predicted:
    """A row beside its prediction; times relative to the order as launched."""

    row: Row
    registers: int  # as compiled here
    workgroups: int
    relative: float
    measured_relative: float
    read_bytes: int

    @property
    def time_error(self) -> float:
        """Predicted over measured relative time, less 1."""
        return self.relative / self.measured_relative - 1

    @property
    def read_error(self) -> float:
        """Predicted over counted bytes, less 1."""
        return self.read_bytes / self.row.read_bytes - 1


def rows() -> list[Row]:
    """The measured rows."""
    text = resources.files("swizzle_benchmarks.validation").joinpath(_FILE).read_text(encoding="utf-8")
    return [
        Row(
            kernel=one["kernel"],
            problem={name: int(value) for name, value in (word.split("=") for word in one["problem"].split())},
            order=one["order"],
            measured_us=float(one["time_cold_us"]),
            read_bytes=float(one["dram_read_bytes"]),
            registers=int(one["registers_per_thread"]),
            workgroups=int(one["workgroups_per_sm"]),
        )
        for one in csv.DictReader(text.splitlines())
    ]


def predict(wanted: Iterable[Row]) -> Iterator[Predicted]:
    """Predict rows, in their order; those as launched come first for each kernel."""
    device = gpu("h200")
    scorer, launched_us = None, 1.0
    for row in wanted:
        if row.order == LAUNCHED:
            found = compiled_for(kernel(row.kernel, **row.problem), device)
            scorer, launched_us = Scorer(found, device, replay="timed"), row.measured_us
            score, compiled = scorer.baseline, None
        else:
            assert scorer is not None
            score, compiled = _as_bundled(scorer, row.order)
        yield Predicted(
            row=row,
            registers=compiled.registers if compiled else scorer.kernel.resources.vgprs,
            workgroups=compiled.workgroups_per_cu if compiled else scorer.occupancy,
            relative=score.time_us / scorer.baseline.time_us,
            measured_relative=row.measured_us / launched_us,
            read_bytes=score.hbm_read_bytes,
        )


def _as_bundled(scorer: Scorer, order: str) -> tuple[Score, CompiledKernel]:
    swizzle = Swizzle.parse(family(order), order)
    found = price(scorer.kernel, swizzle, scorer.gpu, spellings=(GENERAL,))
    found = replace(found, offer={}, offered=None)  # bundles then had no option that gives workgroups back
    own = scorer.with_resources(resources_after(scorer.kernel.resources, found, scorer.gpu, scorer.kernel.grid.levels))
    order_of = scorer.permutation(swizzle)
    return own.score_order(order_of, baseline_us=scorer.baseline.time_us), found.after


def counted_again() -> str:
    """Both kernels as their bundles are written now, predicted before they were counted: Markdown."""
    found = held_out.read(DATA / "h200_suite_path_predicted.csv", DATA / "h200_suite_path_counted.csv")
    lines = [
        "| kernel | order | predicted, relative | measured, relative | measured [us] | reads predicted [GB] | read |",
        "| --- " * 7 + "|",
    ]
    near = 0
    for group in held_out.of_launch(found):
        first = group[0]
        for one in group:
            relative, measured = one.predicted_us / first.predicted_us, one.measured_us / first.measured_us
            near += abs(relative / measured - 1) <= WITHIN
            lines.append(
                f"| {one.kernel} | {one.order} | {relative:.3f} | {measured:.3f} | {one.measured_us:.1f} | "
                f"{one.predicted_bytes / 1e9:.3f} | {one.counted_bytes / 1e9:.3f} |"
            )
    farthest = max(abs(one.read_error) for one in found)
    words = (
        f"{near} of {len(found)} relative times are within {100 * WITHIN:.0f} %, "
        f"all reads within {100 * farthest:.0f} %."
    )
    return "\n".join([*lines, "", words])


def main() -> None:
    """Print every row and how many are within `WITHIN`."""
    wanted = rows()
    found = []
    print(f"{'kernel':8} {'order':16} registers    workgroups  time, relative          reads [GB]")
    with Progress("predicting", "orders") as progress:
        for done, one in enumerate(predict(wanted), start=1):
            found.append(one)
            progress(done, len(wanted), note=one.row.order)
            print(line_of(one), flush=True)
    near = sum(abs(one.time_error) <= WITHIN for one in found)
    read = sum(abs(one.read_error) <= WITHIN for one in found)
    print(f"of {len(found)} rows {near} within {100 * WITHIN:.0f} % of the relative time, {read} of the bytes read")


def line_of(one: Predicted) -> str:
    """Line of the table: as compiled here and there, predicted and measured."""
    return (
        f"{one.row.kernel:8} {one.row.order:16} {one.registers:4} ({one.row.registers:3})  "
        f"{one.workgroups:3} ({one.row.workgroups})      "
        f"{one.relative:.3f} ({one.measured_relative:.3f}) {100 * one.time_error:+6.1f} %  "
        f"{one.read_bytes / 1e9:.3f} ({one.row.read_bytes / 1e9:.3f}) {100 * one.read_error:+6.1f} %"
    )


if __name__ == "__main__":
    main()
