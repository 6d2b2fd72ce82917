"""What cannot be followed, and what is wrong: each kernel is refused by the line that its mark names."""

import numpy as np
import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def float_address(x_ptr, y_ptr, n):
    """The address comes from floats."""
    x = tl.load(x_ptr + tl.program_id(0))
    at = (x * 2.0).to(tl.int32) % n
    tl.store(y_ptr + at, x)  # float_address


@triton.jit
def own_index(x_ptr, y_ptr, n):
    """The index is written by the kernel itself."""
    pid = tl.program_id(0)
    tl.store(x_ptr + pid, (pid * 3) % n)  # own_index
    tl.store(y_ptr + tl.load(x_ptr + pid), 1.0)


@triton.jit
def too_far(x_ptr, y_ptr, n):
    """Reads beyond the end."""
    offs = tl.program_id(0) * 16 + tl.arange(0, 16)
    x = tl.load(x_ptr + offs)  # too_far
    tl.store(y_ptr + offs, x, mask=offs < n)


@triton.jit
def raises(x_ptr, y_ptr, n):
    """Adds blocks of different shapes."""
    x = tl.load(x_ptr + tl.arange(0, 8))
    y = x + tl.arange(0, 16)  # raises
    tl.store(y_ptr + tl.arange(0, 8), y)


def _kernel(function, dtype="fp32", index=False, n=40, grid=None, **more):
    return Kernel(
        function,
        sizes={"n": n},
        arguments=lambda s: {
            "x_ptr": Array(shape=(s.n,), dtype=dtype, is_index=index, role="inout"),
            "y_ptr": Array(shape=(s.n,), dtype="fp32", role="out"),
            "n": s.n,
        },
        grid=grid or (lambda s: (s.n,)),
        **more,
    )


def _whole(s, seed):
    return {"x_ptr": np.random.default_rng(seed).permutation(s.n).astype(np.int32)}


kernels = {
    "float_address": _kernel(float_address, make_inputs=lambda s, seed: {"x_ptr": np.arange(s.n, dtype=np.float32)}),
    "own_index": _kernel(own_index, "int32", True, make_inputs=_whole),
    "too_far": _kernel(too_far, grid=lambda s: (triton.cdiv(s.n, 16),)),
    "raises": _kernel(raises),
}
