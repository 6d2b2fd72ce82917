"""What ran in the measured rows of AMD GPUs, as workloads that the model replays."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from swizzle_sim.workload.kernels import kernel
from xcd_model import Claims, Resources, Trace, TraceBuilder

from ..rows import Row
from ..workloads import dense_attention
from ..workloads.workload import Workload
from .maps import CUS, XCDS
from .tables import BYTES, Aiter, Gemm

THREADS = 256
LDS_BYTES = 65536


def tuned_gemm(gemm: Gemm) -> Workload:
    """GEMM of hipBLASLt: A and B as laid out, C with M contiguous; tiles numbered ``w1 * n0 + w0``.

    Threads and LDS are those of the kernel in the logic file; registers, which it does not say, are taken to be the
    accumulators and 128 for operands and addresses.
    """
    (m, n, k), (tile_m, tile_n), (n0, n1) = gemm.size, gemm.tile, gemm.tiles
    flops = 2.0 * n0 * tile_m * n1 * tile_n * k
    return Workload(
        name="tuned_gemm",
        problem={"M": m, "N": n, "K": k},
        dtype=gemm.dtype,
        resources=Resources(
            threads=gemm.threads,
            vgprs=min(512 // max(1, gemm.threads // THREADS), tile_m * tile_n // gemm.threads + 128),
            lds_bytes=min(LDS_BYTES, gemm.lds_bytes),
            instructions_in_flight=2 * gemm.prefetch,
            source="threads and LDS of the logic file; registers assumed of the tile",
        ),
        flops=2.0 * m * n * k,
        issued_flops=flops,
        build_trace=lru_cache(maxsize=1)(lambda line_bytes: _tensile_trace(gemm, line_bytes)),
        grid=(n0 * n1,),
        tiles=(n1, n0),
    )


def _tensile_trace(gemm: Gemm, line_bytes: int) -> Trace:
    """A K step loads A, then B; each workgroup begins K where StaggerU says."""
    (m, n, k), (tile_m, tile_n), depth, (n0, n1) = gemm.size, gemm.tile, gemm.depth, gemm.tiles
    build = TraceBuilder(n_workgroups=n0 * n1, line_bytes=line_bytes)
    w1, w0 = np.divmod(np.arange(n0 * n1), n0)
    steps = -(-k // depth)
    inner = (np.arange(steps)[None, :] + staggered(gemm, w0, w1)[:, None]) % steps * depth
    a, b = ("a", m, gemm.layout[0] == "T"), ("b", n, gemm.layout[1] == "N")
    loads = []
    for (name, side, k_fast), at, tile, kind in ((a, w0, tile_m, gemm.types[0]), (b, w1, tile_n, gemm.types[1])):
        shape, first = ((side, k), at[:, None] * tile)
        if k_fast:
            array = build.array(name, rows=shape[0], cols=k, item_bytes=BYTES[kind])
            loads.append(build.read(array, row=first, col=inner, rows=tile, cols=depth))
        else:
            array = build.array(name, rows=k, cols=side, item_bytes=BYTES[kind])
            loads.append(build.read(array, row=inner, col=first, rows=depth, cols=tile))
    d = build.array("d", rows=n, cols=m, item_bytes=BYTES[gemm.types[2]])
    build.step(*loads)
    build.step(build.write(d, row=w1 * tile_n, col=w0 * tile_m, rows=tile_n, cols=tile_m))
    return build.trace()


def staggered(gemm: Gemm, w0: np.ndarray, w1: np.ndarray) -> np.ndarray:
    """First K step of each tile: ``(by & mask) << shift``, the mask halved until the loop's whole steps hold it.

    Source: ROCm/hipBLASLt, TensileLite's declareStaggerParms.
    """
    whole, shift, stagger = gemm.size[2] // gemm.depth, gemm.stagger_shift, gemm.stagger
    while stagger and whole < stagger << shift:
        stagger //= 2
    by = {0: w0, 1: w1, 3: w1 * gemm.tiles[0] + w0}.get(gemm.stagger_mapping, np.zeros_like(w0))  # others: all alike
    return (by & max(0, stagger - 1)) << shift


def aiter_gemm(gemm: Aiter) -> Workload:
    """GEMM of aiter's FlyDSL kernels: A with K contiguous, B shuffled by 16 columns, C in 16 bits row by row."""
    (m, n, k), (tile_m, tile_n, depth) = gemm.size, gemm.tile
    n_m, n_n = -(-m // tile_m), -(-n // tile_n)

    def trace(line_bytes: int) -> Trace:
        build = TraceBuilder(n_workgroups=n_m * n_n, line_bytes=line_bytes)
        pid_m, pid_n = np.divmod(np.arange(n_m * n_n), n_n)
        inner = np.arange(0, k, depth)[None, :]
        a = build.array("a", rows=m, cols=k, item_bytes=gemm.item_bytes)
        b = build.array("b", rows=-(-n // 16), cols=16 * k, item_bytes=gemm.item_bytes)
        c = build.array("c", rows=m, cols=n, item_bytes=2)
        build.step(
            build.read(a, row=pid_m[:, None] * tile_m, col=inner, rows=tile_m, cols=depth),
            build.read(b, row=pid_n[:, None] * (tile_n // 16), col=16 * inner, rows=tile_n // 16, cols=16 * depth),
        )
        build.step(build.write(c, row=pid_m * tile_m, col=pid_n * tile_n, rows=tile_m, cols=tile_n))
        return build.trace()

    buffers = 2 if "lds2" in gemm.options else 1
    return Workload(
        name="aiter_gemm",
        problem={"M": m, "N": n, "K": k},
        dtype="fp8",
        resources=Resources(
            threads=THREADS,
            vgprs=min(512, tile_m * tile_n // THREADS + 128),
            lds_bytes=buffers * tile_m * depth * gemm.item_bytes,
            instructions_in_flight=4,
            source="assumed of the tile; B goes to registers",
        ),
        flops=2.0 * m * n * k,
        issued_flops=2.0 * n_m * tile_m * n_n * tile_n * k,
        build_trace=lru_cache(maxsize=1)(trace),
        grid=(n_m * n_n,),
        tiles=(n_m, n_n),
    )


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
