"""Jagged GEMM: groups of rows of drawn lengths, packed; each group by its own matrix, with a bias.

The host launches blocks for S rows of every group, since only the device knows the lengths; workgroups beyond a group's
end read where it begins and ends, and leave. Lengths are drawn by SEED, evenly between LEAST hundredths of S and S. The
default is a shape of HSTU's models: 120 groups of up to 7680 rows, 512 x 512.
Sources: ROCm/aiter PR 4042 (jagged product plus bias for MI300X and MI355X: layout, tile, shapes, early exit).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "gemm_jagged"
NUM_WARPS = 4
NUM_STAGES = 2
COMPILED = {((128, 128, 64), NUM_WARPS): (136, 32 * 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
HUNDREDTHS = 100  # of S, in LEAST

SHARING = """\
Rows are those of GROUPS groups, packed; row tile m is block m % (S / BLOCK_M, rounded up) of group m // that many.
Workgroup (m, n) reads where its group begins and ends; if its block lies beyond the end it leaves. Else it reads its
rows of A and rows BLOCK_N n, ... of its group's matrix in B, a BLOCK_K slice of each per step, then a slice of the
group's bias, and writes tile (m, n) of C once. Tiles of one row tile share rows of A; tiles of one column share a panel
of B where they belong to the same group. Workgroups that leave at once lie at the end of each group."""


def gemm_jagged(
    *,
    GROUPS: int = 120,
    S: int = 7680,
    N: int = 512,
    K: int = 512,
    LEAST: int = 1,
    SEED: int = 1,
    BLOCK_M: int = 128,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
) -> Kernel:
    """Jagged GEMM in fp16.

    Parameters
    ----------
    GROUPS : int
        Groups of rows, each with a matrix.
    S : int
        Most rows of a group, for which the grid has blocks.
    N, K : int
        A is (rows of all groups, K), B is (GROUPS, N, K), C is (rows of all groups, N).
    LEAST : int
        Fewest rows of a group, in hundredths of S; with 100 all groups have S.
    SEED : int
        Of the lengths; another seed is another draw of them.
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If LEAST is above 100, a block is no power of two in range, or the problem is too large to trace.
    """
    problem = {"GROUPS": GROUPS, "S": S, "N": N, "K": K, "LEAST": LEAST, "SEED": SEED}
    problem |= {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    tiles, lengths = tiles_of(problem), lengths_of(problem)
    valid = int((-(-lengths // BLOCK_M)).sum())
    return Kernel(
        name=NAME,
        summary="packed rows of groups times their group's matrix, early exit, fp16, lengths drawn by SEED",
        problem=problem,
        dtype="fp16",
        grid=Grid((tiles[0] * tiles[1],), tiles),
        flops=2.0 * float(lengths.sum()) * N * K,
        issued_flops=2.0 * valid * BLOCK_M * tiles[1] * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("ROCm/aiter PR 4042 (layout, tile, early exit)", "facebookresearch/generative-recommenders (HSTU)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def lengths_of(problem: Mapping[str, int]) -> np.ndarray:
    """(GROUPS,) int64: rows of each group, as drawn."""
    least = max(1, problem["S"] * problem["LEAST"] // HUNDREDTHS)
    return np.random.default_rng(problem["SEED"]).integers(least, problem["S"] + 1, problem["GROUPS"])


def offsets_of(problem: Mapping[str, int]) -> np.ndarray:
    """(GROUPS + 1,) int32: first row of each group, and the number of rows."""
    return np.concatenate([[0], np.cumsum(lengths_of(problem))]).astype(np.int32)


def blocks_of(problem: Mapping[str, int]) -> int:
    """Row blocks that each group is launched with."""
    return -(-problem["S"] // problem["BLOCK_M"])


def tiles_of(problem: Mapping[str, int]) -> tuple[int, int]:
    """Row tiles of all groups, and column tiles."""
    return problem["GROUPS"] * blocks_of(problem), -(-problem["N"] // problem["BLOCK_N"])


def _check(problem: Mapping[str, int]) -> None:
    blocks = {name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    check_dot_block(NAME, **blocks)
    if problem["LEAST"] > HUNDREDTHS:
        raise SizeError(f"{NAME}: LEAST = {problem['LEAST']}: hundredths of S, at most {HUNDREDTHS}")
    rows = problem["GROUPS"] * problem["S"]
    check_items(NAME, "A or C", rows * max(problem["K"], problem["N"]))
    workgroups = tiles_of(problem)[0] * tiles_of(problem)[1]
    steps = workgroups * -(-problem["K"] // blocks["BLOCK_K"])
    lines = lines_of(blocks["BLOCK_M"] + blocks["BLOCK_N"], blocks["BLOCK_K"])
    check_traceable(NAME, workgroups=workgroups, instructions=2.0 * steps + 4.0 * workgroups, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    groups, n, k = (problem[name] for name in ("GROUPS", "N", "K"))
    rows, tiles = int(lengths_of(problem).sum()), tiles_of(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(rows, k), dtype="fp16"),
            "b_ptr": Array(shape=(groups, n, k), dtype="fp16"),
            "bias_ptr": Array(shape=(groups, n), dtype="fp16"),
            "c_ptr": Array(shape=(rows, n), dtype="fp16", role="out"),
            "offset_ptr": Array(shape=(groups + 1,), dtype="int32", is_index=True),
            **{"N": n, "K": k, "BLOCKS": blocks_of(problem)},
        },
        constexprs={name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")},
        grid=(tiles[0] * tiles[1],),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: begin and end of the group; of a block inside it per K step A and B, then the bias, then C."""
    groups, n, k, block_m, block_n, block_k = (
        problem[name] for name in ("GROUPS", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K")
    )
    row_tiles, num_pid_n = tiles_of(problem)
    tile, pid_n = np.divmod(np.arange(row_tiles * num_pid_n, dtype=np.int64), num_pid_n)
    group, block = np.divmod(tile, blocks_of(problem))
    offsets = offsets_of(problem).astype(np.int64)
    first, end = offsets[group] + block * block_m, offsets[group + 1]
    high, valid, col = np.clip(end - first, 0, block_m), (first < end).astype(np.int64), pid_n * block_n
    build = TraceBuilder(n_workgroups=tile.size, line_bytes=line_bytes)
    a = build.place("A", shape=(int(offsets[-1]), k), item_bytes=2)
    b = build.place("B", shape=(groups, n, k), item_bytes=2)
    bias = build.place("bias", shape=(groups, n), item_bytes=2)
    c = build.place("C", shape=(int(offsets[-1]), n), item_bytes=2)
    offset = build.place("offset", shape=offsets.shape, item_bytes=4)
    build.step(build.read_box(offset, at=(group,), size=(1,)))
    build.step(build.read_box(offset, at=(group + 1,), size=(1,)))
    inner = np.arange(0, k, block_k)[None, :]
    build.step(
        build.read_box(a, at=(first[:, None], inner), size=(high[:, None], block_k)),
        build.read_box(b, at=(group[:, None], col[:, None], inner), size=(valid[:, None], block_n, block_k)),
    )
    build.step(build.read_box(bias, at=(group, col), size=(valid, block_n)))
    build.step(build.write_box(c, at=(first, col), size=(high, block_n)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A, B and bias of unit scale, and the offsets, which SEED draws and ``seed`` leaves alone."""
    draw = np.random.default_rng(seed)
    groups, n, k = (problem[name] for name in ("GROUPS", "N", "K"))
    shapes = {"a": (int(lengths_of(problem).sum()), k), "b": (groups, n, k), "bias": (groups, n)}
    values = {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}
    return values | {"offset": offsets_of(problem)}


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32, group by group."""
    a, b, bias = (inputs[name].astype(np.float32) for name in ("a", "b", "bias"))
    ends = itertools.pairwise(inputs["offset"].tolist())
    parts = [a[first:end] @ b[group].T + bias[group] for group, (first, end) in enumerate(ends)]
    return {"c": np.concatenate(parts).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other group counts, lengths and widths: one group and many, of one block and of several."""
    for groups, blocks, width in itertools.product((1, 3, 8, 13), (1, 2, 5, 8), (1, 4, 5)):
        cut = (groups + blocks) % 2
        sizes = {**problem, "GROUPS": groups, "S": blocks * problem["BLOCK_M"] - cut}
        sizes["N"] = width * problem["BLOCK_N"] - cut
        tiles = tiles_of(sizes)
        yield Grid((tiles[0] * tiles[1],), tiles), sizes
