"""Attention over packed sequences of drawn lengths: cumulated lengths, and a grid for the longest that may come.

The host launches blocks for S tokens of every sequence; workgroups beyond a sequence's end read its place and leave.
Lengths are drawn by SEED, evenly between 1 and S. The heads are those of Llama 3 8B.
Sources: FlashAttention-2 (arXiv 2307.08691) for the algorithm and its packed form (cu_seqlens, max_seqlen).
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

from .base import check_dot_block, check_items, check_traceable, lines_of, resources
from .flash_attention import FITTED, ITEM_BYTES, grid_of, softmax_ops
from .flash_attention import reference as dense

NAME = "attention_varlen"
NUM_WARPS = 4
NUM_STAGES = 1
COMPILED = {((128, 64, 128), NUM_WARPS): (256, 32 * 1024)}  # (tile, waves), causal: (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup (m, n) of head n % H of sequence n // H reads where its sequence begins and ends in the packed tokens; if
block m lies beyond the end it leaves. Else it reads BLOCK_M rows of Q, all of K and V of its sequence and of key head
n % H // (H / HKV) (up to the diagonal if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. Workgroups
of the H / HKV query heads of one key head of a sequence, a run of columns of the grid, share K and V. All heads of a
token lie side by side. The work of a workgroup grows with its sequence and, if CAUSAL, with m."""


def attention_varlen(
    *,
    B: int = 16,
    H: int = 32,
    HKV: int = 8,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = True,
    SEED: int = 1,
    BLOCK_M: int = 128,
    BLOCK_N: int = 64,
) -> Kernel:
    """Attention in fp16 over packed sequences, forward.

    Parameters
    ----------
    B, H, HKV : int
        Sequences, query heads, key heads; HKV divides H.
    S : int
        Longest sequence that the grid has blocks for; lengths are drawn between 1 and S.
    D : int
        Head dimension, a power of two from 16 to 256.
    CAUSAL : bool
        Whether a query sees only the keys up to its own.
    SEED : int
        Of the lengths; another seed is another draw of them.
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
    problem = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "CAUSAL": int(CAUSAL), "SEED": SEED}
    problem |= {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    _check(problem)
    lengths = lengths_of(problem).astype(np.float64)
    scores = float(H * key_steps(problem).sum()) * BLOCK_M * BLOCK_N
    return Kernel(
        name=NAME,
        summary="attention over packed sequences, fp16, grouped queries, lengths drawn by SEED",
        problem=problem,
        dtype="fp16",
        grid=Grid(grid_of(problem)),
        flops=4.0 * H * D * float((lengths * (lengths + 1) / 2 if CAUSAL else lengths * lengths).sum()),
        issued_flops=4.0 * D * scores,
        vector_ops=scores * softmax_ops(D, BLOCK_N),
        resources=resources(COMPILED, (BLOCK_M, BLOCK_N, D), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=(
            "FlashAttention-2, arXiv 2307.08691 (algorithm, cumulated lengths)",
            "Llama 3, arXiv 2407.21783 (heads)",
        ),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
        fitted=FITTED,
    )


def lengths_of(problem: Mapping[str, int]) -> np.ndarray:
    """(B,) int64: tokens of each sequence, as drawn."""
    return np.random.default_rng(problem["SEED"]).integers(1, problem["S"] + 1, problem["B"])


def cumulated(problem: Mapping[str, int]) -> np.ndarray:
    """(B + 1,) int32: first token of each sequence, and the number of tokens."""
    return np.concatenate([[0], np.cumsum(lengths_of(problem))]).astype(np.int32)


def key_steps(problem: Mapping[str, int]) -> np.ndarray:
    """(B, query blocks) int64: key blocks that each query block of a sequence reads, 0 beyond the sequence's end."""
    block_m, length = problem["BLOCK_M"], lengths_of(problem)[:, None]
    first = np.arange(grid_of(problem)[0])[None, :] * block_m
    end = np.minimum(length, first + block_m) if problem["CAUSAL"] else length
    return np.where(first < length, -(-end // problem["BLOCK_N"]), 0)


def _check(problem: Mapping[str, int]) -> None:
    check_dot_block(NAME, BLOCK_M=problem["BLOCK_M"], BLOCK_N=problem["BLOCK_N"])
    check_dot_block(NAME, D=problem["D"], most=256)
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    if h % hkv:
        raise SizeError(f"{NAME}: H = {h}, HKV = {hkv}: HKV divides H: every key head serves as many query heads")
    check_items(NAME, "Q or O", b * s * h * d)
    blocks, heads = grid_of(problem)
    steps = heads * blocks * -(-s // problem["BLOCK_N"]) / (2 if problem["CAUSAL"] else 1)
    check_traceable(
        NAME,
        workgroups=blocks * heads,
        instructions=2.0 * steps + 4.0 * blocks * heads,
        touches=lines_of(2.0 * steps * problem["BLOCK_N"] + 2.0 * heads * s, d),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, hkv, d = (problem[name] for name in ("B", "H", "HKV", "D"))
    tokens = int(lengths_of(problem).sum())
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "q_ptr": Array(shape=(tokens, h, d), dtype="fp16"),
            "k_ptr": Array(shape=(tokens, hkv, d), dtype="fp16"),
            "v_ptr": Array(shape=(tokens, hkv, d), dtype="fp16"),
            "o_ptr": Array(shape=(tokens, h, d), dtype="fp16", role="out"),
            "cu_seqlens_ptr": Array(shape=(b + 1,), dtype="int32", is_index=True),
            **{"H": h, "HKV": hkv, "scale": 1 / math.sqrt(d)},
        },
        constexprs={"D": d, "CAUSAL": bool(problem["CAUSAL"])}
        | {name: problem[name] for name in ("BLOCK_M", "BLOCK_N")},
        grid=grid_of(problem),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: begin and end of the sequence; of a block inside it Q, K and V block by block, O."""
    h, hkv, d, block_m, block_n = (problem[name] for name in ("H", "HKV", "D", "BLOCK_M", "BLOCK_N"))
    blocks, columns = grid_of(problem)
    column, block = np.divmod(np.arange(blocks * columns, dtype=np.int64), blocks)
    batch, head = np.divmod(column, h)
    starts = cumulated(problem).astype(np.int64)
    first, end, steps = starts[batch], starts[batch + 1], key_steps(problem)[batch, block]
    build = TraceBuilder(n_workgroups=block.size, line_bytes=line_bytes)
    tokens = int(starts[-1])
    q = build.place("Q", shape=(tokens, h, d), item_bytes=ITEM_BYTES)
    k, v = (build.place(name, shape=(tokens, hkv, d), item_bytes=ITEM_BYTES) for name in "KV")
    o = build.place("O", shape=(tokens, h, d), item_bytes=ITEM_BYTES)
    place = build.place("cu_seqlens", shape=starts.shape, item_bytes=4)
    build.step(build.read_box(place, at=(batch,), size=(1,)))
    build.step(build.read_box(place, at=(batch + 1,), size=(1,)))
    row = first + block * block_m
    own = {"at": (row, head, 0), "size": (np.clip(end - row, 0, block_m), 1, d)}
    build.step(build.read_box(q, **own))
    trip = np.arange(int(steps.max()))[None, :]
    key = first[:, None] + trip * block_n
    high = np.where(trip < steps[:, None], np.clip(end[:, None] - key, 0, block_n), 0)
    at, size = (key, (head // (h // hkv))[:, None], 0), (high, 1, d)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(o, **own))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 Q, K and V of unit scale, and the cumulated lengths, which SEED draws and ``seed`` leaves alone."""
    draw = np.random.default_rng(seed)
    tokens, heads = int(lengths_of(problem).sum()), {"q": problem["H"], "k": problem["HKV"], "v": problem["HKV"]}
    values = {
        name: draw.standard_normal((tokens, n, problem["D"]), np.float32).astype(np.float16)
        for name, n in heads.items()
    }
    return values | {"cu_seqlens": cumulated(problem)}


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """O in fp16: dense attention of each sequence alone, softmax and sums in fp32."""
    ends, out = inputs["cu_seqlens"], []
    for first, end in itertools.pairwise(ends.tolist()):
        alone = {name: np.swapaxes(inputs[name][first:end], 0, 1)[None] for name in "qkv"}
        out.append(np.swapaxes(dense(alone, {**problem, "S": end - first})["o"][0], 0, 1))
    return {"o": np.concatenate(out)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other grids: few blocks and many heads and the other way round, several sequences and one."""
    shapes = [(1, 1, 1), (1, 2, 4), (5, 3, 1), (2, 1, 2), (3, 8, 1), (8, 2, 8), (7, 5, 1), (11, 1, 13), (37, 1, 1)]
    for (blocks, b, h), cut in itertools.product(shapes, (0, 1)):
        sizes = {**problem, "B": b, "H": h, "HKV": 1, "S": blocks * problem["BLOCK_M"] - cut}
        yield Grid((blocks, b * h)), sizes
