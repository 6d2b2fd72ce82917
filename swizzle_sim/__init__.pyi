from swizzle_sim.base.release import version
from swizzle_sim.capture.describe import describe
from swizzle_sim.capture.recorder import record
from swizzle_sim.capture.user_kernel import kernel
from swizzle_sim.language import Grid, Swizzle, Verdict, emit_hip, emit_triton, family, verify
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer, score
from swizzle_sim.report.display.picture import Picture, show_map
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import Run
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.search.what_if import what_if
from swizzle_sim.workload.kernels import Kernel, kernel_names
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.errors import NotBijective, SwizzleSimError

__all__ = [
    "Attempt",
    "Gpu",
    "Grid",
    "History",
    "Kernel",
    "NotBijective",
    "Picture",
    "Run",
    "Score",
    "Scorer",
    "Swizzle",
    "SwizzleSimError",
    "Verdict",
    "describe",
    "emit_hip",
    "emit_triton",
    "family",
    "gpu",
    "gpu_names",
    "kernel",
    "kernel_names",
    "optimize",
    "record",
    "score",
    "show_map",
    "verify",
    "version",
    "what_if",
]
