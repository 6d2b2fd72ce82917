"""MLA decode: one new token against a cache of latents that all query heads share, heads in blocks, keys in splits.

A cached token is one row, a latent that is key and value at once and a rotated key beside it: 512 + 64 numbers in
DeepSeek-V2 and V3, for all of their 128 heads. This is the first stage; joining the splits is a launch of its own.
The default has 4 sequences of 32768 tokens in 16 splits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .attention_decode import _splits, _steps
from .base import check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "mla_decode"
NUM_WARPS = 4
NUM_STAGES = 1
COMPILED = {((16, 32, 512), NUM_WARPS): (296, 32 * 1024)}  # ((BLOCK_H, BLOCK_N, LATENT), waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
NOPE = 128  # of a head's key before its projection is absorbed: the scale of the scores

SHARING = """\
Workgroup (x, y, z) reads the queries of the y-th block of BLOCK_H heads of sequence x, then over the z-th of SPLITS
runs of keys the latent and the rotated key of each token, BLOCK_N tokens a step, which are keys and values of all
heads; it writes a partial output row and one number for each head. The H / BLOCK_H workgroups of one sequence and split
read the same tokens: in the launch they are B ids apart. Other sequences and splits share no token with them."""


def mla_decode(
    *,
    B: int = 4,
    H: int = 128,
    S: int = 32768,
    LATENT: int = 512,
    ROPE: int = 64,
    SPLITS: int = 16,
    BLOCK_H: int = 16,
    BLOCK_N: int = 32,
) -> Kernel:
    """First stage of multi-head latent attention's decode in fp16, projections absorbed.

    Parameters
    ----------
    B, H, S : int
        Sequences, query heads, cached tokens of each.
    LATENT, ROPE : int
        A cached token is LATENT + ROPE numbers, and so is a query; powers of two from 16 to 512.
    SPLITS : int
        Runs of tokens, each a workgroup's; at most S.
    BLOCK_H, BLOCK_N : int
        Heads of a workgroup and tokens of a step; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, there are more splits than tokens, or the problem is too large to
        trace.
    """
    problem = {"B": B, "H": H, "S": S, "LATENT": LATENT, "ROPE": ROPE, "SPLITS": SPLITS}
    problem |= {"BLOCK_H": BLOCK_H, "BLOCK_N": BLOCK_N}
    _check(problem)
    grid = _launched(problem)
    pairs = float(B * grid[1] * BLOCK_H * BLOCK_N * int(_steps(problem).sum()))
    return Kernel(
        name=NAME,
        summary="one token's attention over a split of latent keys that all heads share, fp16",
        problem=problem,
        dtype="fp16",
        grid=Grid(grid),
        flops=2.0 * B * H * S * (2 * LATENT + ROPE),
        issued_flops=2.0 * pairs * (2 * LATENT + ROPE),
        resources=resources(COMPILED, (BLOCK_H, BLOCK_N, LATENT), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("DeepSeek-V2, arXiv 2405.04434 (latents, sizes)", "sglang and vLLM, Triton decode (grid)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _launched(problem: Mapping[str, int]) -> tuple[int, int, int]:
    """Sequences, blocks of heads, splits."""
    return problem["B"], -(-problem["H"] // problem["BLOCK_H"]), problem["SPLITS"]


def _check(problem: Mapping[str, int]) -> None:
    check_dot_block(NAME, BLOCK_H=problem["BLOCK_H"], BLOCK_N=problem["BLOCK_N"])
    check_dot_block(NAME, most=512, LATENT=problem["LATENT"], ROPE=problem["ROPE"])
    b, blocks, splits = _launched(problem)
    s, wide = problem["S"], problem["LATENT"] + problem["ROPE"]
    if splits > s:
        raise SizeError(f"{NAME}: SPLITS = {splits}, S = {s}: a split has at least one token")
    check_items(NAME, "the partial output", b * problem["H"] * splits * problem["LATENT"])
    check_items(NAME, "the cache of a sequence", s * wide)
    check_traceable(
        NAME,
        workgroups=b * blocks * splits,
        instructions=2.0 * b * blocks * (s / problem["BLOCK_N"] + 3 * splits),
        touches=lines_of(1.0 * b * blocks * s, wide),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, s, latent, rope, splits = (problem[name] for name in ("B", "H", "S", "LATENT", "ROPE", "SPLITS"))
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "q_ptr": Array(shape=(b, h, latent + rope), dtype="fp16"),
            "kv_ptr": Array(shape=(b, s, latent + rope), dtype="fp16"),
            "part_ptr": Array(shape=(b, h, splits, latent), dtype="fp32", role="out"),
            "lse_ptr": Array(shape=(b, h, splits), dtype="fp32", role="out"),
            **{"S": s, "H": h, "SPLITS": splits, "scale": 1 / math.sqrt(NOPE + rope)},
        },
        constexprs={name: problem[name] for name in ("LATENT", "ROPE", "BLOCK_H", "BLOCK_N")},
        grid=_launched(problem),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: both parts of the queries, then of each step of tokens; the partial outputs and their weights."""
    b, blocks, splits = _launched(problem)
    h, s, latent, rope = (problem[name] for name in ("H", "S", "LATENT", "ROPE"))
    w = np.arange(b * blocks * splits, dtype=np.int64)
    batch, head, split = w % b, w // b % blocks * problem["BLOCK_H"], w // (b * blocks)
    build = TraceBuilder(n_workgroups=w.size, line_bytes=line_bytes)
    q = build.place("Q", shape=(b, h, latent + rope), item_bytes=2)
    kv = build.place("KV", shape=(b, s, latent + rope), item_bytes=2)
    part = build.place("part", shape=(b, h, splits, latent), item_bytes=4)
    lse = build.place("lse", shape=(b, h, splits), item_bytes=4)
    parts = (0, latent), (latent, rope)
    for col, width in parts:
        build.step(build.read_box(q, at=(batch, head, col), size=(1, problem["BLOCK_H"], width)))
    first, end = (column[split][:, None] for column in _splits(problem))
    start = first + np.arange(0, int(_steps(problem).max()) * problem["BLOCK_N"], problem["BLOCK_N"])[None, :]
    high = np.clip(end - start, 0, problem["BLOCK_N"])
    build.step(
        *(build.read_box(kv, at=(batch[:, None], start, col), size=(1, high, width)) for col, width in parts),
    )
    build.step(
        build.write_box(part, at=(batch, head, split, 0), size=(1, problem["BLOCK_H"], 1, latent)),
        build.write_box(lse, at=(batch, head, split), size=(1, problem["BLOCK_H"], 1)),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 queries and cache of unit scale."""
    draw = np.random.default_rng(seed)
    wide = problem["LATENT"] + problem["ROPE"]
    shapes = {"q": (problem["B"], problem["H"], wide), "kv": (problem["B"], problem["S"], wide)}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Partial outputs and log-sum-exps in fp32; zeros and minus infinity for a split without tokens."""
    q, kv = (inputs[name].astype(np.float32) for name in ("q", "kv"))
    scores = q @ np.swapaxes(kv, 1, 2) / np.float32(math.sqrt(NOPE + problem["ROPE"]))
    part = np.zeros((problem["B"], problem["H"], problem["SPLITS"], problem["LATENT"]), np.float32)
    lse = np.full(part.shape[:3], -np.inf, np.float32)
    for split, (first, end) in enumerate(zip(*_splits(problem), strict=True)):
        if first < end:
            mine = scores[:, :, first:end]
            weights = np.exp(mine - mine.max(axis=-1, keepdims=True))
            total = weights.sum(axis=-1)
            part[:, :, split] = weights @ kv[:, first:end, : problem["LATENT"]] / total[..., None]
            lse[:, :, split] = mine.max(axis=-1) + np.log(total)
    return {"part": part, "lse": lse}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other batches, blocks of heads and splits, each once exact and once ragged."""
    shapes = [(1, 1, 1), (1, 8, 4), (2, 3, 5), (8, 2, 2), (3, 5, 7), (4, 8, 16), (16, 1, 3), (5, 16, 1), (2, 24, 8)]
    for b, blocks, splits in shapes:
        for cut in (0, 1):
            h, s = blocks * problem["BLOCK_H"] - cut, splits * 2 * problem["BLOCK_N"] - cut
            yield Grid((b, blocks, splits)), {**problem, "B": b, "H": h, "S": s, "SPLITS": splits}
