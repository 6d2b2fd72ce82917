"""Causal attention by programs that stay: program p computes tiles p, p + PROGRAMS, ..., a query block of a head each.

The default is the shape at which AMD's rocke study compares its persistent orders, 32 query and 8 key heads of 4096
tokens in blocks of 256 queries, a program a CU of an MI300X; `PROGRAMS=256` is one a CU of an MI355X.
Sources: ROCm/rocm-libraries PR 9480 (persistent grid, shape); FlashAttention-2 (arXiv 2307.08691, algorithm).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import resources
from .flash_attention import ITEM_BYTES, grid_of, key_blocks, make, make_inputs

NAME = "attention_persistent"
NUM_WARPS = 8
NUM_STAGES = 1
# (tile, waves), causal: (VGPRs, LDS bytes); the compiler spills 25 registers a lane, which a trace does not show.
COMPILED = {((256, 64, 128), NUM_WARPS): (256, 64 * 1024)}
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroups are PROGRAMS programs that stay; program p computes tiles p, p + PROGRAMS, ... one after the other. Tile
(m, n), numbered query block by query block, heads fastest, reads BLOCK_M rows of Q of head n, all of K and V of key
head n // (H / HKV) (up to the diagonal if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. Tiles of
the H / HKV query heads of one key head, a run of columns, share K and V. The work of a tile grows with m if CAUSAL, and
which tiles one program gets decides when the last is done."""


def attention_persistent(
    *,
    B: int = 1,
    H: int = 32,
    HKV: int = 8,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = True,
    BLOCK_M: int = 256,
    BLOCK_N: int = 64,
    PROGRAMS: int = 304,
) -> Kernel:
    """Grouped-query attention in fp16, forward, on a persistent grid.

    Parameters
    ----------
    B, H, HKV, S, D : int
        Q and O are (B, H, S, D), K and V (B, HKV, S, D); HKV divides H, D is a power of two from 16 to 256.
    CAUSAL : bool
        Whether a query sees only the keys up to its own.
    BLOCK_M, BLOCK_N : int
        Queries of a tile and keys of a step; powers of two from 16 to 1024.
    PROGRAMS : int
        Programs launched; more than tiles are as many as tiles.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If HKV does not divide H, a block or D is no power of two in range, or the problem is too large to trace.
    """
    sizes = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "CAUSAL": int(CAUSAL), "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    launched = make(NAME, "attention, fp16, persistent programs, query heads share keys in groups", SHARING, sizes)
    problem, tiles = {**sizes, "PROGRAMS": PROGRAMS}, grid_of(sizes)
    return replace(
        launched,
        problem=problem,
        grid=Grid((tiles[0] * tiles[1],), tiles),
        resources=resources(COMPILED, (BLOCK_M, BLOCK_N, D), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sources=("ROCm/rocm-libraries PR 9480 (persistent grid, shape)", "FlashAttention-2, arXiv 2307.08691"),
        at_grids=lambda: _at_grids(problem),
        programs=min(PROGRAMS, tiles[0] * tiles[1]),
        make_launch=lambda: launch(problem),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    tiles = grid_of(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "q_ptr": Array(shape=(b, h, s, d), dtype="fp16"),
            "k_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "v_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "o_ptr": Array(shape=(b, h, s, d), dtype="fp16", role="out"),
            **{"S": s, "H": h, "HKV": hkv, "HEADS": b * h, "scale": 1 / math.sqrt(d)},
        },
        constexprs={"D": d, "CAUSAL": bool(problem["CAUSAL"])}
        | {name: problem[name] for name in ("BLOCK_M", "BLOCK_N")},
        grid=(min(problem["PROGRAMS"], tiles[0] * tiles[1]),),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model of `flash_attention`, tiles numbered query block by query block."""
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    block_m, block_n = problem["BLOCK_M"], problem["BLOCK_N"]
    block, head = np.divmod(np.arange(math.prod(grid_of(problem)), dtype=np.int64), b * h)
    kv_head = head // h * hkv + head % h // (h // hkv)
    build = TraceBuilder(n_workgroups=head.size, line_bytes=line_bytes)
    q = build.place("Q", shape=(b * h, s, d), item_bytes=ITEM_BYTES)
    k, v = (build.place(name, shape=(b * hkv, s, d), item_bytes=ITEM_BYTES) for name in "KV")
    o = build.place("O", shape=(b * h, s, d), item_bytes=ITEM_BYTES)
    own = {"at": (head, block * block_m, 0), "size": (1, block_m, d)}
    build.step(build.read_box(q, **own))
    steps = key_blocks(problem)[block][:, None]
    trip = np.arange(int(steps.max()))[None, :]
    at, size = (kv_head[:, None], trip * block_n, 0), (1, np.where(trip < steps, block_n, 0), d)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(o, **own))
    return build.trace()


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other grids: few blocks and many heads and the other way round, heads that XCDs share evenly and not."""
    shapes = [(1, 1), (1, 8), (5, 3), (2, 2), (3, 8), (8, 16), (7, 5), (16, 24), (11, 13), (32, 2), (37, 1)]
    for (blocks, heads), cut in itertools.product(shapes, (0, 1)):
        sizes = {**problem, "B": 1, "H": heads, "HKV": 1, "S": blocks * problem["BLOCK_M"] - cut}
        yield Grid((blocks * heads,), (blocks, heads)), sizes
