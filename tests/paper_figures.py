"""The paper's listings as printed, with launches they are meant for."""

from swizzle_benchmarks.evidence.paper.formulas import LISTINGS
from swizzle_sim.language import Grid

_STENCIL = {"M": 8192, "N": 8192, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32}
_TRANSPOSE = {"M": 32768, "N": 32768, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32}
_FDTD = {"Nx": 8192, "Ny": 8192, "BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32}

# figure: text, grid, sizes
FIGURES = {
    6: (LISTINGS[6], Grid((20480,)), {"M": 20480}),
    7: (LISTINGS[7], Grid((32768,)), {}),
    8: (LISTINGS[8], Grid((256, 256)), _FDTD),
    9: (LISTINGS[9], Grid((256, 256)), _STENCIL),
    10: (LISTINGS[10], Grid((1024, 1024)), _TRANSPOSE),
    11: (LISTINGS[11], Grid((1024, 1024)), _TRANSPOSE),
    # No grid is printed for these two; the transpose's tiles, launched in one dimension.
    12: (LISTINGS[12], Grid((1024 * 1024,), (1024, 1024)), _TRANSPOSE),
    13: (LISTINGS[13], Grid((1024 * 1024,)), {}),
}
