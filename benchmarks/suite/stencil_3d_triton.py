"""Triton source of the suite's 27-point stencil: one box a workgroup on a 3-D grid, all neighbours by shifted loads.

Source: the 27-point operator of HPCG and of multigrid smoothers, with a weight for each distance, written anew.
"""

import triton
import triton.language as tl


@triton.jit
def stencil_3d(
    x_ptr,
    y_ptr,
    NX,
    NY,
    NZ,
    centre,
    face,
    edge,
    corner,
    BLOCK_X: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_Z: tl.constexpr,
):
    """One sweep from X to Y, both (NZ, NY, NX), zeros around; weights by how many axes a neighbour is away along."""
    col = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, None, :]
    row = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[None, :, None]
    plane = tl.program_id(2) * BLOCK_Z + tl.arange(0, BLOCK_Z)[:, None, None]
    total = tl.zeros((BLOCK_Z, BLOCK_Y, BLOCK_X), tl.float32)
    for dz in tl.static_range(3):
        for dy in tl.static_range(3):
            for dx in tl.static_range(3):
                p, r, c = plane + (dz - 1), row + (dy - 1), col + (dx - 1)
                inside = (p >= 0) & (p < NZ) & (r >= 0) & (r < NY) & (c >= 0) & (c < NX)
                near = tl.load(x_ptr + (p * NY + r) * NX + c, mask=inside, other=0.0)
                away = (dz != 1) + (dy != 1) + (dx != 1)
                if away == 0:
                    total += centre * near
                elif away == 1:
                    total += face * near
                elif away == 2:
                    total += edge * near
                else:
                    total += corner * near
    mask = (plane < NZ) & (row < NY) & (col < NX)
    tl.store(y_ptr + (plane * NY + row) * NX + col, total, mask=mask)
