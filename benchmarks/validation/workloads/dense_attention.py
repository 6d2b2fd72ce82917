"""Dense attention of AMD's rocke kernels on MI300X and MI355X, under every order and grid that was counted.

An order is its digits, fastest first: Q query block, B batch, V key head, G query head of its key head's; X is the band
of query heads that an XCD owns and Y a head of it; P is a block of the lower half, paired with its mirror image by the
half Z; L and W are the two parts of G.

Source: ROCm/rocm-libraries 65d3e7a, dnn-providers/hip-kernel-provider/rocke: the case study of its thread-block mapping
(orders: sections 2.5 and 5 and library/kernels/common/attention_dense_decode.py; L2 hit rates of six shapes: section
6.3), and the kernels' specification (2441b8a): 256 queries and 64 keys, eight waves, one workgroup a CU, tensors as
(batch, sequence, head, column).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from xcd_model import Resources, Trace, TraceBuilder, gpu
from xcd_model.errors import UnknownName

from ...suite.declared import Sizes
from ...suite.flash_attention import FITTED as OF_SOFTMAX
from ...suite.flash_attention import key_blocks, softmax_ops
from ..rows import Row
from .workload import Workload


class Order(NamedTuple):
    """Digits of an order, and which way through the query blocks it goes where a mask is causal and where not."""

    digits: str
    causal: str = "up"
    full: str = "up"


ORDERS: dict[str, Order] = {
    "launched qb_minor": Order("QGVB"),
    "launched bt_hkv_minor": Order("BVGQ", "down"),
    "launched hq_minor_swz": Order("XQYB", "down"),
    "persistent qb_major": Order("BGVQ"),
    "persistent bt_hkv_minor": Order("BVGQ", "fold"),
    "persistent hkv_major": Order("BGQV", "fold", "fold"),
    "persistent gqa_pair": Order("LBVPWZ"),
    "persistent gqa_pair_2phase": Order("GBVPZ"),
}
WAYS = {
    "up": lambda block, count: block,
    "down": lambda block, count: count - 1 - block,
    "fold": lambda block, count: np.where(block < count // 2, block, count - 1 - (block - count // 2)),
}


def items_of(name: str, size: Mapping[str, int], xcds: int) -> np.ndarray:
    """Item that each id of a launched or persistent grid computes, numbered query block fastest, then head, then batch.

    Returns
    -------
    item : (B * H * query blocks,) int64
    """
    if name not in ORDERS:
        raise UnknownName("order of dense attention", name, ORDERS)
    order, blocks, heads, shared = ORDERS[name], -(-size["S"] // size["BM"]), size["H"], size["H"] // size["HKV"]
    counts = {"Q": blocks, "G": shared, "V": size["HKV"], "B": size["B"], "X": xcds, "Y": heads // xcds}
    counts |= {"P": blocks // 2, "Z": 2, "L": 2, "W": shared // 2}
    digit = {}
    left = np.arange(blocks * heads * size["B"], dtype=np.int64)
    for letter in order.digits:
        left, digit[letter] = np.divmod(left, counts[letter])
    if "P" in digit:
        block = np.where(digit["Z"] == 0, digit["P"], blocks - 1 - digit["P"])
    else:
        block = WAYS[order.causal if size["CAUSAL"] else order.full](digit["Q"], blocks)
    if "X" in digit:
        head = digit["X"] * counts["Y"] + digit["Y"]
    else:
        head = digit["V"] * shared + (digit["G"] if "G" in digit else digit["L"] * counts["W"] + digit["W"])
    return (digit["B"] * heads + head) * blocks + block


ITEM_BYTES = 2
STORED_COLUMNS = 8  # of O, in one store of a wave: 16 bytes of each of its 32 rows
FITTED = {**OF_SOFTMAX, "loads of Q merged by the L1": ("dense/mi355x-*",)}  # decision 0003


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
    return key_blocks(Sizes({**size, "BLOCK_M": size["BM"], "BLOCK_N": size["BN"]}))


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
