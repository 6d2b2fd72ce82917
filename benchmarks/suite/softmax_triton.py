"""Triton source of the suite's softmax: one row a workgroup, held in registers between one load and one store.

Source: the fused row of the Triton documentation's softmax tutorial, written anew, one row for each workgroup.
"""

import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK_SIZE_N: tl.constexpr):
    """Compute y = softmax(x) along the rows of row-major x and y (M x N), in fp32; BLOCK_SIZE_N is at least N."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=-float("inf")).to(tl.float32)
    raised = tl.exp(x - tl.max(x, 0))
    y = raised / tl.sum(raised, 0)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
