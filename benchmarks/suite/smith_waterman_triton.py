"""Triton source of the suite's Smith-Waterman kernel: the scores of all pairs of symbols, without the recurrence."""

import triton
import triton.language as tl


@triton.jit
def smith_waterman(
    seq1_ptr,
    seq2_ptr,
    score_ptr,
    M,
    N,
    match,
    mismatch,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    """score[i, j] = match where seq1[i] is seq2[j], else mismatch; row-major, M x N."""
    rows = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    cols = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    one = tl.load(seq1_ptr + rows, mask=rows < M, other=0)
    two = tl.load(seq2_ptr + cols, mask=cols < N, other=0)
    score = tl.where(one[:, None] == two[None, :], match, mismatch)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(score_ptr + rows[:, None] * N + cols[None, :], score, mask=mask)
