"""Stream-K GEMM: a fixed number of workgroups, whole tiles first, the rest dealt out in equal shares of K steps.

This is the GEMM that SwizzlePerf (arXiv 2508.20258) measured: 304 workgroups, one for each CU of an MI300X.

Its launch is like every one but the first: the kernel never takes a lock back, so all are set, nobody waits, and
``partial_ptr`` holds sums. Locks are traced: an item read by who begins a tile for each workgroup that continues it, an
item written by who continues. That partial sums are written through is not modelled: they are stores like others.
"""

from typing import NamedTuple

import numpy as np

from .declared import DOT, GRIDS, Declared, Sizes, Tensor, cdiv, lines_of, number
from .gemm import product


class Piece(NamedTuple):
    """K steps ``first .. first + steps - 1`` of a tile, an entry for each workgroup; ``steps`` 0 where it has none."""

    tile: np.ndarray
    first: np.ndarray
    steps: np.ndarray


def schedule(tiles: int, steps: int, programs: int) -> tuple[list[Piece], np.ndarray]:
    """Deal ``tiles`` of ``steps`` K steps each to ``programs`` workgroups.

    Gives the pieces of every workgroup in the order it works on them, and (programs,) how many steps each has of the
    tiles that are left over.
    """
    pid, rounds = np.arange(programs), tiles // programs
    pieces = [Piece(pid + r * programs, np.zeros_like(pid), np.full_like(pid, steps)) for r in range(rounds)]
    total = (tiles - rounds * programs) * steps
    share = total // programs + (pid < total % programs)
    last = np.cumsum(share)
    begin = last - share
    while np.any(begin < last):
        first = begin % steps
        count = np.minimum(steps - first, last - begin)
        pieces.append(Piece(rounds * programs + begin // steps, first, count))
        begin = begin + count
    return pieces, share


def access(s, build, pid, a, b, c, partial, lock) -> None:
    """Per K step a load of A and one of B; a store of C by who begins a tile, of a partial sum by who continues it."""
    pieces, share = schedule(s.tiles, s.steps, s.PROGRAMS)
    for piece in pieces:
        _product(s, build, a, b, piece)
        begins, continues = (piece.steps > 0) & (piece.first == 0), (piece.steps > 0) & (piece.first > 0)
        _add_partials(s, build, partial, lock, share, np.where(begins, piece.steps, s.steps))
        pid_m, pid_n = tile_of(s, piece.tile)
        row, col = pid_m * s.BLOCK_SIZE_M, pid_n * s.BLOCK_SIZE_N
        build.step(build.write(c, row=row, col=col, rows=s.BLOCK_SIZE_M * begins, cols=s.BLOCK_SIZE_N))
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
    trip = np.arange(max(1, int(piece.steps.max())))[None, :]
    runs = trip < piece.steps[:, None]
    pid_m, pid_n = tile_of(s, piece.tile)
    inner = (piece.first[:, None] + trip) * s.BLOCK_SIZE_K
    row, col = pid_m[:, None] * s.BLOCK_SIZE_M, pid_n[:, None] * s.BLOCK_SIZE_N
    build.step(
        build.read(a, row=row, col=inner, rows=s.BLOCK_SIZE_M * runs, cols=s.BLOCK_SIZE_K),
        build.read(b, row=inner, col=col, rows=s.BLOCK_SIZE_K * runs, cols=s.BLOCK_SIZE_N),
    )


def _add_partials(s, build, partial, lock, share: np.ndarray, there: np.ndarray) -> None:
    """Lock and partial sum of each workgroup that continues a tile, read by who begins it and has ``there`` steps."""
    other = np.arange(share.size) + 1
    while np.any(reads := there < s.steps):
        build.step(
            build.read_box(lock, at=(other,), size=(reads,)),
            build.read_box(partial, at=(other, 0, 0), size=(1, s.BLOCK_SIZE_M * reads, s.BLOCK_SIZE_N)),
        )
        there = there + np.where(reads, share[np.minimum(other, share.size - 1)], 0)
        other = other + 1


gemm_streamk = Declared(
    name="gemm_streamk",
    summary="C = A B, fp16, Stream-K on a fixed number of workgroups",
    sharing="""\
Workgroup p computes whole tiles p, p + PROGRAMS, ... and then the p-th share of the K steps of the tiles that are left
over. Tiles are numbered in groups of GROUP_M tile rows, column by column: GROUP_M workgroups in a row share a column
panel of B, every GROUP_M-th one a row panel of A. Whole tiles that run at the same time march through K together and
reuse each other's slices while they are in step; shares begin at different K, so workgroups that split a tile touch
different slices. Who begins a tile reads the fp32 partial sums of those who continue it, written just before.""",
    sources=("arXiv 2508.20258, appendix A.2", "arXiv 2301.03598"),
    sizes={
        **{"M": 8192, "N": 8192, "K": 8192, "BLOCK_SIZE_M": 256, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64},
        "GROUP_M": 8,  # tile rows in a group
        "PROGRAMS": 304,  # workgroups launched
    },
    derived={
        "tiles": lambda s: number(s, "M/BLOCK_SIZE_M*N/BLOCK_SIZE_N"),
        "steps": lambda s: cdiv(s.K, s.BLOCK_SIZE_K),  # of a tile
        "all_steps": lambda s: s.tiles * s.steps,
    },
    grid="PROGRAMS",
    others=lambda s: [{"PROGRAMS": n} for (n,) in GRIDS[1] if n <= s.all_steps],  # a step for each
    tensors={
        **{"a": Tensor("M K"), "b": Tensor("K N"), "c": Tensor("M N", role="out")},
        "partial": Tensor("PROGRAMS BLOCK_SIZE_M BLOCK_SIZE_N", "fp32", role="inout", fill=0),
        "lock": Tensor("PROGRAMS", "int32", role="inout", fill=1, is_index=True),
    },
    arguments="M N K",
    constexprs="BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K GROUP_M PROGRAMS",
    access=access,
    reference=product,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
    padded="M/BLOCK_SIZE_M N/BLOCK_SIZE_N K/BLOCK_SIZE_K",
    blocks={"BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K": DOT},
    rules={
        "PROGRAMS = {s.PROGRAMS}: {s.tiles} tiles of {s.steps} K steps are not a step for each workgroup; at most "
        "{s.all_steps}": lambda s: s.all_steps >= s.PROGRAMS
    },
    work=lambda s: (
        2 * s.all_steps / s.PROGRAMS,
        s.all_steps * (s.BLOCK_SIZE_M + lines_of(s.BLOCK_SIZE_K, s.BLOCK_SIZE_N)) / s.PROGRAMS,
    ),
    # The measured tile does not fit 256 threads: the compiler spills 1334 registers a lane, which no trace shows.
    compiled={((128, 128, 64), 4): (264, 32 * 1024), ((256, 256, 64), 4): (512, 64 * 1024)},
    num_warps=4,  # what the measured runs used; the wrapper of the kernel did not pass on the 8 it was given
    in_flight=4,
    loads_per_step=2,
)
