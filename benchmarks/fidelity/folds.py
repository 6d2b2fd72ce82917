"""Which L2 index function explains counters of GEMM at many shapes, and of reads again and again, on MI355X.

    python -m benchmarks.fidelity.folds

Each is tried with all other constants as they are; 13 minutes on 2 cores. The four orders of
`benchmarks.fidelity.index` are of one shape whose workgroups keep in step, and cannot tell the better functions apart.
First comes what the three tables of counts of that shape are under the function in use, and under the MI300X's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.progress import track

from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.rows import Row, all_rows
from benchmarks.fidelity.variants import predict
from xcd_model import Gpu, gpu
from xcd_model.spec.index import fold_rows

TUTORIAL = ("gemm_gluon_old", "gemm_gluon_between", "gemm_gluon_new")
MOST_STEPS = 300_000  # of K, over all tiles of a launch: the larger ones take most of the time and say the same
ADDRESS_BITS = 40


def folded(first: int, bits: int, by: int) -> list[int]:
    """Masks of ``bits`` index bits that address bits from ``first`` on are folded to, ``by`` at a time."""
    return [
        sum(1 << at for at in range(first + bit, ADDRESS_BITS, by)) if bit < by else 1 << first + bit
        for bit in range(bits)
    ]


def functions(device: Gpu) -> dict[str, list[int]]:
    """Masks of the set's bits from those of the address, for each function tried."""
    l2 = device.l2
    line, bits, channel = (n.bit_length() - 1 for n in (l2.line_bytes, l2.sets, l2.channels))
    inside = bits - channel
    return {
        "plain": folded(line, bits, ADDRESS_BITS),
        "channel of 128 B": [row << line for row in fold_rows(l2.sets, l2.channels, 1)],
        "channel of 256 B": [row << line for row in fold_rows(l2.sets, l2.channels, 2)],
        "channel of 128 B, set": [*folded(line, channel, channel), *folded(line + channel, inside, inside)],
        "channel of 256 B, set": [
            1 << line, *folded(line + 1, channel, channel), *folded(line + 1 + channel, inside - 1, inside - 1),
        ],
        **{f"set, by {by}": folded(line, bits, by) for by in (8, 9, 10, 11, 12, 13)},
        "as the MI300X": list(gpu("mi300x").l2.index_rows or ()),
    }  # fmt: skip


def with_function(device: Gpu, masks: Sequence[int]) -> Gpu:
    """Same GPU with another index function in its L2."""
    l2 = dataclasses.replace(
        device.l2, index="xor", index_rows=tuple(masks), index_channels=None, index_interleave_bytes=None
    )
    return dataclasses.replace(device, l2=l2)


def steps(row: Row) -> int:
    """Steps of K over all tiles of a GEMM."""
    return math.prod(-(-row.problem[axis] // row.problem[f"B{axis}"]) for axis in "MNK")


def rows() -> list[Row]:
    """Passes over 64 and 128 KB a workgroup, and the GEMM launches that are not large."""
    found = [
        row for row in all_rows() if row.id in ("published/passes-64k:l2_hit_pct", "published/passes-128k:l2_hit_pct")
    ]
    return found + [row for row in all_rows() if row.table == "shapes" and steps(row) <= MOST_STEPS]


def error_of(job: tuple[Row, Gpu]) -> float:
    """Predicted minus measured of one row, in points or percent."""
    row, device = job
    counts = predict(row, "timed", device)
    found = Prediction(row=row, variant="timed", value=QUANTITIES[row.quantity].of(counts), counts=counts).error
    if found is None:
        raise LookupError(f"{row.id}: nothing is predicted")
    return found


def by_function() -> str:
    """Markdown: what each function makes of passes and of GEMM at many shapes."""
    device, tried = gpu("mi355x"), rows()
    lines = []
    with ProcessPoolExecutor() as workers:
        for name, masks in track(functions(device).items(), "index functions"):
            off = list(workers.map(error_of, [(row, with_function(device, masks)) for row in tried]))
            worst = max(off[2:], key=abs)
            mean = float(np.abs(off[2:]).mean())
            lines.append([name, f"{off[0]:+.1f}", f"{off[1]:+.1f}", f"{mean:.2f} %", f"{worst:+.1f} %"])
    return table(["index", "64 KB", "128 KB", f"mean of {len(tried) - 2} GEMMs", "worst"], lines)


def by_count() -> str:
    """Markdown: the counts of one shape's orders, and how far each of two functions is from them."""
    device = gpu("mi355x")
    both = (device, with_function(device, functions(device)["as the MI300X"]))
    lines = []
    with ProcessPoolExecutor() as workers:
        found = [row for name in TUTORIAL for row in all_rows() if row.kernel == name]
        off = list(workers.map(error_of, [(row, one) for row in found for one in both]))
    for row, here, there in zip(found, off[::2], off[1::2], strict=True):
        lines.append([row.kernel, row.order, f"{row.measured:.0f}", f"{here:+.1f} %", f"{there:+.1f} %"])
    return table(["kernel", "order", "counted", "index in use", "as the MI300X"], lines)


if __name__ == "__main__":
    print(by_count(), by_function(), sep="\n", end="")
