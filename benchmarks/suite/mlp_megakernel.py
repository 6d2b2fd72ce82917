"""Megakernel of two stages: both GEMMs of an MLP as tiles of one launch, claimed from a queue an XCD.

The tile grid has M / BLOCK_M rows and, beside the tiles of H, those of Y: a swizzle orders the queues, and may have an
XCD compute Y from rows of H that it wrote. A tile of Y waits for its whole row of H; an order that hands it out before
that is refused. The default is 8192 tokens of an MLP of 2048 and 8192 features.
Sources: Fleet (arXiv 2604.15379; a queue an XCD), ROCm/tritonBLAS PR 64 (claims), Megatron-LM (an MLP is 4 x as wide).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Claims, Trace, TraceBuilder, Waits
from xcd_model.errors import SizeError

from .base import check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "mlp_megakernel"
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
NUM_WARPS = 8
NUM_STAGES = 2
BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
# (tile, waves): (VGPRs, LDS bytes)
COMPILED = {
    ((128, 128, 64), NUM_WARPS): (168, 32 * 1024),
    ((256, 128, 64), NUM_WARPS): (240, 48 * 1024),
    ((16, 128, 64), NUM_WARPS): (72, 18 * 1024),
    ((16, 64, 128), NUM_WARPS): (184, 20 * 1024),
}
# tile rows, tile columns of H and of Y
GRIDS = (
    *((1, 1, 1), (3, 2, 1), (5, 4, 1), (2, 2, 2), (4, 4, 4), (7, 6, 2), (8, 6, 2), (11, 8, 3), (13, 3, 2)),
    *((16, 12, 4), (16, 16, 5), (32, 4, 1), (37, 2, 1), (64, 12, 4)),
)
HUNDREDTHS = 100  # of the tiles, in LOCAL

SHARING = """\
Workgroups are PROGRAMS programs that stay; one that has ended a tile claims the next: program p from queue p % POOLS,
which hands out tiles p % POOLS, p % POOLS + POOLS, ... below LOCAL hundredths of all; where that is empty from the
tiles after them, which are for all. Tile (m, n) with n below H / BLOCK_N reads row panel m of X and column panel n of
W1 and writes tile (m, n) of H. Any other reads row panel m of H, which all tiles (m, 0) to (m, H / BLOCK_N - 1) wrote
and it waits for, and column panel n - H / BLOCK_N of W2, and writes a tile of Y: it has H / K times the steps. A tile
of Y must not be handed out before the tiles of H in its row."""


def mlp_megakernel(
    *,
    M: int = 8192,
    K: int = 2048,
    H: int = 8192,
    N: int = 2048,
    BLOCK_M: int = 128,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
    PROGRAMS: int = 304,
    POOLS: int = 8,
    LOCAL: int = 100,
) -> Kernel:
    """Y = max(X W1, 0) W2 in fp16 by programs that claim tiles of both products.

    Parameters
    ----------
    M, K, H, N : int
        X is (M, K), W1 is (K, H), W2 is (H, N), Y is (M, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile of both products; powers of two from 16 to 1024.
    PROGRAMS : int
        Programs launched, at least one for each queue; more than tiles are as many as tiles.
    POOLS : int
        Queues of their own that programs ask first; 1 with LOCAL = 100 is one queue for all.
    LOCAL : int
        Tiles in those queues, in hundredths of all; the others are for all programs.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, a queue has no program, LOCAL is above 100, or the problem is too large
        to trace.
    """
    problem = {"M": M, "K": K, "H": H, "N": N, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    problem |= {"PROGRAMS": PROGRAMS, "POOLS": POOLS, "LOCAL": LOCAL}
    _check(problem)
    rows, first, second = _tiles(problem)
    n_tiles = rows * (first + second)
    tile_flops = 2.0 * BLOCK_M * BLOCK_N * BLOCK_K
    return Kernel(
        name=NAME,
        summary="Y = max(X W1, 0) W2, fp16, one launch for both products, a queue of tiles an XCD",
        problem=problem,
        dtype="fp16",
        grid=Grid((n_tiles,), (rows, first + second)),
        flops=2.0 * M * H * (K + N),
        issued_flops=tile_flops * rows * (first * -(-K // BLOCK_K) + second * -(-H // BLOCK_K)),
        resources=resources(COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("Fleet, arXiv 2604.15379", "ROCm/tritonBLAS PR 64"),
        at_grids=lambda: _at_grids(problem),
        programs=min(PROGRAMS, n_tiles),
        claims=Claims(pools=POOLS, local=_local(problem)),
        waits=waits,
        make_launch=lambda: launch(problem),
    )


def _tiles(problem: Mapping[str, int]) -> tuple[int, int, int]:
    """Tile rows, tile columns of H, tile columns of Y."""
    return (
        -(-problem["M"] // problem["BLOCK_M"]),
        -(-problem["H"] // problem["BLOCK_N"]),
        -(-problem["N"] // problem["BLOCK_N"]),
    )


def _flags(problem: Mapping[str, int]) -> int:
    """Flags that a tile of Y loads at once: those of a row of H, up to a power of two."""
    return 1 << (_tiles(problem)[1] - 1).bit_length()


def _local(problem: Mapping[str, int]) -> int:
    """Tiles in the queues of their own."""
    rows, first, second = _tiles(problem)
    return rows * (first + second) * problem["LOCAL"] // HUNDREDTHS


def _check(problem: Mapping[str, int]) -> None:
    check_dot_block(NAME, **{name: problem[name] for name in BLOCKS})
    if problem["LOCAL"] > HUNDREDTHS:
        raise SizeError(f"{NAME}: LOCAL = {problem['LOCAL']}: hundredths of the tiles, at most {HUNDREDTHS}")
    if problem["PROGRAMS"] < min(problem["POOLS"], _local(problem)):
        raise SizeError(
            f"{NAME}: PROGRAMS = {problem['PROGRAMS']}, POOLS = {problem['POOLS']}: a queue without a program is never "
            "emptied"
        )
    for what, items in (("X", "MK"), ("W1", "KH"), ("H", "MH"), ("W2", "HN"), ("Y", "MN")):
        check_items(NAME, what, problem[items[0]] * problem[items[1]])
    rows, first, second = _tiles(problem)
    steps = rows * (first * -(-problem["K"] // problem["BLOCK_K"]) + second * -(-problem["H"] // problem["BLOCK_K"]))
    lines = lines_of(problem["BLOCK_M"], problem["BLOCK_K"]) + lines_of(problem["BLOCK_K"], problem["BLOCK_N"])
    check_traceable(NAME, workgroups=rows * (first + second), instructions=2.0 * steps, touches=steps * lines)


def waits(problem: Mapping[str, int]) -> Waits:
    """Tiles of H set flags of their row, tiles of Y wait for all of theirs."""
    rows, first, second = _tiles(problem)
    pid_m, pid_n = np.divmod(np.arange(rows * (first + second), dtype=np.int64), first + second)
    return Waits(sets=np.where(pid_n < first, pid_m, -1), awaits=np.where(pid_n < first, -1, pid_m))


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size, all counters at 0.

    Flags are set already, so that programs can be run one after the other; a bundle has zeros there.
    """
    m, k, h, n = (problem[name] for name in ("M", "K", "H", "N"))
    rows, first, second = _tiles(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "x_ptr": Array(shape=(m, k), dtype="fp16"),
            "w1_ptr": Array(shape=(k, h), dtype="fp16"),
            "h_ptr": Array(shape=(m, h), dtype="fp16", role="inout"),
            "w2_ptr": Array(shape=(h, n), dtype="fp16"),
            "y_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            "done_ptr": Array(shape=(rows, first), dtype="int32", role="inout", is_index=True),
            "counter_ptr": Array(shape=(problem["POOLS"] + 1,), dtype="int32", role="inout", is_counter=True),
            **{"M": m, "K": k, "H": h, "N": n},
        },
        constexprs={"LOCAL": _local(problem), "POOLS": problem["POOLS"], "FLAGS": _flags(problem)}
        | {name: problem[name] for name in BLOCKS},
        grid=(min(problem["PROGRAMS"], rows * (first + second)),),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {
            **{f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
            "h_ptr": np.zeros((m, h), np.float16),
            "done_ptr": np.ones((rows, first), np.int32),
            "counter_ptr": np.zeros(problem["POOLS"] + 1, np.int32),
        },
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: a tile of H reads X and W1, stores H and a flag; one of Y polls once, reads H, W2, stores Y."""
    m, k, h, n = (problem[name] for name in ("M", "K", "H", "N"))
    block_m, block_n, block_k = (problem[name] for name in BLOCKS)
    rows, first, second = _tiles(problem)
    pid_m, pid_n = np.divmod(np.arange(rows * (first + second), dtype=np.int64), first + second)
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    x, w1, hidden, w2, y = (
        build.array(name, rows=high, cols=wide, item_bytes=2)
        for name, high, wide in (("X", m, k), ("W1", k, h), ("H", m, h), ("W2", h, n), ("Y", m, n))
    )
    done = build.array("done", rows=rows, cols=first, item_bytes=4)
    build.place("counter", shape=(problem["POOLS"] + 1,), item_bytes=4)
    makes_h = (pid_n < first)[:, None]
    row, at = (pid_m * block_m)[:, None], pid_m[:, None]
    col = np.where(makes_h, pid_n[:, None], pid_n[:, None] - first) * block_n
    build.step(build.read(done, row=at, col=0, rows=1, cols=np.where(makes_h, 0, _flags(problem))))
    for a, b, inner, mine in ((x, w1, k, makes_h), (hidden, w2, h, ~makes_h)):
        steps = np.arange(0, inner, block_k, dtype=np.int64)[None, :]
        build.step(
            build.read(a, row=row, col=steps, rows=block_m, cols=np.where(mine, block_k, 0)),
            build.read(b, row=steps, col=col, rows=block_k, cols=np.where(mine, block_n, 0)),
        )
    build.step(build.write(hidden, row=row, col=col, rows=block_m, cols=np.where(makes_h, block_n, 0)))
    build.step(build.write(done, row=at, col=pid_n[:, None], rows=1, cols=np.where(makes_h, 1, 0)))
    build.step(build.write(y, row=row, col=col, rows=block_m, cols=np.where(makes_h, 0, block_n)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 X of unit scale, and weights that keep it."""
    draw = np.random.default_rng(seed)
    shapes = {"x": ("M", "K"), "w1": ("K", "H"), "w2": ("H", "N")}
    found = {
        name: draw.standard_normal([problem[side] for side in sides], np.float32) for name, sides in shapes.items()
    }
    found["w1"] /= np.sqrt(problem["K"])
    found["w2"] /= np.sqrt(problem["H"])
    return {name: values.astype(np.float16) for name, values in found.items()}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp16, both products accumulated in fp32, H rounded to fp16 between them."""
    x, w1, w2 = (inputs[name].astype(np.float32) for name in ("x", "w1", "w2"))
    hidden = np.maximum(x @ w1, 0).astype(np.float16)
    return {"y": (hidden.astype(np.float32) @ w2).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """One-dimensional grids of tiles, each once exact and once ragged."""
    for rows, first, second in GRIDS:
        for cut in (0, 1):
            sizes = {"M": rows * problem["BLOCK_M"] - cut}
            sizes |= {"H": first * problem["BLOCK_N"] - cut, "N": second * problem["BLOCK_N"] - cut}
            yield Grid((rows * (first + second),), (rows, first + second)), {**problem, **sizes}
