"""Attention rows over all keys, since drift grows with them; of MI300X's, the first waves of workgroups.

Sources: FlyDSL pull request 919 for the MI355X row, one workgroup of 256 queries a CU, and its pull request 133 for how
tensors lie (batch, sequence, head, column); arXiv 2511.02132 for MI300X, whose layout, tile and occupancy are not
stated: a head after the other, 128 queries, 64 keys, and what such a kernel compiles to, are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xcd_model import Resources, Trace, TraceBuilder

from ...suite.flash_attention import FITTED, softmax_ops
from ..rows import Row
from .workload import Workload

ITEM_BYTES = 2


@dataclass(frozen=True)
class Shape:
    """What a workgroup occupies, how many are replayed if not all, and whether heads lie side by side in a tensor."""

    vgprs: int
    lds_bytes: int
    workgroups: int | None
    side_by_side: bool
    source: str


KERNELS: dict[str, Shape] = {
    "attention_fly": Shape(512, 128 * 1024, None, True, "one workgroup a CU, as published"),
    "attention_numa": Shape(218, 32 * 1024, 1280, False, "Triton 3.9 on gfx942 for 128 queries, 64 keys, D = 128"),
}


def make(name: str, row: Row) -> Workload:
    """One of `KERNELS` at a row's sizes, cut to its first waves."""
    size, shape = row.problem, KERNELS[name]
    heads = 8 if row.order == "swizzled-head-first" else size["H"]  # one head an XCD at a time
    of_a_head = -(-size["S"] // size["BM"])
    blocks = of_a_head if shape.workgroups is None else min(of_a_head, shape.workgroups // heads)
    flops = 4.0 * heads * blocks * size["BM"] * size["S"] * size["D"]
    return Workload(
        name=name,
        problem=size,
        dtype="fp16" if name == "attention_numa" else "bf16",
        resources=Resources(
            threads=256,
            vgprs=shape.vgprs,
            lds_bytes=shape.lds_bytes,
            instructions_in_flight=2,
            source=shape.source,
        ),
        flops=flops,
        issued_flops=flops,
        vector_ops=float(heads * blocks * size["BM"] * size["S"]) * softmax_ops(size["D"], size["BN"]),
        build_trace=lambda line_bytes: trace(size, heads, blocks, line_bytes, side_by_side=shape.side_by_side),
        grid=(heads * blocks,),
        tiles=(heads, blocks),
        note=_cut(heads, blocks) if heads * blocks < size["H"] * of_a_head else "",
        fitted=FITTED,
    )


def _cut(heads: int, blocks: int) -> str:
    return f"cut to {heads} heads of {blocks} query blocks, all keys: drift grows within the first waves of workgroups"


def trace(size: Mapping[str, int], heads: int, blocks: int, line_bytes: int, *, side_by_side: bool) -> Trace:
    """Q once, K and V block by block, O once; workgroups head by head.

    A row of a tensor is one key or query of one head, or of all heads where they lie ``side_by_side``.
    """
    d, queries, keys, step = size["D"], size["BM"], size["S"], size["BN"]
    head, block = np.divmod(np.arange(heads * blocks), blocks)
    build = TraceBuilder(n_workgroups=head.size, line_bytes=line_bytes)
    above, across = (1, heads) if side_by_side else (heads, 1)
    q, o = (build.array(name, rows=above * blocks * queries, cols=across * d, item_bytes=ITEM_BYTES) for name in "QO")
    k, v = (build.array(name, rows=above * keys, cols=across * d, item_bytes=ITEM_BYTES) for name in "KV")
    first, col = (0 * head, head * d) if side_by_side else (head, 0 * head)
    own = {"row": (first * blocks + block) * queries, "col": col, "rows": queries, "cols": d}
    build.step(build.read(q, **own))
    place = {"row": first[:, None] * keys + np.arange(0, keys, step), "col": col[:, None], "rows": step, "cols": d}
    build.step(build.read(k, **place), build.read(v, **place))
    build.step(build.write(o, **own))
    return build.trace()
