"""Stream-K GEMM: a fixed number of workgroups, whole tiles first, the rest dealt out in equal shares of K steps.

This is the GEMM that SwizzlePerf measured: 304 workgroups, one for each CU of an MI300X.

Its launch is like every one but the first: the kernel never takes a lock back, so all are set, nobody waits, and
``partial_ptr`` holds sums.
Sources: SwizzlePerf (arXiv 2508.20258, appendix A.2), 8192^3 in fp16, tiles 256 x 256 x 64 in groups of 8 tile rows;
Stream-K (arXiv 2301.03598) for the decomposition.
"""

from __future__ import annotations

from .declared import DOT, GRIDS, Declared, Rule, Tensor, cdiv, lines_of, number, up
from .gemm import product
from .streamk_trace import access

gemm_streamk = Declared(
    name="gemm_streamk",
    summary="C = A B, fp16, Stream-K on a fixed number of workgroups",
    sharing="""\
Workgroup p computes whole tiles p, p + PROGRAMS, ... and then the p-th share of the K steps of the tiles that are left
over. Tiles are numbered in groups of GROUP_M tile rows, column by column: GROUP_M workgroups in a row share a column
panel of B, every GROUP_M-th one a row panel of A. Whole tiles that run at the same time march through K together and
reuse each other's slices while they are in step; shares begin at different K, so workgroups that split a tile touch
different slices. Who begins a tile reads the fp32 partial sums of those who continue it, written just before.""",
    sources=("arXiv 2508.20258, appendix A.2", "arXiv 2301.03598"),
    sizes={
        **{"M": 8192, "N": 8192, "K": 8192, "BLOCK_SIZE_M": 256, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64},
        "GROUP_M": 8,  # tile rows in a group
        "PROGRAMS": 304,  # workgroups launched
    },
    derived={
        "tiles": lambda s: number(s, "M/BLOCK_SIZE_M*N/BLOCK_SIZE_N"),
        "steps": lambda s: cdiv(s.K, s.BLOCK_SIZE_K),  # of a tile
        "all_steps": lambda s: s.tiles * s.steps,
    },
    grid="PROGRAMS",
    others=lambda s: [{"PROGRAMS": n} for (n,) in GRIDS[1] if n <= s.all_steps],  # a step for each
    tensors={
        **{"a": Tensor("M K"), "b": Tensor("K N"), "c": Tensor("M N", role="out")},
        "partial": Tensor("PROGRAMS BLOCK_SIZE_M BLOCK_SIZE_N", "fp32", role="inout", fill=0),
        "lock": Tensor("PROGRAMS", "int32", role="inout", fill=1, is_index=True),
    },
    arguments="M N K",
    constexprs="BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K GROUP_M PROGRAMS",
    access=access,
    reference=product,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
    issued=lambda s: 2.0 * up(s.M, s.BLOCK_SIZE_M) * up(s.N, s.BLOCK_SIZE_N) * up(s.K, s.BLOCK_SIZE_K),
    blocks={"BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K": DOT},
    rules=(
        Rule(
            lambda s: s.all_steps >= s.PROGRAMS,
            "PROGRAMS = {s.PROGRAMS}: {s.tiles} tiles of {s.steps} K steps are not a step for each workgroup; at "
            "most {s.all_steps}",
        ),
    ),
    work=lambda s: (
        2 * s.all_steps / s.PROGRAMS,
        s.all_steps * (s.BLOCK_SIZE_M + lines_of(s.BLOCK_SIZE_K, s.BLOCK_SIZE_N)) / s.PROGRAMS,
    ),
    # The measured tile does not fit 256 threads: the compiler spills 1334 registers a lane, which a trace does not show.
    compiled={((128, 128, 64), 4): (264, 32 * 1024), ((256, 256, 64), 4): (512, 64 * 1024)},
    tile="BLOCK_SIZE_M BLOCK_SIZE_N BLOCK_SIZE_K",
    num_warps=4,  # what the measured runs used; the wrapper of the kernel did not pass on the 8 it was given
    in_flight=4,
    loads_per_step=2,
)
