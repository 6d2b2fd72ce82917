"""Access model of the Stream-K GEMM: which tile, and which K steps of it, each workgroup works on.

Locks are traced: an item read by who begins a tile for each workgroup that continues it, an item written by who
continues. They are set already, as in every launch but the first, so nobody spins. That partial sums are written
through is not modelled: they are stores like others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xcd_model import Trace, TraceBuilder
from xcd_model.trace.builder import Access, PlacedArray

ITEM_BYTES, SUM_BYTES, LOCK_BYTES = 2, 4, 4  # fp16, fp32, int32


class Piece(NamedTuple):
    """K steps ``first .. first + count - 1`` of a tile, an entry for each workgroup; ``count`` 0 where it has none."""

    tile: np.ndarray
    first: np.ndarray
    count: np.ndarray


class Schedule(NamedTuple):
    """Pieces of every workgroup in the order it works on them.

    ``whole`` are whole tiles, ``shared`` pieces of the tiles left over; ``share`` (programs,) counts the steps that
    each workgroup has of the latter, ``steps`` those of a tile.
    """

    whole: list[Piece]
    shared: list[Piece]
    share: np.ndarray
    steps: int


def schedule(tiles: int, steps: int, programs: int) -> Schedule:
    """Deal ``tiles`` of ``steps`` K steps each to ``programs`` workgroups."""
    pid = np.arange(programs)
    rounds = tiles // programs
    full = np.full(programs, steps)
    whole = [Piece(pid + r * programs, np.zeros(programs, np.int64), full) for r in range(rounds)]
    total = (tiles - rounds * programs) * steps
    share = total // programs + (pid < total % programs)
    last = np.cumsum(share)
    begin, shared = last - share, []
    while np.any(begin < last):
        first = begin % steps
        count = np.minimum(steps - first, last - begin)
        shared.append(Piece(rounds * programs + begin // steps, first, count))
        begin = begin + count
    return Schedule(whole, shared, share, steps)


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Per K step a load of A and one of B; a store of C by who begins a tile, of a partial sum by who continues it."""
    m, n, k, programs = (problem[name] for name in ("M", "N", "K", "PROGRAMS"))
    block_m, block_n, block_k = (problem[f"BLOCK_SIZE_{axis}"] for axis in "MNK")
    build = TraceBuilder(n_workgroups=programs, line_bytes=line_bytes)
    arrays = {
        "a": build.array("a", rows=m, cols=k, item_bytes=ITEM_BYTES),
        "b": build.array("b", rows=k, cols=n, item_bytes=ITEM_BYTES),
        "c": build.array("c", rows=m, cols=n, item_bytes=ITEM_BYTES),
        "partial": build.array("partial", rows=programs * block_m, cols=block_n, item_bytes=SUM_BYTES),
        "lock": build.place("lock", shape=(programs,), item_bytes=LOCK_BYTES),
    }
    plan = schedule(-(-m // block_m) * -(-n // block_n), -(-k // block_k), programs)
    for piece in plan.whole:
        _product(build, arrays, problem, piece)
        build.step(_store_tile(build, arrays["c"], problem, piece, piece.count > 0))
    for piece in plan.shared:
        _product(build, arrays, problem, piece)
        begins = (piece.first == 0) & (piece.count > 0)
        _add_partials(build, arrays, problem, piece, plan, begins)
        build.step(_store_tile(build, arrays["c"], problem, piece, begins))
        continues = (piece.first > 0) & (piece.count > 0)
        pid = np.arange(programs)
        build.step(
            build.write(arrays["partial"], row=pid * block_m, col=0, rows=block_m * continues, cols=block_n),
            build.write_box(arrays["lock"], at=(pid,), size=(continues,)),
        )
    return build.trace()


def tile_of(problem: Mapping[str, int], tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile number to (m, n): groups of GROUP_M tile rows, column by column."""
    tiles_m, tiles_n = (-(-problem[size] // problem[f"BLOCK_SIZE_{size}"]) for size in "MN")
    group, inside = np.divmod(tile, problem["GROUP_M"] * tiles_n)
    rows = np.minimum(tiles_m - group * problem["GROUP_M"], problem["GROUP_M"])
    rows = np.maximum(rows, 1)  # tiles behind the last belong to pieces of no steps
    return group * problem["GROUP_M"] + inside % rows, inside // rows


def _product(build: TraceBuilder, arrays: Mapping[str, PlacedArray], problem: Mapping[str, int], piece: Piece) -> None:
    """Loads of A and B for each step of a piece."""
    block_m, block_n, block_k = (problem[f"BLOCK_SIZE_{axis}"] for axis in "MNK")
    trip = np.arange(max(1, int(piece.count.max())))[None, :]
    runs = trip < piece.count[:, None]
    pid_m, pid_n = tile_of(problem, piece.tile)
    inner = (piece.first[:, None] + trip) * block_k
    row, col = pid_m[:, None] * block_m, pid_n[:, None] * block_n
    build.step(
        build.read(arrays["a"], row=row, col=inner, rows=block_m * runs, cols=block_k),
        build.read(arrays["b"], row=inner, col=col, rows=block_k * runs, cols=block_n),
    )


def _store_tile(build: TraceBuilder, c: PlacedArray, problem: Mapping[str, int], piece: Piece, who) -> Access:
    block_m, block_n = problem["BLOCK_SIZE_M"], problem["BLOCK_SIZE_N"]
    pid_m, pid_n = tile_of(problem, piece.tile)
    return build.write(c, row=pid_m * block_m, col=pid_n * block_n, rows=block_m * who, cols=block_n)


def _add_partials(
    build: TraceBuilder,
    arrays: Mapping[str, PlacedArray],
    problem: Mapping[str, int],
    piece: Piece,
    plan: Schedule,
    begins: np.ndarray,
) -> None:
    """Lock and partial sum of each workgroup that continues a tile, read by who begins it."""
    block_m = problem["BLOCK_SIZE_M"]
    other = np.arange(plan.share.size) + 1
    there = np.where(begins, piece.count, plan.steps)
    while np.any(there < plan.steps):
        reads = there < plan.steps
        build.step(
            build.read_box(arrays["lock"], at=(other,), size=(reads,)),
            build.read(
                arrays["partial"], row=other * block_m, col=0, rows=block_m * reads, cols=problem["BLOCK_SIZE_N"]
            ),
        )
        there = there + np.where(reads, plan.share[np.minimum(other, plan.share.size - 1)], 0)
        other = other + 1
