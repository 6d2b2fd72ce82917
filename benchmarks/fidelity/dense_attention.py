"""Dense attention of AMD's rocke kernels on MI300X and MI355X, under every order and grid that was counted.

Source: ROCm/rocm-libraries 65d3e7a, dnn-providers/hip-kernel-provider/rocke: the case study of its thread-block mapping
(L2 hit rates of six shapes, its section 6.3), and the kernels' specification (2441b8a): 256 queries and 64 keys, eight
waves, one workgroup a CU, tensors as (batch, sequence, head, column).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.fidelity.dense_orders import items_of
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.workload import Workload
from benchmarks.suite.flash_attention import FITTED as OF_SOFTMAX
from benchmarks.suite.flash_attention import key_blocks, softmax_ops
from xcd_model import Resources, Trace, TraceBuilder, gpu

ITEM_BYTES = 2
STORED_COLUMNS = 8  # of O, in one store of a wave: 16 bytes of each of its 32 rows
FITTED = {**OF_SOFTMAX, "loads of Q merged by the L1": ("dense/mi355x-*",)}  # decision 0030


@dataclass(frozen=True)
class Shape:
    """What a workgroup occupies, and how many tiles of keys it reads past its last."""

    vgprs: int
    lds_bytes: int
    tiles_over: int
    source: str


SHAPES: dict[str, Shape] = {
    "mi300x": Shape(217, 34816, 0, "gfx942: one buffer, K and V of a tile at a time"),
    "mi355x": Shape(256, 75776, 1, "gfx950: two buffers, the tile after the last loaded as well"),
}


def make(row: Row) -> Workload:
    """Attention at a row's sizes, launched as its order says."""
    size, shape = row.problem, SHAPES[row.gpu]
    blocks = -(-size["S"] // size["BM"])
    items = blocks * size["H"] * size["B"]
    scores = float(size["B"] * size["H"] * size["BM"] * size["BN"] * key_tiles(size).sum())
    return Workload(
        name="attention_dense",
        problem=size,
        dtype="bf16",
        resources=Resources(
            threads=512,
            vgprs=shape.vgprs,
            lds_bytes=shape.lds_bytes,
            instructions_in_flight=1,
            source=shape.source,
        ),
        flops=4.0 * scores * size["D"],
        issued_flops=4.0 * scores * size["D"],
        vector_ops=scores * softmax_ops(size["D"], size["BN"]),
        build_trace=lambda line_bytes: trace(size, shape.tiles_over, line_bytes),
        grid=(items,),
        tiles=(size["B"] * size["H"], blocks),
        schedule=lambda order, xcds: items_of(order, size, xcds),
        programs=min(gpu(row.gpu).cus, items) if row.order.startswith("persistent ") else None,
        fitted=FITTED,
    )


def key_tiles(size: Mapping[str, int]) -> np.ndarray:
    """(query blocks,) tiles of keys that each needs: all, or those up to its diagonal."""
    return key_blocks({**size, "BLOCK_M": size["BM"], "BLOCK_N": size["BN"]})


def trace(size: Mapping[str, int], tiles_over: int, line_bytes: int) -> Trace:
    """Q once; K and V of a tile at a time, which are waited for; O sixteen bytes of every row after the other.

    A lane loads 8 or 16 bytes of a row of Q at a time, so a line is asked for several times; the L1 is taken to merge
    them. Items are numbered query block fastest, then head, then batch. The tile after the last is that of the next
    keys, or of the next batch.
    """
    d, queries, step, s = size["D"], size["BM"], size["BN"], size["S"]
    tiles = key_tiles(size)
    batch, head, block = np.unravel_index(
        np.arange(size["B"] * size["H"] * tiles.size), (size["B"], size["H"], tiles.size)
    )
    build = TraceBuilder(n_workgroups=block.size, line_bytes=line_bytes)
    q, o = (build.place(name, shape=(size["B"] * s, size["H"], d), item_bytes=ITEM_BYTES) for name in "QO")
    kv = build.place("KV", shape=(2, size["B"] * s, size["HKV"], d), item_bytes=ITEM_BYTES)
    first = batch * s + block * queries
    build.step(build.read_box(q, at=(first, head, 0), size=(queries, 1, d)))
    asked = tiles[block][:, None] + tiles_over
    start = np.arange(0, int(asked.max()) * step, step)[None, :]
    keys = {
        "at": (0, batch[:, None] * s + start, head[:, None] // (size["H"] // size["HKV"]), 0),
        "size": (2, np.where(start < asked * step, step, 0), 1, d),
    }
    build.step(build.read_box(kv, **keys))
    stored = (
        build.write_box(o, at=(first, head, column), size=(queries, 1, STORED_COLUMNS))
        for column in range(0, d, STORED_COLUMNS)
    )
    build.step(build.together(*stored))
    return build.trace()
