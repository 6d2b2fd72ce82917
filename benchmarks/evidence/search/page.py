"""The comparison of searches as a table, a page and a picture."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

WIDTH = 118
LINES = (("#3b3b3b", ":"), ("#e69f00", "--"), ("#0072b2", "-"), ("#cc79a7", "-."))  # distinct without colours too
REACHED = 0.95  # part of the way from the launch order to the best of all
COLUMNS = (
    *("kernel", "method", "launch order [{unit}]", "best {spoken} [{unit}]", "range [{unit}]"),
    *("{other}", "evaluations to 95 %", "evaluations used", "wall time [s]", "processor time [s]"),
)


@dataclass(frozen=True)
class Figure:
    """What one GPU's searches are judged by, and what is shown beside it."""

    spoken: str
    unit: str
    other: str
    key: str  # fields of a row, lists over the evaluations
    other_key: str
    scale: float  # from a row's figure to the unit
    sign: int  # 1 where more is better, else -1

    def beside(self, launched: float, here: float) -> str:
        """The other figure of an order in words: a rate as it is, a time by that of the launch order."""
        return f"{here / launched:.3f}" if self.other_key == "times_us" else f"{100 * here:.2f}"


FIGURES = {
    "l2_hit_rate": Figure("L2 hit rate", "%", "time there [launch order = 1]", "rates", "times_us", 100, 1),
    "time": Figure("predicted time", "us", "L2 hit rate there [%]", "times_us", "rates", 1, -1),
}


@dataclass(frozen=True)
class Cell:
    """One method on one kernel: a row a seed, and what they are judged by."""

    kernel: str
    method: str
    rows: Sequence[Mapping[str, Any]]
    figure: Figure

    def values(self, row: Mapping[str, Any]) -> list[float]:
        """Figures of a trial in its unit, in the order of the evaluations."""
        return [self.figure.scale * value for value in row[self.figure.key]]

    def better(self, values: Iterable[float]) -> float:
        """The best of some figures."""
        return max(values, key=lambda value: self.figure.sign * value)

    @property
    def bests(self) -> list[float]:
        """Best figure of each seed."""
        return [self.better(self.values(row)) for row in self.rows]

    @property
    def launch_order(self) -> float:
        """Figure of the launch order."""
        return self.values(self.rows[0])[0]

    def gain(self, value: float) -> float:
        """How much better than the launch order, in points or percent of its time."""
        gain = self.figure.sign * (value - self.launch_order)
        return gain if self.figure.sign > 0 else 100 * gain / self.launch_order

    def beside(self) -> str:
        """The other figure at the best order of the seed that found the best."""
        row = max(self.rows, key=lambda row: self.figure.sign * self.better(self.values(row)))
        at = self.values(row).index(self.better(self.values(row)))
        return self.figure.beside(row[self.figure.other_key][0], row[self.figure.other_key][at])

    def mean(self, key: str) -> float:
        """Mean of a time over the seeds."""
        return statistics.mean(row[key] for row in self.rows)

    def evaluations_to(self, goal: float) -> list[int]:
        """Evaluations until a gain was reached, of the seeds that reached it."""
        gains = ([self.gain(value) for value in self.values(row)] for row in self.rows)
        first = [next((i for i, gain in enumerate(of) if gain >= goal), None) for of in gains]
        return [n for n in first if n is not None]


def cells_of(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Cell]]:
    """Cells by kernel, in the order of the points, which are of one GPU."""
    rows_of: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for point, row in zip(points, rows, strict=True):
        rows_of.setdefault((point["kernel"], point["method"]), []).append(row)
    found: dict[str, list[Cell]] = {}
    for (kernel, method), of in rows_of.items():
        found.setdefault(kernel, []).append(Cell(kernel, method, of, FIGURES[points[0]["objective"]]))
    return found


def by_gpu(points: Sequence[Mapping[str, Any]], rows: Sequence[Any]) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """GPU, its points and its rows."""
    for name in dict.fromkeys(point["gpu"] for point in points):
        mine = [i for i, point in enumerate(points) if point["gpu"] == name]
        yield name, [points[i] for i in mine], [rows[i] for i in mine]


def table(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown table over kernels and methods of one GPU."""
    figure = FIGURES[points[0]["objective"]]
    names = [one.format(spoken=figure.spoken, unit=figure.unit, other=figure.other) for one in COLUMNS]
    lines = [f"| {' | '.join(names)} |", f"| {' | '.join('---' for _ in names)} |"]
    for cells in cells_of(points, rows).values():
        most = max(cell.gain(best) for cell in cells for best in cell.bests)
        lines += [f"| {' | '.join(_row(cell, most))} |" for cell in cells]
    return "\n".join(lines)


def _row(cell: Cell, most: float) -> list[str]:
    seeds = len(cell.rows)
    reached = cell.evaluations_to(REACHED * most)
    to_goal = f"{statistics.median(reached):.0f} ({len(reached)} of {seeds})" if reached else f"- (0 of {seeds})"
    spread = statistics.stdev(cell.bests) if seeds > 1 else 0.0
    return [
        cell.kernel,
        cell.method,
        f"{cell.launch_order:.2f}",
        f"{statistics.mean(cell.bests):.2f} ± {spread:.2f}",
        f"{min(cell.bests):.2f} to {max(cell.bests):.2f}",
        cell.beside(),
        to_goal if most > 0 else "nothing to gain",
        f"{statistics.mean(len(row['rates']) - 1 for row in cell.rows):.0f}",
        f"{cell.mean('wall_s'):.1f}",
        f"{cell.mean('cpu_s'):.1f}",
    ]


def summary(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """How often each method is best, and how far it stays behind on average, on one GPU."""
    by_kernel = cells_of(points, rows)
    most = {name: max(cell.gain(best) for cell in cells for best in cell.bests) for name, cells in by_kernel.items()}
    gains = {name: cells for name, cells in by_kernel.items() if most[name] > 0}
    unit = "points" if FIGURES[points[0]["objective"]].sign > 0 else "% of the launch order's time"
    lines = []
    for i, method in enumerate(dict.fromkeys(point["method"] for point in points)):
        means = {name: [statistics.mean(map(cell.gain, cell.bests)) for cell in cells] for name, cells in gains.items()}
        first = sum(of[i] >= max(of) - 0.005 for of in means.values())
        behind = statistics.mean([most[name] - of[i] for name, of in means.items()] or [0.0])
        times = statistics.mean(cells[i].mean("wall_s") for cells in by_kernel.values())
        lines.append(
            f"- *{method}*: highest mean gain, ties counted, on {first} of the {len(gains)} kernels with something "
            f"to gain; on average {behind:.2f} {unit} behind the best that any method found; {times:.1f} s a trial."
        )
    return "\n".join(wrapped(line) for line in lines)


def wrapped(text: str) -> str:
    """A paragraph, or an item of a list, in lines of at most `WIDTH`."""
    return textwrap.fill(text, WIDTH, subsequent_indent="  " if text.startswith("- ") else "", break_on_hyphens=False)


def draw(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the picture of one GPU: the best so far over evaluations, mean and range of the seeds, a panel a kernel."""
    from matplotlib.figure import Figure as Drawing

    by_kernel, most = cells_of(points, rows), max(point["evaluations"] for point in points)
    columns = min(5, len(by_kernel))
    n_rows = -(-len(by_kernel) // columns)
    figure = Drawing(figsize=(2.6 * columns, 2.4 * n_rows + 0.5), layout="constrained")
    panels = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for panel, (name, cells) in zip(panels, by_kernel.items(), strict=False):
        for cell, (colour, dashes) in zip(cells, LINES, strict=False):
            runs = [list(accumulate(cell.values(row), lambda *two, of=cell: of.better(two))) for row in cell.rows]
            runs = [run + [run[-1]] * (most + 1 - len(run)) for run in runs]  # ended early: nothing better is left
            low, mean, high = zip(
                *((min(at), statistics.mean(at), max(at)) for at in zip(*runs, strict=True)), strict=True
            )
            panel.plot(mean, label=cell.method, linewidth=1.4, color=colour, linestyle=dashes)
            panel.fill_between(range(most + 1), low, high, color=colour, alpha=0.12, linewidth=0)
        panel.set_title(name, fontsize=9)
        panel.tick_params(labelsize=7)
        panel.ticklabel_format(useOffset=False)
    for panel in panels[len(by_kernel) :]:
        panel.set_axis_off()
    shown = FIGURES[points[0]["objective"]]
    figure.supxlabel("evaluations", fontsize=9)
    figure.supylabel(f"best {shown.spoken} so far [{shown.unit}], simulated", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=8)
    figure.savefig(path, dpi=110)


def picture_of(gpu: str) -> str:
    """File name of a GPU's picture."""
    return f"search-{gpu}.png"


def page(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], optimum: str) -> str:
    """``pages/search.md``."""
    first = points[0]
    setup = SETUP.format(evaluations=first["evaluations"], seeds=len({point["seed"] for point in points}))
    return PAGE.format(
        setup=wrapped(setup),
        gpus="\n".join(_section(*one) for one in by_gpu(points, rows)),
        optimum=optimum,
    )


def _section(name: str, points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    shown = FIGURES[points[0]["objective"]]
    sizes = {point["kernel"]: " ".join(f"{k}={v}" for k, v in point["problem"].items()) for point in points}
    return SECTION.format(
        gpu=name,
        spoken=shown.spoken,
        sizes=wrapped(SIZES.format(sizes="; ".join(f"{kernel} {given}" for kernel, given in sizes.items()))),
        summary=summary(points, rows),
        table=table(points, rows),
        capital=f"{shown.spoken[0].upper()}{shown.spoken[1:]}",
        picture=picture_of(name),
    )


SETUP = (
    "Generated by `python -m swizzle_benchmarks.evidence.search.compare --write`. Simulated by the timed replay, "
    "{evaluations} evaluations (replays of new permutations) each, {seeds} seeds, one thread. "
    "Searches of a GPU seek what they seek by default there: predicted time where measured pairs of orders say "
    "that times rank, else the L2 hit rate; the "
    "other figure stands beside it."
)
SIZES = "Sizes, chosen for short replays: {sizes}."
SECTION = """\
## {gpu}, by {spoken}

{sizes}

{summary}

{table}

![{capital} over evaluations on {gpu}: the best so far, mean and range over the seeds]({picture})
"""
PAGE = """\
# How the searches compare

{setup}

- *Families only*: published families at published parameters, in random order.
- *Random parameters*: a template of the families and its parameters, both drawn at random.
- *Two-stage search*: `--proposer search` as it is by default: the families' shortlist on half of the evaluations, then
  halving over templates, TPE with neighbours of the best, and for hit rates rungs that cost no evaluation, the bound of
  the assignment and a lockstep replay of two of the XCDs.
- *Formula edits*: changes numbers, operators and names of the best formulas so far.

± is the standard deviation over the seeds. *Evaluations to 95 %* is the median over the seeds that came 95 % of the way
from the launch order to the best of any method, and their number. A search ends before its evaluations are
used where the proven bound is reached or nothing new is left. Times of a trial are of one run on a shared machine.

{gpus}
## How near the default comes to the optimum

{optimum}
"""
