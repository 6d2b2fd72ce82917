"""A few cheap rows of every kind: each GPU, permutations and others, formulas and named orders."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fidelity.rows import Row

QUICK = (
    "paper/fused_elementwise@64:",
    "paper/black_scholes@256:",
    "paper/smith_waterman@128x128:baseline",
    "paper/softmax@8192:chunk",
    "paper/softmax@8192:double_low3",
    "paper/layer_norm@8192:corner64",
    "paper/transpose@256x256:",
    "paper/fdtd_2d@128x128:fdx",
    "published/gluon-old",
    "h200/gemm-4096x4096x4096x128x256x64:row:",
    "h200/gemm-4096x4096x4096x128x256x64:grp8:",
    "h200/gemm-4096x4096x4096x128x256x64:scatter:",
)


def quick(rows: Sequence[Row]) -> list[Row]:
    """Those of the rows that a few seconds suffice for."""
    return [row for row in rows if row.id.startswith(QUICK)]
