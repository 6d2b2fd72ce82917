"""Attention rows, shortened: the first waves of workgroups, over all keys, since drift grows with them.

Sources: FlyDSL pull request 919 for the MI355X row, one workgroup of 256 queries a CU; arXiv 2511.02132 for MI300X,
whose tile and occupancy are not stated: 128 queries, 64 keys, and what such a kernel compiles to, are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.workload import Workload
from benchmarks.suite.flash_attention import softmax_ops
from xcd_model.builder import TraceBuilder
from xcd_model.dispatch import Resources
from xcd_model.trace import Trace

ITEM_BYTES = 2


@dataclass(frozen=True)
class Shape:
    """What a workgroup occupies, and how many are replayed."""

    vgprs: int
    lds_bytes: int
    workgroups: int
    source: str


KERNELS: dict[str, Shape] = {
    "attention_fly": Shape(512, 128 * 1024, 2048, "one workgroup a CU, as published"),
    "attention_numa": Shape(218, 32 * 1024, 1280, "Triton 3.9 on gfx942 for 128 queries, 64 keys, D = 128"),
}


def make(name: str, row: Row) -> Workload:
    """One of `KERNELS` at a row's sizes, cut to its first waves."""
    size, shape = row.problem, KERNELS[name]
    heads = 8 if row.order == "swizzled-head-first" else size["H"]  # one head an XCD at a time
    blocks = min(-(-size["S"] // size["BM"]), shape.workgroups // heads)
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
        build_trace=lambda line_bytes: trace(size, heads, blocks, line_bytes),
        grid=(heads * blocks,),
        tiles=(heads, blocks),
        note=f"cut to {heads} heads of {blocks} query blocks, all keys: workgroups drift apart within the first waves, "
        "and in later ones they stay so",
    )


def trace(size: Mapping[str, int], heads: int, blocks: int, line_bytes: int) -> Trace:
    """Q once, K and V block by block, O once; workgroups head by head."""
    d, queries, keys, step = size["D"], size["BM"], size["S"], size["BN"]
    head, block = np.divmod(np.arange(heads * blocks), blocks)
    build = TraceBuilder(n_workgroups=head.size, line_bytes=line_bytes)
    q, o = (build.array(name, rows=heads * blocks * queries, cols=d, item_bytes=ITEM_BYTES) for name in "QO")
    k, v = (build.array(name, rows=heads * keys, cols=d, item_bytes=ITEM_BYTES) for name in "KV")
    own = {"row": (head * blocks + block) * queries, "col": 0, "rows": queries, "cols": d}
    build.step(build.read(q, **own))
    place = {"row": head[:, None] * keys + np.arange(0, keys, step), "col": 0, "rows": step, "cols": d}
    build.step(build.read(k, **place), build.read(v, **place))
    build.step(build.write(o, **own))
    return build.trace()
