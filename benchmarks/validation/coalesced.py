"""How many of the reads that SMs of one GPC make together reach the L2, in all launches that were drawn and counted.

    python -m swizzle_benchmarks.validation.coalesced count    # the table, from the draws' sectors; 5 min
    python -m swizzle_benchmarks.validation.coalesced fit      # l2_partitions.under_way, from the table

``count`` needs on ``PYTHONPATH`` the packages of kernels that others published, as
`swizzle_benchmarks.validation.held_out` does, and ``SWIZZLE_SIM_TRITON``. The fit is to orders of the suite's kernels;
those of published ones are held against it. No time is in either.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from statistics import mean

import numpy as np

from swizzle_sim.base.progress import Progress
from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from xcd_model import Gpu, gpu
from xcd_model.nvidia.rates import requests_by_readers, share_sent

from .draws import DRAWS, KERNELS
from .held_out import LAUNCHED, counted_of, kernel_of, predicted_of
from .rows import DATA

COUNTED = [name for name in DRAWS if name.startswith("h200")][:14]  # later ones test what these were fitted to
TABLE = DATA / "machine" / "h200_coalesced.csv"


@dataclass(frozen=True)
class Coalesced:
    """Sectors of one order: asked for, counted at the L2, and asked for by 1, 2, ... workgroups of a GPC at once."""

    draw: str
    kernel: str
    problem: str
    order: str
    workgroups_per_sm: int
    asked: int
    counted: int
    by_readers: str

    @property
    def is_published(self) -> bool:
        """Whether the kernel is of a package, not of the suite."""
        return bool(KERNELS[self.kernel].declared)

    @property
    def readers(self) -> np.ndarray:
        """See `xcd_model.nvidia.rates.requests_by_readers`."""
        return np.array([0, *map(float, self.by_readers.split())])


def read() -> list[Coalesced]:
    """Lines of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        whole = ("workgroups_per_sm", "asked", "counted")
        return [Coalesced(**line | {key: int(line[key]) for key in whole}) for line in csv.DictReader(file)]


def rms(lines: Iterable[Coalesced], device: Gpu, under_way: float) -> float:
    """Root mean square of the share that is sent, by the model less as counted."""
    assert device.l2_partitions is not None and device.l2_partitions.reads_as_one is not None
    sent = partial(share_sent, reads_as_one=device.l2_partitions.reads_as_one, under_way=under_way)
    return mean((float(sent(line.readers)) - line.counted / line.asked) ** 2 for line in lines) ** 0.5


def fitted(lines: Iterable[Coalesced], device: Gpu) -> float:
    """``under_way`` of least squares, over orders of the suite's kernels."""
    from scipy.optimize import minimize_scalar

    suite = [line for line in lines if not line.is_published]
    found = minimize_scalar(lambda value: rms(suite, device, value), bounds=(0, 1), options={"xatol": 1e-3})
    return float(found.x)


def counted(device: Gpu) -> Iterator[Coalesced]:
    """Lines of orders whose workgroups share loads within a GPC."""
    for draw in COUNTED:
        measured = {(line["bundle"], line["candidate"]): line for line in counted_of(draw)}
        for _, of in itertools.groupby(predicted_of(draw), lambda line: line["bundle"]):
            yield from _of_launch(draw, list(of), measured, device)


def _of_launch(draw: str, lines: list[dict], measured: dict, device: Gpu) -> Iterator[Coalesced]:
    sizes = {key: int(value) for key, value in (one.split("=") for one in lines[0]["problem"].split())}
    scorer = Scorer(compiled_for(kernel_of(lines[0]["kernel"], sizes, device), device), device)
    trace, size = scorer.trace, device.l2.read_request_bytes
    assert device.l2_partitions is not None
    gpc = device.l2_partitions.group_of(device.cus)
    asked = trace.requests_per_template(size, size)[trace.template][~trace.is_write[trace.template]].sum()
    for line in lines:
        order = np.arange(trace.n_workgroups)
        if line["order"] != LAUNCHED:
            order = scorer.permutation(Swizzle.parse(family(line["order"]), line["order"]))
        running = device.cus * scorer.occupancy
        readers = requests_by_readers(trace, order, running=running, gpc=gpc, request_bytes=size)
        if readers[2:].any():
            ran = measured[line["bundle"], line["candidate"]]
            yield Coalesced(
                draw, line["kernel"], line["problem"], line["order"], scorer.occupancy,
                int(asked), int(ran["read_sectors"]), " ".join(f"{int(one)}" for one in readers[1:]),
            )  # fmt: skip


def report(lines: list[Coalesced], device: Gpu, write=print) -> None:
    """Print the fit, and what it leaves of each kernel."""
    best = fitted(lines, device)
    write(f"under_way = {best:.3f} by least squares, of the orders of the suite")
    of_kind = {
        kind: [one for one in lines if one.is_published is published]
        for kind, published in (("the suite", False), ("published kernels", True))
    }
    for what, some in (of_kind | {name: [one for one in lines if one.kernel == name] for name in KERNELS}).items():
        if some:
            share = mean(one.counted / one.asked for one in some)
            write(f"{what}: {len(some)} orders, counted {share:.2f}, off by {rms(some, device, best):.3f} (rms)")


def main() -> int:
    """Count or fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("count", "fit"))
    device = gpu("h200")
    if parser.parse_args().verb == "count":
        lines, draws = [], []
        with Progress("counting", "draws") as progress:
            for line in counted(device):
                draws += [line.draw] * (line.draw not in draws)
                lines.append(asdict(line).values())
                progress(len(draws), len(COUNTED), note=line.kernel)
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[one.name for one in fields(Coalesced)], *lines])
    report(read(), device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
