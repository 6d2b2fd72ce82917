"""Sparse matrix times vector in compressed sparse rows (CSR), one row a workgroup.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 4096 x 4096 with density 0.08, values and vector in fp16.
The structure is drawn here: every item is there with the same probability, from a fixed seed.
"""

from functools import lru_cache

import numpy as np

from .declared import ARANGE, Declared, Tensor, table

STRUCTURE_SEED = 20250828
MAX_LANES = 1 << 23  # about two seconds and 1 GiB to trace


@lru_cache(maxsize=4)
def structure(m: int, n: int, nnz_per_row: int) -> tuple[np.ndarray, np.ndarray]:
    """Row pointers (m + 1,) and column indices (nnz,), ascending in a row, at least one in all; int32, drawn once."""
    draw = np.random.default_rng(STRUCTURE_SEED)
    cells, expected = m * n, m * nnz_per_row
    gaps = draw.geometric(nnz_per_row / n, expected + 10 * int(expected**0.5) + 100)  # from one item to the next
    place = np.cumsum(gaps) - 1
    place = place[place < cells] if place[0] < cells else np.zeros(1, np.int64)
    indptr = np.searchsorted(place, np.arange(m + 1, dtype=np.int64) * n)
    return indptr.astype(np.int32), (place % n).astype(np.int32)


def access(s, build, pid, indptr, indices, values, x, y) -> None:
    """Two row pointers; for each block of the row indices, values and a gather of x; one item of y."""
    (row,), begin, end = pid, s.indptr[:-1, None].astype(np.int64), s.indptr[1:, None, None]
    build.step(build.read_box(indptr, at=(row,), size=(1,)), build.read_box(indptr, at=(row + 1,), size=(1,)))
    at = begin + np.arange(int(s.trips.max())) * s.BLOCK_SIZE
    item = at[:, :, None] + np.arange(s.BLOCK_SIZE)
    item, column = np.where(item < end, item, -1), s.indices[np.where(item < end, item, 0)]
    gathered = np.where(item < 0, -1, column)
    build.step(build.gather(indices, item), build.gather(values, item), build.gather(x, gathered))
    build.step(build.write_box(y, at=(row,), size=(1,)))


def reference(s, indptr, indices, values, x) -> np.ndarray:
    """Y, summed in fp64."""
    products = values.astype(np.float64) * x.astype(np.float64)[indices]
    return np.bincount(np.repeat(np.arange(s.M), np.diff(indptr)), products, s.M)


spmv = Declared(
    name="spmv",
    summary="y = A x, A sparse in CSR, fp16, one row a workgroup",
    sharing="""\
Workgroup r reads two row pointers, its own stretch of the column indices and of the values, and the items of X that the
indices name, and writes item r of Y. X is small: every workgroup reads most of its lines, so the L2 holds it. Indices
and values are streams; neighbouring rows share the lines in which one ends and the next begins. Neighbouring rows also
share the lines of the row pointers and of Y, of which a workgroup writes a single item.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 4096, "N": 4096, "NNZ_PER_ROW": 328, "BLOCK_SIZE": 128},  # in the mean, 8 % of 4096; at a time of a row
    derived={
        "indptr": lambda s: structure(s.M, s.N, s.NNZ_PER_ROW)[0],
        "indices": lambda s: structure(s.M, s.N, s.NNZ_PER_ROW)[1],
        "nnz": lambda s: s.indices.size,
        "trips": lambda s: -(-np.diff(s.indptr) // s.BLOCK_SIZE),  # of each row
        "lanes": lambda s: s.M * (s.NNZ_PER_ROW + s.BLOCK_SIZE),
    },
    grid="M",
    tensors={
        **{name: table(name) for name in ("indptr", "indices")},
        **{"values": Tensor("nnz"), "x": Tensor("N"), "y": Tensor("M", role="out")},
    },
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.nnz,
    issued=lambda s: 2.0 * float(s.trips.sum()) * s.BLOCK_SIZE,
    dtype="fp32",
    blocks={"BLOCK_SIZE": ARANGE},
    rules={
        "NNZ_PER_ROW = {s.NNZ_PER_ROW}: a row of N = {s.N} columns holds at most {s.N} items": lambda s: (
            s.NNZ_PER_ROW <= s.N
        ),
        "{s.M} rows of about {s.NNZ_PER_ROW} items in blocks of {s.BLOCK_SIZE} are {s.lanes} lanes; a gather is traced "
        f"lane by lane, so at most {MAX_LANES}: use fewer rows or items, or smaller blocks": lambda s: (
            s.lanes <= MAX_LANES
        ),
    },
    items={},
    work=lambda s: (3 * (2 + s.NNZ_PER_ROW // s.BLOCK_SIZE), 2.0 * (s.NNZ_PER_ROW + s.BLOCK_SIZE)),
    compiled={((128,), 4): (16, 8, 732), ((512,), 4): (16, 16, 876)},
    in_flight=3,
)
