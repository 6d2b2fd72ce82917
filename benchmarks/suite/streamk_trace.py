"""Access model of the Stream-K GEMM: which tile, and which K steps of it, each workgroup works on.

Locks are traced: an item read by who begins a tile for each workgroup that continues it, an item written by who
continues. They are set already, as in every launch but the first, so nobody spins. That partial sums are written
through is not modelled: they are stores like others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .declared import Sizes, cdiv


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


def access(s, build, pid, a, b, c, partial, lock) -> None:
    """Per K step a load of A and one of B; a store of C by who begins a tile, of a partial sum by who continues it."""
    plan = schedule(s.tiles, s.steps, s.PROGRAMS)
    for piece in plan.whole:
        _product(s, build, a, b, piece)
        build.step(_store_tile(s, build, c, piece, piece.count > 0))
    for piece in plan.shared:
        _product(s, build, a, b, piece)
        begins = (piece.first == 0) & (piece.count > 0)
        _add_partials(s, build, partial, lock, plan, np.where(begins, piece.count, plan.steps))
        build.step(_store_tile(s, build, c, piece, begins))
        continues = (piece.first > 0) & (piece.count > 0)
        build.step(
            build.write_box(partial, at=(*pid, 0, 0), size=(1, s.BLOCK_SIZE_M * continues, s.BLOCK_SIZE_N)),
            build.write_box(lock, at=pid, size=(continues,)),
        )


def tile_of(s: Sizes, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tile number to (m, n): groups of GROUP_M tile rows, column by column."""
    group, inside = np.divmod(tile, s.GROUP_M * cdiv(s.N, s.BLOCK_SIZE_N))
    rows = np.minimum(cdiv(s.M, s.BLOCK_SIZE_M) - group * s.GROUP_M, s.GROUP_M)
    rows = np.maximum(rows, 1)  # tiles behind the last belong to pieces of no steps
    return group * s.GROUP_M + inside % rows, inside // rows


def _product(s, build, a, b, piece: Piece) -> None:
    """Loads of A and B for each step of a piece."""
    trip = np.arange(max(1, int(piece.count.max())))[None, :]
    runs = trip < piece.count[:, None]
    pid_m, pid_n = tile_of(s, piece.tile)
    inner = (piece.first[:, None] + trip) * s.BLOCK_SIZE_K
    row, col = pid_m[:, None] * s.BLOCK_SIZE_M, pid_n[:, None] * s.BLOCK_SIZE_N
    build.step(
        build.read(a, row=row, col=inner, rows=s.BLOCK_SIZE_M * runs, cols=s.BLOCK_SIZE_K),
        build.read(b, row=inner, col=col, rows=s.BLOCK_SIZE_K * runs, cols=s.BLOCK_SIZE_N),
    )


def _store_tile(s, build, c, piece: Piece, who):
    pid_m, pid_n = tile_of(s, piece.tile)
    row, col = pid_m * s.BLOCK_SIZE_M, pid_n * s.BLOCK_SIZE_N
    return build.write(c, row=row, col=col, rows=s.BLOCK_SIZE_M * who, cols=s.BLOCK_SIZE_N)


def _add_partials(s, build, partial, lock, plan: Schedule, there: np.ndarray) -> None:
    """Lock and partial sum of each workgroup that continues a tile, read by who begins it and has ``there`` steps."""
    other = np.arange(plan.share.size) + 1
    while np.any(there < plan.steps):
        reads = there < plan.steps
        build.step(
            build.read_box(lock, at=(other,), size=(reads,)),
            build.read_box(partial, at=(other, 0, 0), size=(1, s.BLOCK_SIZE_M * reads, s.BLOCK_SIZE_N)),
        )
        there = there + np.where(reads, plan.share[np.minimum(other, plan.share.size - 1)], 0)
        other = other + 1
