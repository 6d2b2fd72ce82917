"""Sizes at which the page shows a kernel first: small enough to be replayed while one types."""

from __future__ import annotations

import inspect
from importlib import metadata

from swizzle_sim.kernels import GROUP

# Of the suite; the rest of each kernel's sizes are its defaults.
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


def start_sizes(name: str) -> dict[str, int]:
    """Every size of a kernel of the registry, at its start on the page; empty for a name that is no kernel."""
    return {**default_sizes(name), **START.get(name, {})} if name in _found() else {}


def default_sizes(name: str) -> dict[str, int]:
    """Every size of a kernel of the registry, at its default; empty for a name that is no kernel."""
    return {one.name: int(one.default) for one in _parameters(name) if isinstance(one.default, int)}


def switches(name: str) -> set[str]:
    """Sizes of a kernel that are 0 or 1."""
    return {one.name for one in _parameters(name) if isinstance(one.default, bool)}


def _parameters(name: str) -> list[inspect.Parameter]:
    found = _found()
    return list(inspect.signature(found[name].load()).parameters.values()) if name in found else []


def _found() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
