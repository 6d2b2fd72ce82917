"""Triton source of the suite's fused elementwise kernel: multiply, add and clamp in one pass."""

import triton
import triton.language as tl


@triton.jit
def fused_elementwise(x_ptr, y_ptr, z_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """Compute out = max(x * y + z, 0), computed in fp32."""
    items = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = items < n_elements
    x = tl.load(x_ptr + items, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + items, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + items, mask=mask, other=0.0).to(tl.float32)
    out = tl.maximum(x * y + z, 0.0)
    tl.store(out_ptr + items, out.to(out_ptr.dtype.element_ty), mask=mask)
