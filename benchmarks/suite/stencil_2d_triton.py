"""Triton source of the suite's 5-point stencil: one tile a workgroup, five loads of it, one store."""

import triton
import triton.language as tl


@triton.jit
def stencil_2d(x_ptr, y_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    """Compute y = x / 2 + (sum of the four neighbours) / 8, with zeros around row-major x (M x N)."""
    rows = (tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M))[:, None]
    cols = (tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N))[None, :]
    here = rows * N + cols
    mask = (rows < M) & (cols < N)
    centre = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + here - N, mask=(rows >= 1) & (rows - 1 < M) & (cols < N), other=0.0).to(tl.float32)
    down = tl.load(x_ptr + here + N, mask=(rows + 1 < M) & (cols < N), other=0.0).to(tl.float32)
    left = tl.load(x_ptr + here - 1, mask=(rows < M) & (cols >= 1) & (cols - 1 < N), other=0.0).to(tl.float32)
    right = tl.load(x_ptr + here + 1, mask=(rows < M) & (cols + 1 < N), other=0.0).to(tl.float32)
    y = 0.5 * centre + 0.125 * (up + down + left + right)
    tl.store(y_ptr + here, y.to(y_ptr.dtype.element_ty), mask=mask)
