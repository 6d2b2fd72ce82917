"""The comparison of searches as a table, a page and a picture."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

WIDTH = 118
LINES = (("#3b3b3b", ":"), ("#e69f00", "--"), ("#0072b2", "-"), ("#cc79a7", "-."))  # distinct without colours too
REACHED = 0.95  # part of the way from the launch order to the best of all
COLUMNS = (
    *("kernel", "method", "launch order [%]", "best L2 hit rate [%]", "range [%]", "evaluations to 95 %"),
    *("evaluations used", "wall time [s]", "processor time [s]"),
)


@dataclass(frozen=True)
class Cell:
    """One method on one kernel: a row a seed."""

    kernel: str
    method: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def bests(self) -> list[float]:
        """Best hit rate of each seed [%]."""
        return [100 * max(row["rates"]) for row in self.rows]

    @property
    def launch_order(self) -> float:
        """Hit rate of the launch order [%]."""
        return 100 * self.rows[0]["rates"][0]

    def mean(self, key: str) -> float:
        """Mean of a time over the seeds."""
        return statistics.mean(row[key] for row in self.rows)

    def evaluations_to(self, goal: float) -> list[int]:
        """Evaluations until a hit rate [%] was reached, of the seeds that reached it."""
        first = [next((i for i, rate in enumerate(row["rates"]) if 100 * rate >= goal), None) for row in self.rows]
        return [n for n in first if n is not None]


def cells_of(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Cell]]:
    """Cells by kernel, in the order of the points."""
    rows_of: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for point, row in zip(points, rows, strict=True):
        rows_of.setdefault((point["kernel"], point["method"]), []).append(row)
    found: dict[str, list[Cell]] = {}
    for (kernel, method), of in rows_of.items():
        found.setdefault(kernel, []).append(Cell(kernel, method, of))
    return found


def table(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown table over kernels and methods."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join('---' for _ in COLUMNS)} |"]
    for cells in cells_of(points, rows).values():
        best = max(max(cell.bests) for cell in cells)
        lines += [f"| {' | '.join(_row(cell, best))} |" for cell in cells]
    return "\n".join(lines)


def _row(cell: Cell, best: float) -> list[str]:
    seeds = len(cell.rows)
    reached = cell.evaluations_to(cell.launch_order + REACHED * (best - cell.launch_order))
    to_goal = f"{statistics.median(reached):.0f} ({len(reached)} of {seeds})" if reached else f"- (0 of {seeds})"
    spread = statistics.stdev(cell.bests) if seeds > 1 else 0.0
    return [
        cell.kernel,
        cell.method,
        f"{cell.launch_order:.2f}",
        f"{statistics.mean(cell.bests):.2f} ± {spread:.2f}",
        f"{min(cell.bests):.2f} to {max(cell.bests):.2f}",
        to_goal if best > cell.launch_order else "nothing to gain",
        f"{statistics.mean(len(row['rates']) - 1 for row in cell.rows):.0f}",
        f"{cell.mean('wall_s'):.1f}",
        f"{cell.mean('cpu_s'):.1f}",
    ]


def summary(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """How often each method is best, and how far it stays behind on average."""
    by_kernel = cells_of(points, rows)
    gains = {
        name: cells for name, cells in by_kernel.items() if max(max(c.bests) for c in cells) > cells[0].launch_order
    }
    lines = []
    for i, method in enumerate(dict.fromkeys(point["method"] for point in points)):
        means = {name: [statistics.mean(cell.bests) for cell in cells] for name, cells in gains.items()}
        first = sum(of[i] >= max(of) - 0.005 for of in means.values())
        behind = [max(max(c.bests) for c in gains[name]) - of[i] for name, of in means.items()]
        times = statistics.mean(cells[i].mean("wall_s") for cells in by_kernel.values())
        lines.append(
            f"- *{method}*: highest mean, ties counted, on {first} of the {len(gains)} kernels with something "
            f"to gain; on average {statistics.mean(behind):.2f} points below the best that any method found; "
            f"{times:.1f} s a trial."
        )
    return "\n".join(wrapped(line) for line in lines)


def wrapped(text: str) -> str:
    """A paragraph, or an item of a list, in lines of at most `WIDTH`."""
    return textwrap.fill(text, WIDTH, subsequent_indent="  " if text.startswith("- ") else "", break_on_hyphens=False)


def draw(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the picture: best hit rate so far over evaluations, mean and range of the seeds, a panel a kernel."""
    from matplotlib.figure import Figure

    by_kernel, most = cells_of(points, rows), max(point["evaluations"] for point in points)
    columns = min(5, len(by_kernel))
    n_rows = -(-len(by_kernel) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.4 * n_rows + 0.5), layout="constrained")
    panels = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for panel, (name, cells) in zip(panels, by_kernel.items(), strict=False):
        for cell, (colour, dashes) in zip(cells, LINES, strict=False):
            runs = [list(accumulate((100 * rate for rate in row["rates"]), max)) for row in cell.rows]
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
    figure.supxlabel("evaluations", fontsize=9)
    figure.supylabel("best L2 hit rate so far [%], simulated", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=8)
    figure.savefig(path, dpi=110)


def page(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], optimum: str) -> str:
    """docs/search.md."""
    sizes = {point["kernel"]: " ".join(f"{k}={v}" for k, v in point["problem"].items()) for point in points}
    return PAGE.format(
        setup=wrapped(
            SETUP.format(
                gpu=points[0]["gpu"],
                evaluations=points[0]["evaluations"],
                seeds=len({point["seed"] for point in points}),
                sizes="; ".join(f"{name} {given}" for name, given in sizes.items()),
            )
        ),
        table=table(points, rows),
        summary=summary(points, rows),
        optimum=optimum,
    )


SETUP = (
    "Generated by `python -m swizzle_benchmarks.search.compare --write`. "
    "Simulated: lockstep replay on `{gpu}`, {evaluations} "
    "evaluations (replays of new permutations) each, {seeds} seeds, one thread. The paper's ten kernels, at sizes "
    "whose replay takes milliseconds: {sizes}."
)
PAGE = """\
# How the searches compare

{setup}

- *Families only*: published families at published parameters, in random order.
- *Random parameters*: a template of the families and its parameters, both drawn at random.
- *Two-stage search*: `--proposer search` as it is by default: halving over templates, TPE with neighbours of the best,
  and two rungs that cost no evaluation, the bound of the assignment and a replay of two of the eight XCDs.
- *Formula edits*: changes numbers, operators and names of the best formulas so far.

{summary}

± is the standard deviation over the seeds. *Evaluations to 95 %* is the median over the seeds that came 95 % of the way
from the launch order to the best of any method, and their number. A search ends before its evaluations are
used where the proven bound is reached or nothing new is left. Times are of one run on a shared machine.

{table}

![Best hit rate so far over evaluations, mean and range over the seeds](search.png)

## How near the default comes to the optimum

{optimum}
"""
