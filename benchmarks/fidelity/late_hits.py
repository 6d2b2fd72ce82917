"""Whether the hardware counts a read of a line that is still on its way as a hit or as a miss.

    python -m benchmarks.fidelity.late_hits

The model calls it a hit (`xcd_model.replay.traffic.Traffic.hits_under_miss`). Printed for each kernel: how many of its
requests are such hits in the timed replay, over the orders that have some, and the mean error of these if they count as
hits, and as misses. Nothing is replayed twice: only the counting differs. Rows are of hits and misses that the L2
itself counted: what it asked memory for would not tell, since two misses of a line may be one request. A minute on 2
cores.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES, Counts
from benchmarks.fidelity.rows import Row, all_rows
from benchmarks.fidelity.variants import predict
from xcd_model import gpu

LEAST = 0.02  # of all requests: where fewer are late, both ways of counting say the same
MOST_TILES = 5000  # of a GEMM: more take minutes


@dataclass(frozen=True)
class Both:
    """A row counted both ways: share of late hits among requests, and the errors, in points or percent.

    A late hit is a line, and so is a read request of AMD's L2s.
    """

    row: Row
    late: float
    as_hits: float
    as_misses: float


def rows() -> list[Row]:
    """Hit rates of the paper's kernels on MI300X, hit rates and misses of GEMMs on MI355X."""
    return [
        row
        for row in all_rows()
        if (row.quantity == "l2_hit_pct" and row.table == "paper")
        or (row.quantity in ("l2_hit_pct", "l2_misses") and row.gpu == "mi355x" and _is_small_gemm(row))
    ]


def _is_small_gemm(row: Row) -> bool:
    size = row.problem
    return row.table == "published" and "BK" in size and size["M"] * size["N"] <= MOST_TILES * size["BM"] * size["BN"]


def both(row: Row, counts: Counts) -> Both:
    """Errors of a row if late hits are hits, and if they are misses."""
    late, quantity = counts["l2_late_hits"], QUANTITIES[row.quantity]
    moved = {
        **counts,
        "l2_hit_pct": 100 * (counts["l2_hits"] - late) / counts["l2_requests"],
        "l2_misses": counts["l2_misses"] + late,
    }
    errors = [Prediction(row=row, variant="timed", value=quantity.of(way), counts=way).error for way in (counts, moved)]
    return Both(row, late / counts["l2_requests"], *(float("nan") if error is None else error for error in errors))


def _replayed(row: Row) -> Both:
    return both(row, predict(row, "timed", gpu(row.gpu)))


def by_kernel(found: list[Both]) -> str:
    """Markdown: one line a kernel with late hits; those in percent first, then by how far the two ways are apart."""
    of_kernel: dict[tuple[str, str, str], list[Both]] = defaultdict(list)
    for one in found:
        unit = "%" if QUANTITIES[one.row.quantity].relative else "points"
        of_kernel[unit, one.row.gpu, one.row.kernel].append(one)
    late = {key: [one for one in some if one.late >= LEAST] for key, some in of_kernel.items()}
    lines = []
    for key in sorted(filter(late.get, late), key=lambda key: (key[0], -_apart(late[key]))):
        (unit, name, kernel), some = key, late[key]
        hits, misses = (f"{_mean(some, way):.1f} {unit}" for way in ("as_hits", "as_misses"))
        share = 100 * float(np.mean([one.late for one in some]))
        count = f"{len(some)} of {len(of_kernel[key])}"
        lines.append([name, kernel, count, f"{share:.0f} %", hits, misses])
    return table(["GPU", "kernel", "rows", "late hits, of requests", "error if hits", "error if misses"], lines)


def _apart(some: list[Both]) -> float:
    return _mean(some, "as_misses") - _mean(some, "as_hits")


def _mean(some: list[Both], way: str) -> float:
    return float(np.mean([abs(getattr(one, way)) for one in some]))


def main() -> None:
    """Print the table."""
    chosen = rows()
    with ProcessPoolExecutor() as workers:
        replayed = workers.map(_replayed, chosen)
        found = list(track(replayed, "rows", total=len(chosen), console=Console(stderr=True)))
    print(by_kernel(found), end="")


if __name__ == "__main__":
    main()
