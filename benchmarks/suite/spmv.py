"""Sparse matrix times vector in compressed sparse rows (CSR), one row a workgroup.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 4096 x 4096 with density 0.08, values and vector in fp16.
The structure is drawn here: every item is there with the same probability, from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_block, check_traceable, resources, row_grids

TRITON = Path(__file__).with_name("spmv_triton.py")
ITEM_BYTES, INDEX_BYTES = 2, 4  # fp16, int32
STRUCTURE_SEED = 20250828
MAX_LANES = 1 << 23  # about two seconds and 1 GiB to trace
NUM_WARPS = 4
COMPILED = {((128,), 4): (16, 8, 732), ((512,), 4): (16, 16, 876)}

SHARING = """\
Workgroup r reads two row pointers, its own stretch of the column indices and of the values, and the items of X that the
indices name, and writes item r of Y. X is small: every workgroup reads most of its lines, so the L2 holds it. Indices
and values are streams; neighbouring rows share the lines in which one ends and the next begins. Neighbouring rows also
share the lines of the row pointers and of Y, of which a workgroup writes a single item."""


def spmv(*, M: int = 4096, N: int = 4096, NNZ_PER_ROW: int = 328, BLOCK_SIZE: int = 128) -> Kernel:
    """Y = A X for a random sparse M x N matrix.

    Parameters
    ----------
    M, N : int
        Rows and columns.
    NNZ_PER_ROW : int
        Mean number of items in a row; the default is 8 % of 4096.
    BLOCK_SIZE : int
        Items of a row that a workgroup takes at a time.

    Raises
    ------
    SizeError
        If a row would hold more items than columns, the block is no power of two, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N, "NNZ_PER_ROW": NNZ_PER_ROW, "BLOCK_SIZE": BLOCK_SIZE}
    check_block("spmv", BLOCK_SIZE=BLOCK_SIZE)
    if NNZ_PER_ROW > N:
        raise SizeError(f"spmv: NNZ_PER_ROW = {NNZ_PER_ROW}: a row of N = {N} columns holds at most {N} items")
    lanes = M * (NNZ_PER_ROW + BLOCK_SIZE)
    if lanes > MAX_LANES:
        raise SizeError(
            f"spmv: {M} rows of about {NNZ_PER_ROW} items in blocks of {BLOCK_SIZE} are {lanes} lanes; a gather is "
            f"traced lane by lane, so at most {MAX_LANES}: use fewer rows or items, or smaller blocks"
        )
    instructions = 3 * M * (2 + NNZ_PER_ROW // BLOCK_SIZE)
    check_traceable("spmv", workgroups=M, instructions=instructions, touches=2.0 * lanes)
    indptr, indices = structure(M, N, NNZ_PER_ROW)
    rows = np.diff(indptr)
    return Kernel(
        name="spmv",
        summary="y = A x, A sparse in CSR, fp16, one row a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid((M,)),
        flops=2.0 * indices.size,
        issued_flops=2.0 * float((-(-rows // BLOCK_SIZE)).sum()) * BLOCK_SIZE,
        resources=resources(COMPILED, (BLOCK_SIZE,), num_warps=NUM_WARPS, in_flight=3),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258",),
        at_grids=lambda: row_grids(problem, "M"),
        make_launch=lambda: launch(problem),
    )


@lru_cache(maxsize=4)
def structure(m: int, n: int, nnz_per_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Row pointers and column indices of a random matrix; the same for the same sizes.

    Returns
    -------
    indptr : (m + 1,) int32
    indices : (nnz,) int32
        Ascending within a row; at least one in all.
    """
    draw = np.random.default_rng(STRUCTURE_SEED)
    cells, expected = m * n, m * nnz_per_row
    gaps = draw.geometric(nnz_per_row / n, expected + 10 * int(expected**0.5) + 100)  # from one item to the next
    place = np.cumsum(gaps) - 1
    place = place[place < cells]
    if not place.size:
        place = np.zeros(1, np.int64)
    indptr = np.searchsorted(place, np.arange(m + 1, dtype=np.int64) * n)
    return indptr.astype(np.int32), (place % n).astype(np.int32)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n = problem["M"], problem["N"]
    _, indices = structure(m, n, problem["NNZ_PER_ROW"])
    return Launch(
        path=TRITON,
        function="spmv",
        arguments={
            "indptr_ptr": Array(shape=(m + 1,), dtype="int32", is_index=True),
            "indices_ptr": Array(shape=(indices.size,), dtype="int32", is_index=True),
            "values_ptr": Array(shape=(indices.size,), dtype="fp16"),
            "x_ptr": Array(shape=(n,), dtype="fp16"),
            "y_ptr": Array(shape=(m,), dtype="fp16", role="out"),
        },
        constexprs={"BLOCK_SIZE": problem["BLOCK_SIZE"]},
        grid=(m,),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: two row pointers; for each block of the row indices, values and a gather of x; one item of y."""
    m, n, block = problem["M"], problem["N"], problem["BLOCK_SIZE"]
    indptr, indices = structure(m, n, problem["NNZ_PER_ROW"])
    row = np.arange(m)
    build = TraceBuilder(n_workgroups=m, line_bytes=line_bytes)
    pointers = build.place("indptr", shape=(m + 1,), item_bytes=INDEX_BYTES)
    columns = build.place("indices", shape=(indices.size,), item_bytes=INDEX_BYTES)
    values = build.place("values", shape=(indices.size,), item_bytes=ITEM_BYTES)
    x = build.place("x", shape=(n,), item_bytes=ITEM_BYTES)
    y = build.place("y", shape=(m,), item_bytes=ITEM_BYTES)
    build.step(build.read_box(pointers, at=(row,), size=(1,)), build.read_box(pointers, at=(row + 1,), size=(1,)))
    trips = int((-(-np.diff(indptr) // block)).max())
    at = indptr[:-1, None].astype(np.int64) + np.arange(trips) * block
    item = at[:, :, None] + np.arange(block)
    inside = item < indptr[1:, None, None]
    build.step(
        build.gather(columns, np.where(inside, item, -1)),
        build.gather(values, np.where(inside, item, -1)),
        build.gather(x, np.where(inside, indices[np.where(inside, item, 0)], -1)),
    )
    build.step(build.write_box(y, at=(row,), size=(1,)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random values and vector of unit scale; the structure is the same for every seed."""
    draw = np.random.default_rng(seed)
    indptr, indices = structure(problem["M"], problem["N"], problem["NNZ_PER_ROW"])
    sizes = {"values": indices.size, "x": problem["N"]}
    drawn = {name: draw.standard_normal(size, np.float32).astype(np.float16) for name, size in sizes.items()}
    return {"indptr": indptr, "indices": indices, **drawn}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp16, summed in fp64."""
    indptr, indices = inputs["indptr"], inputs["indices"]
    products = inputs["values"].astype(np.float64) * inputs["x"].astype(np.float64)[indices]
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return {"y": np.bincount(row, products, indptr.size - 1).astype(np.float16)}
