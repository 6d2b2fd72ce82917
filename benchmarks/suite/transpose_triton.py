"""Triton source of the suite's transpose: one tile a workgroup, read along rows and written along rows."""

import triton
import triton.language as tl


@triton.jit
def transpose(x_ptr, y_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    """Compute y = transposed x for row-major x (M x N) and y (N x M)."""
    rows = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    cols = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    tile = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=(rows[:, None] < M) & (cols[None, :] < N), other=0.0)
    mask = (cols[:, None] < N) & (rows[None, :] < M)
    tl.store(y_ptr + cols[:, None] * M + rows[None, :], tl.trans(tile), mask=mask)
