"""Whether upper address bits reach the channel of the MI300X's L2.

    python -m benchmarks.fidelity.channels

A set is a channel and a set within it. The four bits of the channel are as each column says; the seven of the set
within it are drawn, each the XOR of one low bit and about half of all upper ones, so that nothing is fitted. All other
constants are as they are. Printed: what each order hits, the mean of some draws and their standard deviation, beside
what was counted and what the function in use gives. 5 minutes on 2 cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.fidelity.folds import ADDRESS_BITS, error_of, folded, with_function
from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.rows import Row, all_rows
from xcd_model import Gpu, gpu

DRAWS = 4
LAUNCHES = ("stencil_2d@256x256", "transpose@256x256", "fdtd_2d@128x128", "layer_norm@8192")  # of the paper's kernels
ATTENTION = "mi300x-1x32x8x4096x128x1x256x64"  # the shape of dense attention that takes least time


def channels(device: Gpu) -> dict[str, list[int]]:
    """Masks of the channel's bits, for each choice tried."""
    line, bits = (n.bit_length() - 1 for n in (device.l2.line_bytes, device.l2.channels))

    def plain(first: int) -> list[int]:
        return [1 << first + bit for bit in range(bits)]

    return {
        "128 B": plain(line),
        "256 B": plain(line + 1),
        "256 B, bit 13": [*plain(line + 1)[:-1], 1 << line + bits | 1 << 13],
        "512 B": plain(line + 2),
        "128 B, folded": folded(line, bits, bits),
        "256 B, folded": folded(line + 1, bits, bits),
    }


def drawn(device: Gpu, channel: Sequence[int], seed: int) -> list[int]:
    """Masks of all bits of the set: the channel's, and a drawn function of the other address bits."""
    line = device.l2.line_bytes.bit_length() - 1
    taken = {(mask & -mask).bit_length() - 1 for mask in channel}  # each mask is named by its lowest bit
    other = [bit for bit in range(line, ADDRESS_BITS) if bit not in taken]
    inside = device.l2.sets.bit_length() - 1 - len(channel)
    upper = np.random.default_rng(seed).integers(0, 2, (inside, len(other) - inside))
    return [
        *channel,
        *(
            1 << other[bit] | sum(1 << at for at, there in zip(other[inside:], upper[bit], strict=True) if there)
            for bit in range(inside)
        ),
    ]


def rows() -> list[Row]:
    """Orders whose hit rate depends on the index, of launches that take seconds to replay."""
    return [
        row
        for row in all_rows()
        if row.gpu == "mi300x"
        and row.quantity == "l2_hit_pct"
        and (
            row.id.startswith(tuple(f"paper/{name}:" for name in LAUNCHES)) or row.id.startswith(f"dense/{ATTENTION}:")
        )
    ]


def by_order() -> str:
    """Markdown: what each choice makes of each order."""
    device, tried = gpu("mi300x"), rows()
    choices = channels(device)
    lines = []
    off: dict[str, np.ndarray] = {}
    with ProcessPoolExecutor() as workers:
        off["in use"] = np.array([list(workers.map(error_of, [(row, device) for row in tried]))])
        for name, channel in track(choices.items(), "choices of channel", console=Console(stderr=True)):
            devices = [with_function(device, drawn(device, channel, seed)) for seed in range(DRAWS)]
            found = list(workers.map(error_of, [(row, one) for row in tried for one in devices], chunksize=DRAWS))
            off[name] = np.reshape(found, (len(tried), DRAWS)).T
    for at, row in enumerate(tried):
        rates = [f"{row.measured + off['in use'][0, at]:.1f}"]
        rates += [f"{row.measured + off[name][:, at].mean():.0f} ± {off[name][:, at].std():.0f}" for name in choices]
        lines.append([row.kernel, row.order, f"{row.measured:.1f}", *rates])
    means = [f"{np.abs(found.mean(axis=0)).mean():.1f}" for found in off.values()]
    lines.append(["mean error, points", "", "", *means])
    return table(["kernel", "order", "counted", "in use", *choices], lines)


if __name__ == "__main__":
    print(by_order(), end="")
