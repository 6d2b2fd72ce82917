"""Attention, forward: `attention` with keys of its own for each query head, `attention_gqa` with query heads in groups.

The default of `attention` is the head count at which arXiv 2511.02132 saw most on MI300X (H = 128, D = 128), at 4096
tokens instead of its 2K to 128K, so that a replay takes about a second: K and V of a head are 2 MiB, of the 16 heads
that block-first runs at once on an XCD 32 MiB, eight times its L2. `attention_gqa` has the head counts of Llama 3 70B
(64 and 8, D = 128) at 4096 tokens: H query heads share HKV key and value heads in runs of H / HKV.

Sources: FlashAttention-2 (arXiv 2307.08691) for the algorithm and its grid of query blocks and heads, query blocks
fastest; arXiv 2511.02132 for the sizes worth looking at on MI300X (D = 128, 8 to 128 heads, 2K to 128K tokens).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_dot_block, check_traceable, lines_of, resources

ITEM_BYTES = 2  # fp16
NUM_WARPS = 4
SOFTMAX_OPS = 10.6  # lane instructions a score,
ROW_OPS, SUM_OPS = 96.0, 1.8  # and of a step of keys those of a query, and of each of its sums that are rescaled
FITTED = dict.fromkeys(("SOFTMAX_OPS", "ROW_OPS", "SUM_OPS"), ("data/machine/h200_attention_shapes.csv",))
NUM_STAGES = 1  # as AMD's attention kernels: loads of a step are issued ahead by the compiler within the step

# By CAUSAL: ((BLOCK_M, BLOCK_N, D), waves): (VGPRs, LDS bytes)
COMPILED = {
    0: {
        ((128, 64, 128), NUM_WARPS): (218, 32 * 1024),
        ((128, 64, 64), NUM_WARPS): (146, 16 * 1024),
        ((128, 128, 128), NUM_WARPS): (365, 32 * 1024),
        ((256, 64, 128), NUM_WARPS): (424, 64 * 1024),
    },
    1: {
        ((128, 64, 128), NUM_WARPS): (276, 32 * 1024),
        ((128, 64, 64), NUM_WARPS): (225, 16 * 1024),
    },
}
TRITON = Path(__file__).with_name("attention_triton.py")

SOURCES = (
    "FlashAttention-2, arXiv 2307.08691 (algorithm, grid)",
    "arXiv 2511.02132 (sizes; orders of heads and blocks on MI300X)",
)


def make(name: str, summary: str, sharing: str, problem: dict[str, int]) -> Kernel:
    """Build the kernel called ``name`` at sizes that hold B, H, S, D, CAUSAL, BLOCK_M, BLOCK_N, and HKV if it is not H.

    Raises
    ------
    SizeError
        If the sizes make no sense for it.
    """
    sizes = {"HKV": problem["H"], **problem}
    _check(name, sizes)
    blocks, heads = grid_of(sizes)
    pairs = heads * float(key_blocks(sizes).sum())
    s = sizes["S"]
    return Kernel(
        name=name,
        summary=summary,
        problem=problem,
        dtype="fp16",
        grid=Grid((blocks, heads)),
        flops=4.0 * heads * sizes["D"] * (s * (s + 1) / 2 if sizes["CAUSAL"] else s * s),
        issued_flops=4.0 * pairs * sizes["BLOCK_M"] * sizes["BLOCK_N"] * sizes["D"],
        vector_ops=pairs * sizes["BLOCK_M"] * sizes["BLOCK_N"] * softmax_ops(sizes["D"], sizes["BLOCK_N"]),
        resources=resources(
            COMPILED[sizes["CAUSAL"]],
            (sizes["BLOCK_M"], sizes["BLOCK_N"], sizes["D"]),
            num_warps=NUM_WARPS,
            in_flight=2 * NUM_STAGES,
        ),
        build_trace=lambda line_bytes: trace(sizes, line_bytes),
        reference=lambda inputs: reference(inputs, sizes),
        make_inputs=lambda seed: make_inputs(sizes, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=sharing,
        sources=SOURCES,
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(sizes),
        fitted=FITTED,
    )


def softmax_ops(d: int, keys: int) -> float:
    """Lane instructions a score between the two products: an exponential, and at every step of keys what a query costs.

    Source: an H200 executes 15.7, 20.8, 13.9 and 17.3 a score for D = 128 with 64 and 32 keys a step and D = 64 with 64
    and 32 (Nsight Compute, decision 0022): the three constants; taken to be as many elsewhere.
    """
    return SOFTMAX_OPS + (ROW_OPS + SUM_OPS * d) / keys


def grid_of(problem: Mapping[str, int]) -> tuple[int, int]:
    """Query blocks (x, fastest) and heads of all batches (y)."""
    return -(-problem["S"] // problem["BLOCK_M"]), problem["B"] * problem["H"]


def key_blocks(problem: Mapping[str, int]) -> np.ndarray:
    """(n_query_blocks,) key blocks that each query block reads."""
    s, block_m = problem["S"], problem["BLOCK_M"]
    ends = np.full(-(-s // block_m), s)
    if problem["CAUSAL"]:
        ends = np.minimum((np.arange(ends.size) + 1) * block_m, s)
    return -(-ends // problem["BLOCK_N"])


def _check(name: str, problem: Mapping[str, int]) -> None:
    check_dot_block(name, BLOCK_M=problem["BLOCK_M"], BLOCK_N=problem["BLOCK_N"])
    check_dot_block(name, D=problem["D"], most=256)
    if problem["H"] % problem["HKV"]:
        raise SizeError(
            f"{name}: H = {problem['H']}, HKV = {problem['HKV']}: every key head serves as many query heads, "
            "so HKV divides H"
        )
    blocks, heads = grid_of(problem)
    steps = heads * blocks * -(-problem["S"] // problem["BLOCK_N"]) / (2 if problem["CAUSAL"] else 1)
    check_traceable(
        name,
        workgroups=blocks * heads,
        instructions=2.0 * steps + 2.0 * blocks * heads,
        touches=lines_of(2.0 * steps * problem["BLOCK_N"] + 2.0 * heads * problem["S"], problem["D"]),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    return Launch(
        path=TRITON,
        function="attention",
        arguments={
            "q_ptr": Array(shape=(b, h, s, d), dtype="fp16"),
            "k_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "v_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "o_ptr": Array(shape=(b, h, s, d), dtype="fp16", role="out"),
            **{"S": s, "H": h, "HKV": hkv, "scale": 1 / math.sqrt(d)},
        },
        constexprs={"D": d, "CAUSAL": bool(problem["CAUSAL"])}
        | {name: problem[name] for name in ("BLOCK_M", "BLOCK_N")},
        grid=grid_of(problem),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: Q once; K and V block by block, up to the diagonal if causal; O once."""
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    block_m, block_n = problem["BLOCK_M"], problem["BLOCK_N"]
    blocks, heads = grid_of(problem)
    head, block = np.divmod(np.arange(blocks * heads, dtype=np.int64), blocks)
    kv_head = head // h * hkv + head % h // (h // hkv)
    build = TraceBuilder(n_workgroups=head.size, line_bytes=line_bytes)
    q = build.place("Q", shape=(b * h, s, d), item_bytes=ITEM_BYTES)
    k = build.place("K", shape=(b * hkv, s, d), item_bytes=ITEM_BYTES)
    v = build.place("V", shape=(b * hkv, s, d), item_bytes=ITEM_BYTES)
    o = build.place("O", shape=(b * h, s, d), item_bytes=ITEM_BYTES)
    build.step(build.read_box(q, at=(head, block * block_m, 0), size=(1, block_m, d)))
    steps = key_blocks(problem)[block]
    start = np.arange(0, int(steps.max()) * block_n, block_n)[None, :]
    high = np.where(start < steps[:, None] * block_n, block_n, 0)
    at, size = (kv_head[:, None], start, 0), (1, high, d)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(o, at=(head, block * block_m, 0), size=(1, block_m, d)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 Q, K and V of unit scale."""
    draw = np.random.default_rng(seed)
    heads = {"q": problem["H"], "k": problem["HKV"], "v": problem["HKV"]}
    return {
        name: draw.standard_normal((problem["B"], n, problem["S"], problem["D"]), np.float32).astype(np.float16)
        for name, n in heads.items()
    }


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """O in fp16, softmax and sums in fp32."""
    share = problem["H"] // problem["HKV"]
    q = inputs["q"].astype(np.float32)
    k, v = (np.repeat(inputs[name].astype(np.float32), share, axis=1) for name in ("k", "v"))
    scores = q @ np.swapaxes(k, 2, 3) / np.float32(math.sqrt(problem["D"]))
    if problem["CAUSAL"]:
        scores = np.where(np.tri(problem["S"], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"o": (weights @ v / weights.sum(axis=-1, keepdims=True)).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other grids: few blocks and many heads and the other way round, heads that XCDs share evenly and not."""
    shapes = [(1, 1), (1, 8), (5, 3), (2, 2), (4, 4), (3, 8), (8, 16), (7, 5), (16, 24), (11, 13), (32, 2), (37, 1)]
    for (blocks, heads), cut in itertools.product(shapes, (0, 1)):
        sizes = {**problem, "B": 1, "H": heads, "S": blocks * problem["BLOCK_M"] - cut}
        if "HKV" in problem:  # as many queries for each key head as in the problem where heads allow it
            sizes["HKV"] = heads // math.gcd(heads, problem["H"] // problem["HKV"])
        yield Grid((blocks, heads)), sizes


ATTENTION_SHARING = """\
Workgroup (m, n) reads BLOCK_M rows of Q of head n, all of K and V of head n (up to the diagonal if CAUSAL), BLOCK_N
rows of each a step, and writes BLOCK_M rows of O. The workgroups of one head, a column of the grid, share K and V; two
heads share nothing, and Q and O are touched once. Workgroups of a head that run at the same time behind one L2 march
through K and V together; heads that run beside them behind it compete for its room."""


def attention(
    *,
    B: int = 1,
    H: int = 128,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = False,
    BLOCK_M: int = 128,
    BLOCK_N: int = 64,
) -> Kernel:
    """Multi-head attention in fp16, forward.

    Parameters
    ----------
    B, H, S, D : int
        Q, K, V and O are (B, H, S, D); D is a power of two from 16 to 256.
    CAUSAL : bool
        Whether a query sees only the keys up to its own.
    BLOCK_M, BLOCK_N : int
        Queries of a workgroup and keys of a step; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block or D is no power of two in range, or the problem is too large to trace.
    """
    problem = {"B": B, "H": H, "S": S, "D": D, "CAUSAL": int(CAUSAL), "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    return make("attention", "softmax(Q K^T) V, fp16, one query block of a head", ATTENTION_SHARING, problem)


GQA_SHARING = """\
Workgroup (m, n) reads BLOCK_M rows of Q of query head n, all of K and V of key head n // (H / HKV) (up to the diagonal
if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. The workgroups of the H / HKV query heads of one
key head, a run of columns of the grid, share K and V; nothing else is shared. In a batch of several, columns go on with
the next sequence's heads."""


def attention_gqa(
    *,
    B: int = 1,
    H: int = 64,
    HKV: int = 8,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = False,
    BLOCK_M: int = 128,
    BLOCK_N: int = 64,
) -> Kernel:
    """Grouped-query attention in fp16, forward.

    Parameters
    ----------
    B, H, HKV, S, D : int
        Q and O are (B, H, S, D), K and V (B, HKV, S, D); HKV divides H, D is a power of two from 16 to 256.
    CAUSAL : bool
        Whether a query sees only the keys up to its own.
    BLOCK_M, BLOCK_N : int
        Queries of a workgroup and keys of a step; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If HKV does not divide H, a block or D is no power of two in range, or the problem is too large to trace.
    """
    sizes = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "CAUSAL": int(CAUSAL), "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    return make("attention_gqa", "attention, fp16, query heads share keys in groups", GQA_SHARING, sizes)
