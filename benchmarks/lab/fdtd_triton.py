"""FDTD without the borders that the measured kernel leaves out; `swizzle_benchmarks.lab fdtd-stores` compiles it.

Source: K. Yee, IEEE Transactions on Antennas and Propagation 14(3), 1966, for the scheme.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fdtd_borders(ex_ptr, ey_ptr, hz_ptr, Nx, Ny, pitch, BLOCK_X: tl.constexpr, BLOCK_Y: tl.constexpr):
    """Update hz but for its last row and column, then ex but for its first column, then ey but for its first row."""
    x = (tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X))[:, None]
    y = (tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y))[None, :]
    here = x * pitch + y
    inside = (x < Nx - 1) & (y < Ny - 1)
    across = tl.load(ex_ptr + here + 1, mask=inside) - tl.load(ex_ptr + here, mask=inside)
    along = tl.load(ey_ptr + here + pitch, mask=inside) - tl.load(ey_ptr + here, mask=inside)
    hz = tl.load(hz_ptr + here, mask=inside)
    tl.store(hz_ptr + here, hz - 0.5 * (along - across), mask=inside)
    right = (x < Nx) & (y > 0) & (y < Ny)
    step = tl.load(hz_ptr + here, mask=right) - tl.load(hz_ptr + here - 1, mask=right)
    tl.store(ex_ptr + here, tl.load(ex_ptr + here, mask=right) - 0.5 * step, mask=right)
    below = (x > 0) & (x < Nx) & (y < Ny)
    step = tl.load(hz_ptr + here, mask=below) - tl.load(hz_ptr + here - pitch, mask=below)
    tl.store(ey_ptr + here, tl.load(ey_ptr + here, mask=below) + 0.5 * step, mask=below)
