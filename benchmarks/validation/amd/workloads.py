"""What ran in the measured rows of AMD GPUs, as workloads that the model replays."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from swizzle_sim.search.tables.gemm import Operand, TiledGemm
from swizzle_sim.workload.kernels import kernel
from xcd_model import Claims

from ..rows import Row
from ..workloads import dense_attention
from ..workloads.workload import Workload
from .maps import CUS, XCDS
from .tables import BYTES, Aiter, Gemm

LDS_BYTES = 65536


def tuned_gemm(gemm: Gemm) -> Workload:
    """GEMM of hipBLASLt: A and B as laid out, C with M contiguous; tiles numbered ``w1 * n0 + w0``.

    Occupancy follows from what Tensile lays out: two buffers of A and B in LDS where both fit.
    """
    (m, n, k), (tile_m, tile_n), depth = gemm.size, gemm.tile, gemm.depth
    bytes_a, bytes_b, bytes_d = (BYTES[kind] for kind in gemm.types)
    one_buffer = (tile_m + tile_n) * depth * max(bytes_a, bytes_b)
    tiled = TiledGemm(
        name="tuned_gemm",
        shape=(n, m),
        k=k,
        tile=(tile_n, tile_m),
        depth=depth,
        operands=(
            Operand(along=1, item_bytes=bytes_a, k_fast=gemm.layout[0] == "T"),
            Operand(along=0, item_bytes=bytes_b, k_fast=gemm.layout[1] == "N"),
        ),
        dtype=gemm.dtype,
        lds_bytes=min(LDS_BYTES, 2 * one_buffer if 2 * one_buffer <= LDS_BYTES else one_buffer),
        out_bytes=bytes_d,
        in_flight=2 * gemm.prefetch,
        stagger=gemm.stagger,
    )
    return _workload(tiled)


def aiter_gemm(gemm: Aiter) -> Workload:
    """GEMM of aiter's FlyDSL kernels: A with K contiguous, B shuffled by 16 columns, C in 16 bits row by row."""
    (m, n, k), (tile_m, tile_n, depth) = gemm.size, gemm.tile
    tiled = TiledGemm(
        name="aiter_gemm",
        shape=(m, n),
        k=k,
        tile=(tile_m, tile_n),
        depth=depth,
        operands=(
            Operand(along=0, item_bytes=gemm.item_bytes),
            Operand(along=1, item_bytes=gemm.item_bytes, together=16),
        ),
        dtype="fp8",
        lds_bytes=(2 if "lds2" in gemm.options else 1) * tile_m * depth * gemm.item_bytes,
    )
    return _workload(tiled)


def _workload(gemm: TiledGemm) -> Workload:
    found = Workload.of_kernel(gemm.kernel())
    return replace(found, tiles=gemm.tiles, swizzled=None)


def sweep_gemm(size: int) -> Workload:
    """Persistent GEMM of the sweep at one size; the adaptive split says how many tiles are an XCD's own."""
    work = Workload.of_kernel(kernel("gemm_dynamic", M=size, N=size, K=size, PROGRAMS=CUS, POOLS=XCDS, LOCAL=100))
    build = lru_cache(maxsize=1)(work.build_trace)
    return replace(work, claims=Claims(pools=XCDS, local=local_tiles(size)), build_trace=build)


def local_tiles(size: int) -> int:
    """Tiles in runs for each XCD. Source: ROCm/tritonBLAS, origami.py, hierarchical_split."""
    tiles = (size // 256) ** 2
    share = max(0.5, 1.0 - max(0.0, tiles / CUS - 4.0) * 0.05)
    return int(tiles * share) // XCDS * XCDS


def attention_row(shape: tuple[int, ...], order: str) -> Row:
    """Row of dense attention of one shape and order, as the tables of hit rates have it."""
    sizes = dict(zip(("B", "H", "HKV", "S", "CAUSAL"), shape, strict=True)) | {"D": 128, "BM": 256, "BN": 64}
    return Row(
        id=f"amd/{shape}:{order}", gpu="mi300x", kernel="attention_dense", problem=sizes, order=order,
        quantity="throughput_tflops", unit="%", measured=0.0, low=0.0, high=0.0, source="",
    )  # fmt: skip


def attention(shape: tuple[int, ...], order: str) -> tuple[Workload, np.ndarray]:
    """Dense attention of one shape as one order launches it, and the items in that order."""
    row = attention_row(shape, order)
    return dense_attention.make(row), dense_attention.items_of(order, row.problem, XCDS)
