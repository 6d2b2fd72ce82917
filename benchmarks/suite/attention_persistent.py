"""Causal attention by programs that stay: program p computes tiles p, p + PROGRAMS, ..., a query block of a head each.

The default is the shape at which AMD's rocke study compares its persistent orders, 32 query and 8 key heads of 4096
tokens in blocks of 256 queries, a program a CU of an MI300X; `PROGRAMS=256` is one a CU of an MI355X.
"""

from dataclasses import replace

from .declared import number
from .flash_attention import SHAPES, attention, others

attention_persistent = replace(
    attention,
    name="attention_persistent",
    summary="attention, fp16, persistent programs, query heads share keys in groups",
    sharing="""\
Workgroups are PROGRAMS programs that stay; program p computes tiles p, p + PROGRAMS, ... one after the other. Tile
(m, n), numbered query block by query block, heads fastest, reads BLOCK_M rows of Q of head n, all of K and V of key
head n // (H / HKV) (up to the diagonal if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. Tiles of
the H / HKV query heads of one key head, a run of columns, share K and V. The work of a tile grows with m if CAUSAL, and
which tiles one program gets decides when the last is done.""",
    sources=("ROCm/rocm-libraries PR 9480 (persistent grid, shape)", "FlashAttention-2, arXiv 2307.08691"),
    sizes={"B": 1, "H": 32, "HKV": 8, "S": 4096, "D": 128, "CAUSAL": True, "BLOCK_M": 256, "BLOCK_N": 64}
    | {"PROGRAMS": 304},  # launched; more than tiles are as many as tiles
    derived={**attention.derived, "HEADS": lambda s: s.B * s.H},
    flat=True,
    others=lambda s: others(s, [shape for shape in SHAPES if shape != (4, 4)]),
    arguments="S H HKV HEADS scale",
    # Causal; the compiler spills 25 registers a lane, which a trace does not show.
    compiled={((256, 64, 128), 8): (256, 64 * 1024)},
    num_warps=8,
    more=lambda s: {**attention.more(s), "programs": min(s.PROGRAMS, number(s, "S/BLOCK_M*HEADS"))},
)
