"""Attention decode: one new token of each sequence against its cached keys, the keys in splits (Flash-Decoding).

This is the first stage; joining the splits is a second, small launch that is not part of it. The default has the head
counts of Llama 3 70B (64 and 8, D = 128), 4 sequences of 32768 tokens, 16 splits.
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

from .base import check_block, check_traceable, lines_of, resources

NAME = "attention_decode"
NUM_WARPS = 4
NUM_STAGES = 2

# ((BLOCK_N, D), waves): (VGPRs, LDS bytes)
COMPILED = {((64, 128), NUM_WARPS): (72, 1024), ((64, 64), NUM_WARPS): (67, 512)}
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup (x, y, z) reads the query of head y of sequence x, then K and V of key head y // (H / HKV) over the z-th of
SPLITS runs of keys, BLOCK_N keys a step, and writes one partial output row and one number. The H / HKV query heads of
one key head read the same keys in the same split: in the launch they are B ids apart. Other key heads, splits and
sequences share no key with them. No key is read twice by one workgroup."""


def attention_decode(
    *, B: int = 4, H: int = 64, HKV: int = 8, S: int = 32768, D: int = 128, SPLITS: int = 16, BLOCK_N: int = 64
) -> Kernel:
    """Decode attention in fp16 over a contiguous key-value cache, first stage.

    Parameters
    ----------
    B, H, HKV, S, D : int
        Q is (B, H, D), K and V (B, HKV, S, D); HKV divides H, D is a power of two, at most 256.
    SPLITS : int
        Runs of keys, each a workgroup's; at most S.
    BLOCK_N : int
        Keys of a step; a power of two from 1 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If HKV does not divide H, there are more splits than keys, a block is no power of two in range, or the problem
        is too large to trace.
    """
    problem = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "SPLITS": SPLITS, "BLOCK_N": BLOCK_N}
    _check(problem)
    return Kernel(
        name=NAME,
        summary="one token's attention over a split of the keys, fp16, grouped queries",
        problem=problem,
        dtype="fp16",
        grid=Grid((B, H, SPLITS)),
        flops=4.0 * B * H * S * D,
        issued_flops=4.0 * B * H * D * BLOCK_N * int(_steps(problem).sum()),
        resources=resources(COMPILED, (BLOCK_N, D), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)", "vLLM Triton decode attention (its grid)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _splits(problem: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """(SPLITS,) first key of each split, and the key behind its last; equal where the split is empty."""
    s, splits = problem["S"], problem["SPLITS"]
    first = np.arange(splits, dtype=np.int64) * -(-s // splits)
    return np.minimum(first, s), np.minimum(first + -(-s // splits), s)


def _steps(problem: Mapping[str, int]) -> np.ndarray:
    """(SPLITS,) trips through the loop over keys."""
    first, end = _splits(problem)
    return -(-(end - first) // problem["BLOCK_N"])


def _check(problem: Mapping[str, int]) -> None:
    check_block(NAME, BLOCK_N=problem["BLOCK_N"], most=1024)
    check_block(NAME, D=problem["D"], most=256)
    if problem["H"] % problem["HKV"]:
        raise SizeError(
            f"{NAME}: H = {problem['H']}, HKV = {problem['HKV']}: every key head serves as many query heads, "
            "so HKV divides H"
        )
    if problem["SPLITS"] > problem["S"]:
        raise SizeError(f"{NAME}: SPLITS = {problem['SPLITS']}, S = {problem['S']}: a split has at least one key")
    heads = problem["B"] * problem["H"]
    check_traceable(
        NAME,
        workgroups=heads * problem["SPLITS"],
        instructions=2.0 * heads * (problem["S"] / problem["BLOCK_N"] + 2 * problem["SPLITS"]),
        touches=lines_of(2.0 * heads * problem["S"], problem["D"]),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, hkv, s, d, splits = (problem[name] for name in ("B", "H", "HKV", "S", "D", "SPLITS"))
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "q_ptr": Array(shape=(b, h, d), dtype="fp16"),
            "k_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "v_ptr": Array(shape=(b, hkv, s, d), dtype="fp16"),
            "part_ptr": Array(shape=(b, h, splits, d), dtype="fp32", role="out"),
            "lse_ptr": Array(shape=(b, h, splits), dtype="fp32", role="out"),
            **{"S": s, "H": h, "HKV": hkv, "SPLITS": splits, "scale": 1 / math.sqrt(d)},
        },
        constexprs={"D": d, "BLOCK_N": problem["BLOCK_N"]},
        grid=(b, h, splits),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: Q once; K and V of the split, block by block; the partial output and its weight."""
    b, h, hkv, s, d, splits = (problem[name] for name in ("B", "H", "HKV", "S", "D", "SPLITS"))
    w = np.arange(b * h * splits, dtype=np.int64)
    batch, head, split = w % b, w // b % h, w // (b * h)
    build = TraceBuilder(n_workgroups=w.size, line_bytes=line_bytes)
    q = build.place("Q", shape=(b * h, d), item_bytes=2)
    k = build.place("K", shape=(b * hkv, s, d), item_bytes=2)
    v = build.place("V", shape=(b * hkv, s, d), item_bytes=2)
    part = build.place("part", shape=(b * h * splits, d), item_bytes=4)
    lse = build.place("lse", shape=(b * h * splits,), item_bytes=4)
    query = batch * h + head
    build.step(build.read_box(q, at=(query, 0), size=(1, d)))
    first, end = (column[split][:, None] for column in _splits(problem))
    start = first + np.arange(0, int(_steps(problem).max()) * problem["BLOCK_N"], problem["BLOCK_N"])[None, :]
    at = ((batch * hkv + head // (h // hkv))[:, None], start, 0)
    size = (1, np.clip(end - start, 0, problem["BLOCK_N"]), d)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    place = query * splits + split
    build.step(
        build.write_box(part, at=(place, 0), size=(1, d)),
        build.write_box(lse, at=(place,), size=(1,)),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 Q, K and V of unit scale."""
    draw = np.random.default_rng(seed)
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    shapes = {"q": (b, h, d), "k": (b, hkv, s, d), "v": (b, hkv, s, d)}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Partial outputs and log-sum-exps in fp32; zeros and minus infinity for a split without keys."""
    share = problem["H"] // problem["HKV"]
    q = inputs["q"].astype(np.float32)[:, :, None, :]
    k, v = (np.repeat(inputs[name].astype(np.float32), share, axis=1) for name in ("k", "v"))
    scores = (q @ np.swapaxes(k, 2, 3))[:, :, 0] / np.float32(math.sqrt(problem["D"]))
    part = np.zeros((problem["B"], problem["H"], problem["SPLITS"], problem["D"]), np.float32)
    lse = np.full(part.shape[:3], -np.inf, np.float32)
    for split, (first, end) in enumerate(zip(*_splits(problem), strict=True)):
        if first < end:
            mine = scores[:, :, first:end]
            weights = np.exp(mine - mine.max(axis=-1, keepdims=True))
            total = weights.sum(axis=-1)
            part[:, :, split] = (weights[:, :, None, :] @ v[:, :, first:end])[:, :, 0] / total[..., None]
            lse[:, :, split] = mine.max(axis=-1) + np.log(total)
    return {"part": part, "lse": lse}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other batches, head counts and splits; keys that the splits share evenly and not."""
    shapes = [(1, 1, 1), (1, 8, 4), (2, 3, 5), (8, 2, 2), (3, 5, 7), (4, 8, 16), (16, 1, 3), (5, 16, 1), (2, 24, 8)]
    for b, heads, splits in shapes:
        for cut in (0, 1):
            s = splits * 2 * problem["BLOCK_N"] - cut
            yield Grid((b, heads, splits)), {**problem, "B": b, "H": heads, "HKV": 1, "S": s, "SPLITS": splits}
