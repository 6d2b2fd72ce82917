"""What a page offers: the kernels of the registry and the shipped GPUs, and the files that the command line named."""

from __future__ import annotations

import inspect
import json
import os
from functools import lru_cache
from pathlib import Path

from swizzle_sim.capture.user_kernel import load
from swizzle_sim.workload.kernels import GROUP, Kernel, kernel_names, registered
from xcd_model import gpu_names

# Read by the process that replays.
_SERVED = {kind: f"SWIZZLE_SIM_EXPLORE_{kind.upper()}" for kind in ("kernel", "gpu")}

# Sizes at which the page shows a kernel first, small enough to be replayed while one types; others are defaults.
START: dict[str, dict[str, int]] = {
    "attention": {"H": 64, "S": 2048},
    "attention_decode": {"S": 8192},
    "attention_gqa": {"S": 2048},
    "batched_gemm": {"BATCH": 16, "K": 1024},
    "black_scholes": {"n_assets": 2**22},
    "conv_2d": {"N": 1, "H": 64, "W": 64, "C": 256},
    "fdtd_2d": {"Nx": 1024, "Ny": 1024},
    "fused_elementwise": {"n_elements": 2**22},
    "gemm": {"M": 4096, "N": 4096, "K": 2048, "BLOCK_M": 128, "BLOCK_N": 128},
    "gemm_streamk": {"M": 2048, "N": 2048, "K": 1024},
    "grouped_gemm": {"TOKENS": 1024, "N": 1792, "K": 2048},
    "layer_norm": {"M": 4096, "N": 4096},
    "smith_waterman": {"M": 2048, "N": 2048},
    "softmax": {"M": 4096, "N": 4096},
    "spmv": {},
    "stencil_2d": {"M": 2048, "N": 2048},
    "stencil_3d": {"NX": 128, "NY": 128, "NZ": 128},
    "transpose": {"M": 4096, "N": 4096},
}


def serve(kind: str, path: str) -> str:
    """Let pages of this process, and of those that it starts, open one file of a kernel or GPU; its name there."""
    name = Path(path).name
    os.environ[_SERVED[kind]] = json.dumps({name: str(Path(path).resolve())})
    return name


def served(kind: str) -> dict[str, str]:
    """Names that pages may open, with the path of each."""
    return dict(json.loads(os.environ.get(_SERVED[kind], "{}")))


def path_of(kind: str, name: str) -> str:
    """Path of a name that is served; any other name as it is."""
    return served(kind).get(name, name)


def known_kernels() -> list[str]:
    """Kernels of the registry, after the file that the command line named."""
    return [*served("kernel"), *kernel_names()]


def known_gpus() -> list[str]:
    """Shipped GPUs, after the description that the command line named."""
    return [*served("gpu"), *gpu_names()]


@lru_cache(maxsize=4)
def own_kernel(path: str, sizes: tuple[tuple[str, int], ...]) -> Kernel:
    """Kernel of a file that the command line named."""
    return load(path, dict(sizes))


def start_sizes(name: str) -> dict[str, int]:
    """Every size of a kernel at its start on the page; empty for a name that is no kernel."""
    return {**default_sizes(name), **START.get(name, {})}


def default_sizes(name: str) -> dict[str, int]:
    """Every size of a kernel at its default; empty for a name that is no kernel."""
    if name in served("kernel"):
        return dict(own_kernel(path_of("kernel", name), ()).problem)
    return {one.name: int(one.default) for one in _parameters(name) if isinstance(one.default, int)}


def switches(name: str) -> set[str]:
    """Sizes of a kernel that are 0 or 1."""
    return {one.name for one in _parameters(name) if isinstance(one.default, bool)}


def _parameters(name: str) -> list[inspect.Parameter]:
    found = registered(GROUP)
    return list(inspect.signature(found[name].load()).parameters.values()) if name in found else []
