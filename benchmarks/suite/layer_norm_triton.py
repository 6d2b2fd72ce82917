"""Triton source of the suite's layer norm: one row a workgroup, read twice."""

import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK_SIZE_N: tl.constexpr):
    """Compute y = (x - mean) / sqrt(variance + eps) * w + b along the rows of row-major x (M x N), in fp32."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK_SIZE_N,), tl.float32)
    squares = tl.zeros((BLOCK_SIZE_N,), tl.float32)
    for start in range(0, N, BLOCK_SIZE_N):
        cols = start + tl.arange(0, BLOCK_SIZE_N)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / N
    variance = tl.maximum(tl.sum(squares, 0) / N - mean * mean, 0.0)
    scale = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, N, BLOCK_SIZE_N):
        cols = start + tl.arange(0, BLOCK_SIZE_N)
        mask = cols < N
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * scale * w + b
        tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
