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
    """GEMM of hipBLASLt, as `retune` replays a row of a logic file."""
    (m, n, k), (tile_m, tile_n), (a, b, out) = gemm.size, gemm.tile, (BYTES[one] for one in gemm.types)
    tiled = TiledGemm(
        name="tuned_gemm", shape=(n, m), k=k, tile=(tile_n, tile_m), depth=gemm.depth, dtype=gemm.dtype, out_bytes=out,
        operands=(
            Operand(along=1, item_bytes=a, k_fast=gemm.layout[0] == "T"),
            Operand(along=0, item_bytes=b, k_fast=gemm.layout[1] == "N"),
        ),
        lds_bytes=min(LDS_BYTES, gemm.lds_bytes), waves=gemm.threads // 64, in_flight=2 * gemm.prefetch,
        stagger=gemm.stagger, stagger_shift=gemm.stagger_shift, stagger_mapping=gemm.stagger_mapping,
    )  # fmt: skip
    return replace(_of_tiled(tiled), problem={"M": m, "N": n, "K": k})


def aiter_gemm(gemm: Aiter) -> Workload:
    """GEMM of aiter's FlyDSL kernels: A with K contiguous, B shuffled by 16 columns, C in 16 bits row by row."""
    (m, n, k), (tile_m, tile_n, depth), size = gemm.size, gemm.tile, gemm.item_bytes
    tiled = TiledGemm(
        name="aiter_gemm", shape=(m, n), k=k, tile=(tile_m, tile_n), depth=depth, dtype="fp8",
        operands=(Operand(along=0, item_bytes=size), Operand(along=1, item_bytes=size, together=16)),
        lds_bytes=(2 if "lds2" in gemm.options else 1) * tile_m * depth * size,
    )  # fmt: skip
    return _of_tiled(tiled)


def _of_tiled(tiled: TiledGemm) -> Workload:
    """Workload with its trace kept, which two replays read."""
    work = Workload.of_kernel(tiled.kernel())
    return replace(work, tiles=tiled.tiles, build_trace=lru_cache(maxsize=1)(work.build_trace))


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
