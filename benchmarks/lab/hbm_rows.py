"""The row length of HBM that explains the time of a piece by its distance to others.

The table has, for pairs of pieces by how far apart they lie, and for pieces drawn within spans of memory by the length
of the span, the time that a piece takes. `hbm_rows_fit` maps those pieces to rows as the H200's description says, and
prints the share that activates a row next to the time of a read, for other interleaves, rows and bank counts too.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.progress import track

from swizzle_benchmarks.validation.rows import DATA
from xcd_model import gpu
from xcd_model.compiled.numba_setup import njit
from xcd_model.nvidia.memory import _activation, idle_hbm
from xcd_model.spec.nvidia import HbmBanks

MEMORY_BYTES, PIECES = 1 << 32, 1 << 20
SPANS, BLOCKS = (512, 1024, 2048, 4096, 8192), (4, 8, 16)
ASSUMED_BEFORE = (4, 24)  # blocks of a row, of a stretch: decision 0022, without a hash


@dataclass(frozen=True)
class Stretches:
    """Reads of one piece of every ``apart_bytes``, in drawn order within ``within_bytes``, and what one took."""

    apart_bytes: int
    within_bytes: int
    ps: float

    def lines(self, line_bytes: int, pieces: int = PIECES) -> np.ndarray:
        """(pieces,) int64: the line of each piece, in the order in which they are read."""
        inside = self.within_bytes // self.apart_bytes
        draw = np.random.default_rng(0)
        stretches = draw.permutation(MEMORY_BYTES // self.within_bytes)[: max(1, pieces // inside)]
        places = [stretch * inside + draw.permutation(inside) for stretch in stretches]
        return np.concatenate(places)[:pieces] * (self.apart_bytes // line_bytes)


def measured_stretches(what: str = "read") -> list[Stretches]:
    """Lines of the measured table with at least two pieces in a stretch."""
    with (DATA / "machine" / "h200_memory_rows.csv").open(encoding="utf-8", newline="") as file:
        lines = [one for one in csv.DictReader(file) if one["what"] == what]
    found = [Stretches(int(one["apart_bytes"]), int(one["within_bytes"]), float(one["ps"])) for one in lines]
    return [one for one in found if one.within_bytes > one.apart_bytes]


def shares(rows: HbmBanks, drawn: Iterable[np.ndarray], line_bytes: int) -> np.ndarray:
    """Share of the pieces of each order that open a row."""
    return np.array([_opened(idle_hbm(rows, line_bytes), lines) / lines.size for lines in drawn])


@njit
def _opened(rows, lines):
    opened = 0
    for line in lines:
        opened += _activation(rows, line, 0, 1)
    return opened


def line_through(found: np.ndarray, ps: np.ndarray) -> tuple[float, float, float]:
    """Least squares: time of a piece whose row is open, what opening one adds, and the root mean square left [ps]."""
    (slope, open_ps), (left, *_), *_ = np.polyfit(found, ps, 1, full=True)
    return float(open_ps), float(slope), float(np.sqrt(left / ps.size))


def hbm_rows_fit() -> None:
    """Print the share of row activations beside the time of a read, and the fit of other row lengths."""
    device, measured = gpu("h200"), measured_stretches()
    rows, line_bytes, ps = device.hbm_rows, device.l2.line_bytes, np.array([one.ps for one in measured])
    if rows is None:
        sys.exit(f"{device.name} is described without rows of the memory")
    stderr = Console(stderr=True)
    drawn = [one.lines(line_bytes) for one in track(measured, description="orders", console=stderr, transient=True)]
    _print_shares(measured, shares(rows, drawn, line_bytes))
    print("\n| blocks of a row | blocks of a stretch | banks | ps with its row open | ps more to open one | left, ps |")
    print("| --- | --- | --- | --- | --- | --- |")
    banks = rows.open_rows
    tried = [(blocks, stretch, banks) for blocks in BLOCKS for stretch in SPANS]
    tried += [(rows.blocks, rows.stretch_blocks, banks * 2), (*ASSUMED_BEFORE, banks)]
    for blocks, stretch, several in track(tried, description="descriptions", console=stderr, transient=True):
        other = replace(rows, blocks=blocks, stretch_blocks=stretch, open_rows=several)
        open_ps, slope, left = line_through(shares(other, drawn, line_bytes), ps)
        print(f"| {blocks} | {stretch} | {several} | {open_ps:.1f} | {slope:.1f} | {left:.2f} |")


def _print_shares(measured: list[Stretches], found: np.ndarray) -> None:
    by_place: Mapping[tuple[int, int], str] = {
        (one.apart_bytes, one.within_bytes): f"{one.ps:.1f}, {share:.2f}"
        for one, share in zip(measured, found, strict=True)
    }
    aparts = sorted({apart for apart, _ in by_place})
    print("| drawn within, KiB |" + "".join(f" every {apart} B: ps, share that opens |" for apart in aparts))
    print("| --- |" + " --- |" * len(aparts))
    for within in sorted({within for _, within in by_place}):
        cells = "".join(f" {by_place.get((apart, within), '-')} |" for apart in aparts)
        print(f"| {within / 1024:.8g} |{cells}")
