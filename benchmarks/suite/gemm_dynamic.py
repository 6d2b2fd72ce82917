"""Persistent GEMM whose programs claim tiles from atomic counters: one for all, or one an XCD and one for the rest.

Programs whose pool is empty may claim from the other pools before that (STEAL).

A tile is its counter's value, so that a swizzle orders what the counters hand out. Claims are left out of the trace.
Sources: ROCm/tritonBLAS PR 64 (work-stealing persistent GEMM; its per-XCD, global and hierarchical modes) and PR 86
(stealing from other pools), with that library's 8192^3, tile 256 x 256 x 64, eight waves, 304 programs.
"""

from dataclasses import replace

from xcd_model import Claims

from .declared import Tensor, number
from .gemm import NUM_WARPS, gemm

gemm_dynamic = replace(
    gemm,
    name="gemm_dynamic",
    summary="C = A B, fp16, persistent programs claim output tiles from atomic counters",
    sharing="""\
Workgroups are PROGRAMS programs that stay; one that has ended a tile claims the next: program p from pool p % POOLS,
which hands out tiles p % POOLS, p % POOLS + POOLS, ... below LOCAL hundredths of all; where that is empty, if STEAL is
1 from the next pools in turn, and then from the tiles after them, which are for all. Tile (m, n), numbered row by row,
reads row panel m of A and column panel n of B, a BLOCK_K slice of each per step, and writes tile (m, n) of C once.""",
    sources=("ROCm/tritonBLAS PR 64", "AMD-AGI/Primus-Turbo PR 353"),
    sizes={
        **gemm.sizes,
        "PROGRAMS": 304,  # launched; more than tiles are as many as tiles
        "POOLS": 8,  # counters of their own that programs ask first; 1 with LOCAL = 100 is a single counter
        "LOCAL": 75,  # tiles in pools, in hundredths of all
        "STEAL": False,
    },
    derived={
        "tiles": lambda s: number(s, "M/BLOCK_M*N/BLOCK_N"),
        "local": lambda s: s.tiles * s.LOCAL // 100,
        "counters": lambda s: s.POOLS + 1,
    },
    tensors={**gemm.tensors, "counter": Tensor("counters", "int32", role="inout", fill=0, is_counter=True)},
    arguments="M N K",
    constexprs="LOCAL=local POOLS STEAL BLOCK_M BLOCK_N BLOCK_K",
    rules={
        "LOCAL = {s.LOCAL}: hundredths of the tiles, at most 100": lambda s: s.LOCAL <= 100,
        "PROGRAMS = {s.PROGRAMS}, POOLS = {s.POOLS}: a pool without a program is never emptied": lambda s: (
            s.STEAL or min(s.POOLS, s.local) <= s.PROGRAMS
        ),
    },
    # At 256 x 256 the compiler spills 24 registers a lane, which a trace does not show.
    compiled={((128, 128, 64), NUM_WARPS): (144, 32 * 1024), ((256, 256, 64), NUM_WARPS): (256, 64 * 1024)},
    estimate=None,
    more=lambda s: {
        "programs": min(s.PROGRAMS, s.tiles),
        "claims": Claims(pools=s.POOLS, local=s.local, steals=bool(s.STEAL)),
    },
)
