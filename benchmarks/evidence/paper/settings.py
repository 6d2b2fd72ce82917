"""What a figure is made with: sizes, evaluations, and where recorded runs are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.workload.kernels import Kernel, kernel

from .recorded import FOLDER

GPU = "mi300x"
EVALUATIONS = 64
QUICK_EVALUATIONS = 2
SECONDS = {"fdtd_2d": 300.0, "gemm_streamk": 250.0, "stencil_2d": 170.0, "transpose": 120.0, "black_scholes": 110.0}
SMALL = {  # sizes of --quick
    "gemm": {"M": 1024, "N": 1024, "K": 128},
    "gemm_streamk": {"M": 1024, "N": 1024, "K": 256, "PROGRAMS": 12},
    "fused_elementwise": {"n_elements": 1 << 16},
    "layer_norm": {"M": 200, "N": 256},
    "softmax": {"M": 200, "N": 256},
    "spmv": {"M": 128, "N": 128, "NNZ_PER_ROW": 8},
    "transpose": {"M": 512, "N": 512},
    "black_scholes": {"n_assets": 1 << 16},
    "fdtd_2d": {"Nx": 512, "Ny": 512},
    "smith_waterman": {"M": 128, "N": 96},
    "stencil_2d": {"M": 512, "N": 384},
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How figures are made.

    Parameters
    ----------
    quick : bool
        Small sizes and few evaluations: whether everything works, not what comes out.
    studies : Path
        Folder of recorded runs of models.
    processes : int, optional
        One a core where not given.
    again : bool
        Work out what is kept, too.
    """

    quick: bool = False
    studies: Path = FOLDER
    processes: int | None = None
    again: bool = False

    def kernel(self, name: str, **sizes: int) -> Kernel:
        """Kernel at the sizes measured for the paper, or small."""
        return kernel(name, **({**SMALL[name], **sizes} if self.quick else sizes))

    @property
    def evaluations(self) -> int:
        """Evaluations of the families, and of the search."""
        return QUICK_EVALUATIONS if self.quick else EVALUATIONS
