"""Whether the hardware counts a read of a line that is still on its way as a hit or as a miss.

    python -m benchmarks.fidelity.late_hits

The model calls it a hit (`xcd_model.traffic.Traffic.late_hits`). Printed for each kernel whose orders were counted: how
many of its requests are such hits in the timed replay, and the mean error of its rows if these count as hits, and as
misses. Nothing is replayed twice: only the counting differs. A minute on 2 cores.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES, Counts
from benchmarks.fidelity.rows import Row, all_rows
from benchmarks.fidelity.variants import predict
from xcd_model import gpu

LEAST = 0.02  # of all requests: where fewer are late, both ways of counting say the same
TUTORIAL = ("gemm_gluon_old", "gemm_gluon_between", "gemm_gluon_new")


@dataclass(frozen=True)
class Both:
    """A row counted both ways: share of late hits among requests, and the errors, in points or percent."""

    row: Row
    late: float
    as_hits: float
    as_misses: float


def rows() -> list[Row]:
    """Hit rates of the paper's kernels on MI300X, and L2 read misses of the tutorial's GEMM on MI355X."""
    return [
        row
        for row in all_rows()
        if (row.gpu == "mi300x" and row.quantity == "l2_hit_pct" and row.id.startswith("paper/"))
        or (row.kernel in TUTORIAL and row.quantity == "l2_read_misses")
    ]


def both(row: Row, counts: Counts) -> Both:
    """Errors of a row if late hits are hits, and if they are misses."""
    late, quantity = counts["l2_late_hits"], QUANTITIES[row.quantity]
    moved = {
        **counts,
        "l2_hit_pct": 100 * (counts["l2_hits"] - late) / counts["l2_requests"],
        "l2_read_misses": counts["l2_read_misses"] + late,
    }
    errors = [Prediction(row=row, variant="timed", value=quantity.of(way), counts=way).error for way in (counts, moved)]
    return Both(row, late / counts["l2_requests"], *(float("nan") if error is None else error for error in errors))


def _replayed(row: Row) -> Both:
    return both(row, predict(row, "timed", gpu(row.gpu)))


def table(found: list[Both]) -> str:
    """Markdown: one line a kernel with late hits, those that tell most first."""
    by_kernel: dict[tuple[str, str, str], list[Both]] = defaultdict(list)
    for one in found:
        if one.late >= LEAST:
            unit = "%" if QUANTITIES[one.row.quantity].relative else "points"
            by_kernel[one.row.gpu, one.row.kernel, unit].append(one)
    lines = ["| GPU | kernel | rows | late hits, of requests | error if hits | error if misses |", "| --- " * 6 + "|"]
    for (name, kernel, unit), some in sorted(by_kernel.items(), key=lambda item: -_mean(item[1], "as_misses")):
        hits, misses = _mean(some, "as_hits"), _mean(some, "as_misses")
        late = 100 * float(np.mean([one.late for one in some]))
        lines.append(f"| {name} | {kernel} | {len(some)} | {late:.0f} % | {hits:.1f} {unit} | {misses:.1f} {unit} |")
    return "\n".join(lines)


def _mean(some: list[Both], way: str) -> float:
    return float(np.mean([abs(getattr(one, way)) for one in some]))


def main() -> None:
    """Print the table."""
    chosen = rows()
    with ProcessPoolExecutor() as workers:
        replayed = workers.map(_replayed, chosen)
        found = list(track(replayed, "rows", total=len(chosen), console=Console(stderr=True)))
    print(table(found))


if __name__ == "__main__":
    main()
