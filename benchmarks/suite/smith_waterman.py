"""Smith-Waterman as measured for the paper: the scores of all pairs of symbols, each tile written once.

The recurrence that gives the algorithm its name is not in it: tiles do not depend on each other.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 symbols.
"""

import numpy as np

from .declared import ARANGE, LINE_BYTES, Declared, Tensor

ALPHABET = 4
MATCH, MISMATCH = 2, -1


def access(s, build, pid, seq1, seq2, score) -> None:
    """A piece of each sequence, a tile of scores."""
    row, col = pid[0] * s.BLOCK_SIZE_M, pid[1] * s.BLOCK_SIZE_N
    build.step(
        build.read_box(seq1, at=(row,), size=(s.BLOCK_SIZE_M,)),
        build.read_box(seq2, at=(col,), size=(s.BLOCK_SIZE_N,)),
        build.write(score, row=row, col=col, rows=s.BLOCK_SIZE_M, cols=s.BLOCK_SIZE_N),
    )


def symbols(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A random sequence over four symbols."""
    return draw.integers(0, ALPHABET, shape, np.int8)


smith_waterman = Declared(
    name="smith_waterman",
    summary="scores of all pairs of symbols, int8 to int32, one tile a workgroup",
    sharing="""\
Workgroup (m, n) reads BLOCK_SIZE_M symbols of the first sequence and BLOCK_SIZE_N of the second and writes tile (m, n)
of the scores. Tiles of one tile row share the first piece, tiles of one tile column the second; both sequences are
small and stay in the L2. Nearly all traffic is the scores, written once.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 8192, "N": 8192, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32},
    derived={"match": MATCH, "mismatch": MISMATCH},
    grid="M/BLOCK_SIZE_M N/BLOCK_SIZE_N",
    tensors={
        "seq1": Tensor("M", "int8", draw=symbols),
        "seq2": Tensor("N", "int8", draw=symbols),
        "score": Tensor("M N", "int32", role="out"),
    },
    arguments="M N match mismatch",
    access=access,
    reference=lambda s, first, second: np.where(np.equal.outer(first, second), MATCH, MISMATCH),
    flops=lambda s: 2 * s.M * s.N,  # compare, choose
    dtype="fp32",
    blocks={"BLOCK_SIZE_M BLOCK_SIZE_N": ARANGE},
    work=lambda s: (3, 2 + s.BLOCK_SIZE_M * (1 + s.BLOCK_SIZE_N * 4 / LINE_BYTES)),
    compiled={((32, 32), 4): (16, 0, 560), ((64, 64), 4): (32, 0, 1032)},
    in_flight=2,
)
