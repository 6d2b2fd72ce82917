"""Megakernel of two stages: both GEMMs of an MLP as tiles of one launch, claimed from a queue an XCD.

The tile grid has M / BLOCK_M rows and, beside the tiles of H, those of Y: a swizzle orders the queues, and may have an
XCD compute Y from rows of H that it wrote. A tile of Y waits for its whole row of H; an order that hands it out before
that is refused. The default is 8192 tokens of an MLP of 2048 and 8192 features.

A launch has its flags set already, so that programs can be run one after the other; a bundle has zeros there. A MLP is
four times as wide as its input, as in Megatron-LM.
"""

import itertools

import numpy as np

from xcd_model import Claims, Waits

from .declared import DOT, Declared, Sizes, Tensor, cdiv, lines_of, pids

# tile rows, tile columns of H and of Y
SHAPES = (
    *((1, 1, 1), (3, 2, 1), (5, 4, 1), (2, 2, 2), (4, 4, 4), (7, 6, 2), (8, 6, 2), (11, 8, 3), (13, 3, 2)),
    *((16, 12, 4), (16, 16, 5), (32, 4, 1), (37, 2, 1), (64, 12, 4)),
)


def access(s, build, pid, *tensors) -> None:
    """A tile of H reads X and W1, stores H and a flag; one of Y polls once, reads H, W2, stores Y."""
    x, w1, h, w2, y, done, _ = tensors
    at, pid_n = (place[:, None] for place in pid)
    makes_h, row = pid_n < s.first, at * s.BLOCK_M
    col = np.where(makes_h, pid_n, pid_n - s.first) * s.BLOCK_N
    build.step(build.read(done, row=at, col=0, rows=1, cols=np.where(makes_h, 0, s.FLAGS)))
    for a, b, inner, mine in ((x, w1, s.K, makes_h), (h, w2, s.H, ~makes_h)):
        steps = np.arange(0, inner, s.BLOCK_K)[None, :]
        build.step(
            build.read(a, row=row, col=steps, rows=s.BLOCK_M, cols=np.where(mine, s.BLOCK_K, 0)),
            build.read(b, row=steps, col=col, rows=s.BLOCK_K, cols=np.where(mine, s.BLOCK_N, 0)),
        )
    build.step(build.write(h, row=row, col=col, rows=s.BLOCK_M, cols=np.where(makes_h, s.BLOCK_N, 0)))
    build.step(build.write(done, row=at, col=pid_n, rows=1, cols=np.where(makes_h, 1, 0)))
    build.step(build.write(y, row=row, col=col, rows=s.BLOCK_M, cols=np.where(makes_h, 0, s.BLOCK_N)))


def reference(s, x, w1, w2) -> np.ndarray:
    """Y, both products accumulated in fp32, H rounded to fp16 between them."""
    x, w1, w2 = (values.astype(np.float32) for values in (x, w1, w2))
    return np.maximum(x @ w1, 0).astype(np.float16).astype(np.float32) @ w2


def weights(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Weights that keep the scale of what they multiply."""
    found = draw.standard_normal(shape, np.float32)
    found /= np.sqrt(shape[0])
    return found


def waits(problem) -> Waits:
    """Tiles of H set flags of their row, tiles of Y wait for all of theirs."""
    s = mlp_megakernel.at(problem)
    pid_m, pid_n = pids(mlp_megakernel.grid_at(s))
    return Waits(sets=np.where(pid_n < s.first, pid_m, -1), awaits=np.where(pid_n < s.first, -1, pid_m))


def work(s: Sizes) -> tuple[float, float]:
    """Two loads a step, of the tiles of a row shared out."""
    lines = lines_of(s.BLOCK_M, s.BLOCK_K) + lines_of(s.BLOCK_K, s.BLOCK_N)
    return 2 * s.steps / s.columns, s.steps * lines / s.columns


mlp_megakernel = Declared(
    name="mlp_megakernel",
    summary="Y = max(X W1, 0) W2, fp16, one launch for both products, a queue of tiles an XCD",
    sharing="""\
Workgroups are PROGRAMS programs that stay; one that has ended a tile claims the next: program p from queue p % POOLS,
which hands out tiles p % POOLS, p % POOLS + POOLS, ... below LOCAL hundredths of all; where that is empty from the
tiles after them, which are for all. Tile (m, n) with n below H / BLOCK_N reads row panel m of X and column panel n of
W1 and writes tile (m, n) of H. Any other reads row panel m of H, which all tiles (m, 0) to (m, H / BLOCK_N - 1) wrote
and it waits for, and column panel n - H / BLOCK_N of W2, and writes a tile of Y: it has H / K times the steps. A tile
of Y must not be handed out before the tiles of H in its row.""",
    sources=("Fleet, arXiv 2604.15379", "ROCm/tritonBLAS PR 64"),
    sizes={
        **{"M": 8192, "K": 2048, "H": 8192, "N": 2048, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        "PROGRAMS": 304,  # launched; more than tiles are as many as tiles
        "POOLS": 8,  # queues of their own that programs ask first; 1 with LOCAL = 100 is one queue for all
        "LOCAL": 100,  # tiles in those queues, in hundredths of all
    },
    derived={
        "rows": lambda s: cdiv(s.M, s.BLOCK_M),
        "first": lambda s: cdiv(s.H, s.BLOCK_N),  # tile columns of H,
        "second": lambda s: cdiv(s.N, s.BLOCK_N),  # and of Y
        "columns": lambda s: s.first + s.second,
        "steps": lambda s: s.first * cdiv(s.K, s.BLOCK_K) + s.second * cdiv(s.H, s.BLOCK_K),  # of the tiles of a row
        "local": lambda s: s.rows * s.columns * s.LOCAL // 100,  # tiles in the queues of their own
        "FLAGS": lambda s: 1 << (s.first - 1).bit_length(),  # that a tile of Y loads at once: a row, padded
        "counters": lambda s: s.POOLS + 1,
    },
    grid="rows columns",
    flat=True,
    others=lambda s: (
        {"M": rows * s.BLOCK_M - cut, "H": first * s.BLOCK_N - cut, "N": second * s.BLOCK_N - cut}
        for (rows, first, second), cut in itertools.product(SHAPES, (0, 1))
    ),
    tensors={
        **{"X": Tensor("M K"), "W1": Tensor("K H", draw=weights), "H": Tensor("M H", role="inout", fill=0)},
        **{"W2": Tensor("H N", draw=weights), "Y": Tensor("M N", role="out")},
        "done": Tensor("rows first", "int32", role="inout", fill=1, is_index=True),
        "counter": Tensor("counters", "int32", role="inout", fill=0, is_counter=True),
    },
    arguments="M K H N",
    constexprs="LOCAL=local POOLS FLAGS BLOCK_M BLOCK_N BLOCK_K",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.M * s.H * (s.K + s.N),
    issued=lambda s: 2.0 * s.BLOCK_M * s.BLOCK_N * s.BLOCK_K * s.rows * s.steps,
    blocks={"BLOCK_M BLOCK_N BLOCK_K": DOT},
    rules={
        "LOCAL = {s.LOCAL}: hundredths of the tiles, at most 100": lambda s: s.LOCAL <= 100,
        "PROGRAMS = {s.PROGRAMS}, POOLS = {s.POOLS}: a queue without a program is never emptied": lambda s: (
            min(s.POOLS, s.local) <= s.PROGRAMS
        ),
    },
    work=work,
    compiled={
        ((128, 128, 64), 8): (168, 32 * 1024),
        ((256, 128, 64), 8): (240, 48 * 1024),
        ((16, 128, 64), 8): (72, 18 * 1024),
        ((16, 64, 128), 8): (184, 20 * 1024),
    },
    num_warps=8,
    in_flight=4,
    more=lambda s: {
        "programs": min(s.PROGRAMS, s.rows * s.columns),
        "claims": Claims(pools=s.POOLS, local=s.local),
        "waits": waits,
    },
)
