"""Which L2 index function explains counters of GEMM at many shapes, and of reads again and again, on MI355X.

    python -m benchmarks.fidelity.folds

Each is tried with all other constants as they are; some minutes. The four orders of `benchmarks.fidelity.index` are of
one shape whose workgroups keep in step, and cannot tell the better functions apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.progress import track

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.rows import Row, all_rows
from benchmarks.fidelity.variants import predict
from xcd_model import Gpu, gpu

SHAPES = ("gemm_gluon_shapes", "gemm_gluon_persistent")
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
    line, bits = device.l2.line_bytes.bit_length() - 1, (device.l2.sets - 1).bit_length()
    channel, inside = 4, bits - 4
    plain = [1 << line + channel + bit for bit in range(inside)]
    return {
        "plain": folded(line, bits, ADDRESS_BITS),
        "channel of 128 B": [*folded(line, channel, channel), *plain],
        "channel of 256 B": [1 << line, *folded(line + 1, channel, channel), *(one << 1 for one in plain[:-1])],
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


def rows() -> list[Row]:
    """Passes over 64 and 128 KB a workgroup, and the GEMM launches that are not large."""
    found = [
        row for row in all_rows() if row.id in ("published/passes-64k:l2_hit_pct", "published/passes-128k:l2_hit_pct")
    ]
    shapes = [row for row in all_rows() if row.table == "shapes" and row.kernel in SHAPES]
    return found + [row for row in shapes if np.prod([row.problem[x] for x in "MNK"]) / 256**2 / 64 <= MOST_STEPS]


def errors(job: tuple[Row, Gpu]) -> float:
    """Predicted minus measured of one row, in points or percent."""
    row, device = job
    counts = predict(row, "timed", device)
    return Prediction(row=row, variant="timed", value=QUANTITIES[row.quantity].of(counts), counts=counts).error or 0.0


def table() -> str:
    """Markdown: what each function makes of the rows."""
    device, tried = gpu("mi355x"), rows()
    lines = [f"| index | 64 KB | 128 KB | mean of {len(tried) - 2} GEMMs | worst |", "| --- " * 5 + "|"]
    with ProcessPoolExecutor() as workers:
        for name, masks in track(functions(device).items(), "index functions"):
            off = list(workers.map(errors, [(row, with_function(device, masks)) for row in tried]))
            worst = max(off[2:], key=abs)
            lines.append(
                f"| {name} | {off[0]:+.1f} | {off[1]:+.1f} | {np.abs(off[2:]).mean():.2f} % | {worst:+.1f} % |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
