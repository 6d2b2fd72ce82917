"""Triton source of the suite's sparse matrix times vector, CSR, one row a workgroup."""

import triton
import triton.language as tl


@triton.jit
def spmv(indptr_ptr, indices_ptr, values_ptr, x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    """Compute y = A x for A in compressed sparse rows, accumulated in fp32."""
    row = tl.program_id(0)
    first = tl.load(indptr_ptr + row)
    end = tl.load(indptr_ptr + row + 1)
    acc = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(first, end, BLOCK_SIZE):
        at = start + tl.arange(0, BLOCK_SIZE)
        mask = at < end
        col = tl.load(indices_ptr + at, mask=mask, other=0)
        value = tl.load(values_ptr + at, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + col, mask=mask, other=0.0).to(tl.float32)
        acc += value * x
    tl.store(y_ptr + row, tl.sum(acc, 0).to(y_ptr.dtype.element_ty))
