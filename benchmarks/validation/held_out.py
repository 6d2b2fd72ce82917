"""Launches drawn by a seed, predicted as a user's ``bundle`` predicts them, then counted.

    python -m swizzle_benchmarks.validation.held_out draw FOLDER --draw h200 --seed 33
    python benchmarks/lab/bundles_counted.py FOLDER counted.csv           # on the node: PyTorch, Triton, ncu
    python -m swizzle_benchmarks.validation.held_out table FOLDER/predicted.csv counted.csv

Of kernels that others published, ``PYTHONPATH`` names the packages that ``swizzle_benchmarks.evidence.kernels_tried``
fetched.
``SWIZZLE_SIM_TRITON`` names the Triton that the node has, whose registers decide how many workgroups an SM holds.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Protocol

from swizzle_sim.base.progress import Progress
from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.price import score_as_compiled
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import OBJECTIVES, Ranking
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu, gpu

from .draws import DRAWS, KERNELS, drawn
from .rows import DATA
from .statistics import right_way_round

Line = dict[str, str]  # of a table, by the names of its columns
LAUNCHED = "launch order"
DECLARATIONS = Path(__file__).parents[1] / "evidence" / "kernels_tried" / "declarations"
PREDICTED = ("bundle", "kernel", "problem", "candidate", "order", "time_us", "dram_read_bytes", "workgroups", "place")


def gpu_of(draw: str) -> str:
    """Name of the GPU that a draw's name begins with."""
    return draw.partition("_")[0]


def kernel_of(what: str, sizes: dict[str, int], device: Gpu) -> Kernel:
    """Kernel of the suite, or captured from the file of a package, which is on the path."""
    one = KERNELS[what]
    if not one.declared:
        return kernel(one.suite or what, **sizes)
    module, _, variable = one.declared.partition(":")
    return load(f"{DECLARATIONS / module}.py:{variable}", sizes, device.arch)


def draw(folder: Path, name: str, seed: int) -> None:
    """Write a bundle for each launch, and ``predicted.csv``, which is to be committed before anything is counted."""
    folder.mkdir(parents=True)
    device = gpu(gpu_of(name))
    launches = list(drawn(name, seed))
    with (
        Progress("predicting", "launches") as progress,
        (folder / "predicted.csv").open("w", encoding="utf-8", newline="") as file,
    ):
        out = csv.writer(file)
        out.writerow(PREDICTED)
        for number, (what, sizes, orders) in enumerate(launches):
            scorer = Scorer(compiled_for(kernel_of(what, sizes, device), device), device)
            finalists = []
            for order in orders:
                swizzle = Swizzle.parse(family(order), order)
                finalists.append(Finalist(name=order, source=swizzle.source, score=score_as_compiled(scorer, swizzle)))
            place = f"{number:02d}-{what.replace(' ', '-')}"
            made = make_bundle(scorer.kernel, device, finalists, folder / place, baseline=scorer.baseline, check=False)
            problem = " ".join(f"{key}={value}" for key, value in made["problem"].items())
            attempts = [
                Attempt(number=at, name=name, source=source, proposer="", verdict={}, score=score)
                for at, (name, source, score) in enumerate(
                    [(LAUNCHED, "", scorer.baseline), *((one.name, one.source, one.score) for one in finalists)]
                )
            ]
            ranked = [one.number for one in Ranking((OBJECTIVES["time"],), gpu=device.name).order(attempts)]
            for candidate, one in zip(made["candidates"], attempts, strict=True):
                score = one.score
                assert score is not None
                held = score.price.launched.workgroups_per_cu if score.price else scorer.occupancy
                figures = [f"{score.time_us:.2f}", score.hbm_read_bytes, held, 1 + ranked.index(one.number)]
                out.writerow([place, what, problem, candidate["id"], one.name, *figures])
            file.flush()
            progress(number + 1, len(launches), note=what)


class Timed(Protocol):
    """What was measured."""

    @property
    def measured_us(self) -> float:
        """Median of cold launches [us]."""
        ...


@dataclass(frozen=True)
class Ran:
    """One order of one launch, predicted and counted."""

    bundle: str
    kernel: str
    problem: str
    order: str
    predicted_us: float  # [us]: of the timed replay; median of cold launches
    measured_us: float
    predicted_bytes: float  # read from memory; asked of the L2 by the SMs, as counted
    counted_bytes: float
    asked_bytes: float
    place: int | None = None  # in the tool's ranking, ties broken as it breaks them; earlier draws did not note it

    @property
    def read_error(self) -> float:
        """Predicted over counted bytes, less 1."""
        return self.predicted_bytes / self.counted_bytes - 1

    @property
    def points(self) -> float:
        """Predicted less counted share of the asked bytes that memory did not answer [points]."""
        return 100 * (self.counted_bytes - self.predicted_bytes) / self.asked_bytes


def read(predicted: Path, counted: Path) -> list[Ran]:
    """Orders that were both predicted and counted, right results only."""
    return _joined(_lines(predicted), _lines(counted))


def committed(name: str) -> list[Ran]:
    """Orders of a draw, one of `DRAWS`, from the committed tables."""
    return _joined(predicted_of(name), counted_of(name))


def predicted_of(name: str) -> list[Line]:
    """Committed predictions of a draw."""
    return [one for one in _lines(DATA / "held_out_predicted.csv") if one["draw"] == name]


def counted_of(name: str) -> list[Line]:
    """Committed counts of a draw."""
    return [one for one in _lines(DATA / "held_out_counted.csv") if one["draw"] == name]


@cache
def _lines(table: Path) -> list[Line]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _joined(predicted: Iterable[Line], counted: Iterable[Line]) -> list[Ran]:
    ran = {(one["bundle"], one["candidate"]): one for one in counted}
    found = []
    for one in predicted:
        other = ran.get((one["bundle"], one["candidate"]))
        if other is None or other["result"] == "differs" or not other["dram_read_bytes"]:
            continue
        found.append(
            Ran(
                *(one[key] for key in ("bundle", "kernel", "problem", "order")),
                float(one["time_us"]), float(other["time_cold_us"]), float(one["dram_read_bytes"]),
                float(other["dram_read_bytes"]), 32 * float(other["read_sectors"]),
                int(one["place"]) if one.get("place") else None,
            )
        )  # fmt: skip
    return found


def of_launch(found: Iterable[Ran]) -> list[list[Ran]]:
    """Orders of one launch together, the launch order first."""
    return [list(group) for _, group in itertools.groupby(found, key=lambda one: one.bundle)]


def pairs(found: Sequence[Ran]) -> tuple[int, int]:
    """Pairs of orders of a launch whose measured times are apart: those predicted the right way round, and all."""
    ranked = [right_way_round([(one.measured_us, one.predicted_us) for one in group]) for group in of_launch(found)]
    return sum(right for right, _ in ranked), sum(apart for _, apart in ranked)


def ranked(found: Sequence[Ran]) -> tuple[int, int] | None:
    """As `pairs`, by the tool's ranking, which breaks ties; None where not every place is known."""
    if any(one.place is None for one in found):
        return None
    groups = [right_way_round([(one.measured_us, one.place or 0) for one in group]) for group in of_launch(found)]
    return sum(right for right, _ in groups), sum(apart for _, apart in groups)


def regret(group: Iterable[Timed], picked: Timed) -> float:
    """Measured time of the picked order over that of the best of a launch, less 1."""
    return picked.measured_us / min(one.measured_us for one in group) - 1


def regrets(found: Sequence[Ran]) -> dict[str, float]:
    """Mean regret over launches by how an order is chosen; the tool's choice only where every place is known."""
    picks: dict[str, Callable[[list[Ran]], Ran]] = {
        "the tool's choice": lambda group: min(group, key=lambda one: one.place or 0),
        "least predicted time": lambda group: min(group, key=lambda one: one.predicted_us),
        "launch order": lambda group: group[0],
        "group_m(size=8), boxes of 4": lambda group: next(
            one for one in group if one.order in KERNELS[one.kernel].pool[0]
        ),
    }
    groups = of_launch(found)
    if any(one.place is None for one in found):
        del picks["the tool's choice"]
    return {name: mean(regret(group, pick(group)) for group in groups) for name, pick in picks.items()}


HEADS = (
    *("draw", "kernel", "orders run", "reads within 20 %", "median error of reads [%]"),
    *("hit rate, mean error [points]", "pairs over 3 % apart ranked by predicted time", "by the tool"),
    *("regret of the tool's choice [%]", "of the least predicted time", "of the launch order"),
    "of `group_m(size=8)`, boxes of 4",
)


def table(draws: Mapping[str, Sequence[Ran]]) -> str:
    """Summary by draw and kernel, Markdown."""
    heads = [f"| {' | '.join(HEADS)} |", "| --- " * len(HEADS) + "|"]
    return "\n".join([*heads, *(line for name, found in draws.items() for line in _rows(name, found))])


def _rows(draw: str, found: Sequence[Ran]) -> list[str]:
    lines = []
    for name in (*dict.fromkeys(one.kernel for one in found), "all"):
        mine = [one for one in found if name in (one.kernel, "all")]
        near = sum(abs(one.read_error) <= 0.2 for one in mine)
        right, every = pairs(mine)
        tool = ranked(mine)
        regretted = [f"{100 * value:.2f}" for value in regrets(mine).values()]
        lines.append(
            f"| {draw} | {name} | {len(mine)} | {near} | {100 * median(abs(one.read_error) for one in mine):.2f} | "
            f"{mean(abs(one.points) for one in mine):.2f} | {right} of {every} | "
            + (f"{tool[0]} of {tool[1]} | " if tool else "- | ")
            + " | ".join([*["-"] * (4 - len(regretted)), *regretted])
            + " |"
        )
    return lines


def draws_table() -> str:
    """What each draw was of and when, Markdown."""
    heads = ["| draw | seed | what it is of | launches |", "| --- | --- | --- | --- |"]
    lines = [f"| {name} | {one.seed} | {one.what} | {sum(one.launches.values())} |" for name, one in DRAWS.items()]
    return "\n".join([*heads, *lines])


def committed_table() -> str:
    """Summary of all committed launches, Markdown."""
    return table({name: committed(name) for name in DRAWS})


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("draw", help="draw launches, predict them, write their bundles")
    one.add_argument("folder", type=Path)
    one.add_argument("--draw", choices=DRAWS, default="h200")
    one.add_argument("--seed", type=int, required=True)
    other = verbs.add_parser("table", help="compare with what was counted")
    other.add_argument("predicted", type=Path)
    other.add_argument("counted", type=Path)
    given = parser.parse_args()
    if given.verb == "draw":
        draw(given.folder, given.draw, given.seed)
    else:
        try:
            print(table({given.predicted.parent.name: read(given.predicted, given.counted)}))
        except OSError as error:
            sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
