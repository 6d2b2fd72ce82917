"""Triton source of the suite's FDTD step in two dimensions: three fields updated in place, one tile a workgroup.

Workgroups read what their neighbours may or may not have written already: the race is part of the program.

Source: K. Yee, IEEE Transactions on Antennas and Propagation 14(3), 1966, for the scheme.
"""

import triton
import triton.language as tl


@triton.jit
def fdtd_2d(ex_ptr, ey_ptr, hz_ptr, Nx, Ny, BLOCK_SIZE_X: tl.constexpr, BLOCK_SIZE_Y: tl.constexpr):
    """Update hz from ex and ey, then ex and ey from the new hz; row-major (Nx x Ny), fields outside are zero."""
    x = (tl.program_id(0) * BLOCK_SIZE_X + tl.arange(0, BLOCK_SIZE_X))[:, None]
    y = (tl.program_id(1) * BLOCK_SIZE_Y + tl.arange(0, BLOCK_SIZE_Y))[None, :]
    here = x * Ny + y
    mask = (x < Nx) & (y < Ny)
    ex_after = tl.load(ex_ptr + here + 1, mask=(x < Nx) & (y + 1 < Ny), other=0.0)
    ex = tl.load(ex_ptr + here, mask=mask, other=0.0)
    ey_below = tl.load(ey_ptr + here + Ny, mask=(x + 1 < Nx) & (y < Ny), other=0.0)
    ey = tl.load(ey_ptr + here, mask=mask, other=0.0)
    hz = tl.load(hz_ptr + here, mask=mask, other=0.0)
    tl.store(hz_ptr + here, hz - 0.7 * (ex_after - ex + ey_below - ey), mask=mask)
    tl.debug_barrier()  # lanes read what other lanes of the workgroup have stored
    hz = tl.load(hz_ptr + here, mask=mask, other=0.0)
    hz_before = tl.load(hz_ptr + here - 1, mask=(x < Nx) & (y >= 1) & (y - 1 < Ny), other=0.0)
    ex = tl.load(ex_ptr + here, mask=mask, other=0.0)
    tl.store(ex_ptr + here, ex - 0.5 * (hz - hz_before), mask=mask)
    hz = tl.load(hz_ptr + here, mask=mask, other=0.0)
    hz_above = tl.load(hz_ptr + here - Ny, mask=(x >= 1) & (x - 1 < Nx) & (y < Ny), other=0.0)
    ey = tl.load(ey_ptr + here, mask=mask, other=0.0)
    tl.store(ey_ptr + here, ey - 0.5 * (hz - hz_above), mask=mask)
