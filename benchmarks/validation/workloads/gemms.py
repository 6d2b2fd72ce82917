"""GEMMs behind the MI355X rows: both operands with K contiguous, one workgroup a CU, C in 16 bits.

Sources: ROCm gfx950-gluon-tutorials (kernels/gemm/a16w16, v7 to v9 of its two series); jamesbowley's fork of it
(2fdc8b5, v9 to v15: the same tile, one workgroup a tile, persistent, and stream-K); tingqli/pyhip (0487ed4, the same
tile in FlyDSL, B shuffled by 16 rows, which moves no line from one tile to another); HipKittens (arXiv 2511.08083),
table 4 and grid_micro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xcd_model import Resources, Trace, TraceBuilder

from ...suite.gemm_streamk import gemm_streamk
from ..rows import Row
from . import orders
from .workload import Workload

ITEM_BYTES = 2
GROUP_M = 4  # of the stream-K kernel


@dataclass(frozen=True)
class Shape:
    """How a kernel loads: ``slices`` pieces of A and of B a K step, ``in_flight`` loads ahead of their compute."""

    slices: int
    in_flight: int
    dtype: str
    source: str


KERNELS: dict[str, Shape] = {
    "gemm_gluon_old": Shape(1, 4, "fp16", "a16w16 v8_beyond_hotloop: whole tiles, double-buffered"),
    "gemm_gluon_new": Shape(2, 8, "fp16", "a16w16 v8_sliceMN, v9_beyond_hotloop: tiles loaded in halves, two buffers"),
    "gemm_gluon_between": Shape(2, 8, "fp16", "a16w16 v7 and v8 of the first series, scheduled: as gemm_gluon_new"),
    "gemm_gluon_shapes": Shape(2, 8, "bf16", "v9_beyond_hotloop of the fork: as gemm_gluon_new"),
    "gemm_gluon_cube": Shape(2, 8, "bf16", "ROCm's kernel as pyhip counted it; assumed: as gemm_gluon_new"),
    "gemm_flydsl": Shape(2, 8, "bf16", "pyhip's gemm_4wave_950: tiles loaded in halves, two buffers; by 4 waves"),
    "gemm_hk": Shape(2, 8, "bf16", "assumed: HipKittens' 8-wave GEMM loads its tiles in halves, two buffers"),
    "gemm_gluon_persistent": Shape(2, 8, "bf16", "v10 to v13 of the fork: v9_beyond_hotloop, made persistent"),
    "gemm_persistent": Shape(2, 8, "bf16", "as gemm_gluon_persistent; the two launches that a target names"),
    "gemm_cut": Shape(1, 4, "bf16", "v15 of the fork, a stream-K GEMM; whole tiles and two stages assumed"),
}


def make(name: str, row: Row) -> Workload:
    """One of `KERNELS` at a row's sizes."""
    size, shape = row.problem, KERNELS[name]
    tiles = (-(-size["M"] // size["BM"]), -(-size["N"] // size["BN"]))
    streamed = name == "gemm_cut"
    cut = {**{f"BLOCK_SIZE_{axis}": size[f"B{axis}"] for axis in "MNK"}, "GROUP_M": GROUP_M, **size}
    count = tiles[0] * tiles[1]
    return Workload(
        name=name,
        problem=size,
        dtype=shape.dtype,
        resources=Resources(
            threads=512,
            vgprs=256,
            lds_bytes=2 * (size["BM"] + size["BN"]) * size["BK"] * ITEM_BYTES,
            instructions_in_flight=shape.in_flight,
            source=f"one workgroup a CU, as published; {shape.source}",
        ),
        flops=2.0 * size["M"] * size["N"] * size["K"],
        issued_flops=2.0 * tiles[0] * size["BM"] * tiles[1] * size["BN"] * size["K"],
        build_trace=lambda line_bytes: (
            gemm_streamk.tracer(cut)(line_bytes) if streamed else trace(size, shape.slices, line_bytes)
        ),
        grid=(size["PROGRAMS"] if streamed else count,),
        tiles=tiles,
        schedule=(lambda order, xcds: _programs(size, xcds)) if streamed else None,
        programs=min(size["PROGRAMS"], count) if "PROGRAMS" in size and not streamed else None,
    )


def trace(size: Mapping[str, int], slices: int, line_bytes: int) -> Trace:
    """Per K step ``slices`` loads of A and of the transposed B; at the end a store of C; tiles row-major."""
    m, n, k, block_m, block_n, block_k = (size[name] for name in ("M", "N", "K", "BM", "BN", "BK"))
    pid_m, pid_n = np.divmod(np.arange(-(-m // block_m) * -(-n // block_n)), -(-n // block_n))
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    a = build.array("A", rows=m, cols=k, item_bytes=ITEM_BYTES)
    b = build.array("B", rows=n, cols=k, item_bytes=ITEM_BYTES)
    c = build.array("C", rows=m, cols=n, item_bytes=ITEM_BYTES)
    inner = np.arange(0, k, block_k)[None, :]
    row, col = pid_m[:, None] * block_m, pid_n[:, None] * block_n
    loads = []
    for piece in range(slices):
        for array, first, block in ((a, row, block_m // slices), (b, col, block_n // slices)):
            loads.append(build.read(array, row=first + piece * block, col=inner, rows=block, cols=block_k))
    build.step(*loads)
    build.step(build.write(c, row=row, col=col, rows=block_m, cols=block_n))
    return build.trace()


def _programs(size: Mapping[str, int], xcds: int) -> np.ndarray:
    """Remapped id of each program."""
    return orders.contiguous(np.arange(size["PROGRAMS"]), xcds)
