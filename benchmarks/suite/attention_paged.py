"""Paged decode attention: keys in pages that a table finds, sequences of drawn lengths, grouped queries, split keys.

Lengths are drawn evenly between half of S and S, and pages lie in a random order, both by SEED.
Sources: vLLM's paged key cache (pages of 16 keys, all heads of a key together); Flash-Decoding (Dao, Haziza, Massa,
Sizov 2023) for the splits. The heads are those of Llama 3 8B.
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

from .base import check_block, check_items, check_traceable, lines_of, resources

NAME = "attention_paged"
NUM_WARPS = 4
NUM_STAGES = 2
COMPILED = {((16, 128), NUM_WARPS): (64, 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup (batch, head, split) reads its sequence's length, one query vector, and the keys and values of one key head
in the pages of its split, wherever the table says they lie; it writes a partial output. The H / HKV query heads of a
key head read the same rows, and nothing else does. All key heads of a key lie side by side, so workgroups of
different key heads read neighbouring rows of the same pages. Workgroups of short sequences have fewer pages."""


def attention_paged(
    *,
    B: int = 32,
    H: int = 32,
    HKV: int = 8,
    S: int = 4096,
    D: int = 128,
    PAGE: int = 16,
    SPLITS: int = 8,
    SEED: int = 1,
) -> Kernel:
    """First stage of paged decode attention in fp16.

    Parameters
    ----------
    B, H, HKV : int
        Sequences, query heads, key heads; HKV divides H.
    S : int
        Longest sequence that the table has room for.
    D : int
        Head dimension, a power of two.
    PAGE : int
        Keys of a page, a power of two.
    SPLITS : int
        Parts of a sequence's pages, each a workgroup.
    SEED : int
        Of lengths and table; another seed is another draw of them.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If HKV does not divide H, a block is no power of two in range, or the problem is too large to trace.
    """
    problem = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "PAGE": PAGE, "SPLITS": SPLITS, "SEED": SEED}
    _check(problem)
    keys = int(tables(problem)["length"].sum())
    return Kernel(
        name=NAME,
        summary="one token's attention over a split of paged keys, fp16, lengths and pages drawn by SEED",
        problem=problem,
        dtype="fp16",
        grid=Grid((B, H, SPLITS)),
        flops=4.0 * H * D * keys,
        issued_flops=4.0 * H * D * PAGE * int(_pages(problem).sum()),
        resources=resources(COMPILED, (PAGE, D), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("vLLM's paged key cache", "Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _most_pages(problem: Mapping[str, int]) -> int:
    """Pages of the longest sequence."""
    return -(-problem["S"] // problem["PAGE"])


def tables(problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Lengths (B,) and pages (B, most pages), int32, as SEED draws them."""
    draw, most = np.random.default_rng(problem["SEED"]), _most_pages(problem)
    length = draw.integers(-(-problem["S"] // 2), problem["S"] + 1, problem["B"])
    table = draw.permutation(problem["B"] * most).reshape(problem["B"], most)
    return {"length": length.astype(np.int32), "table": table.astype(np.int32)}


def _pages(problem: Mapping[str, int]) -> np.ndarray:
    """(B,) int64: pages of each sequence."""
    return -(-tables(problem)["length"].astype(np.int64) // problem["PAGE"])


def _check(problem: Mapping[str, int]) -> None:
    check_block(NAME, PAGE=problem["PAGE"], most=1024)
    check_block(NAME, D=problem["D"], most=256)
    b, h, hkv, s, d = (problem[name] for name in ("B", "H", "HKV", "S", "D"))
    if h % hkv:
        raise SizeError(f"{NAME}: H = {h}, HKV = {hkv}: HKV divides H: every key head serves as many query heads")
    check_items(NAME, "the partial output", b * h * problem["SPLITS"] * d)
    check_traceable(
        NAME,
        workgroups=b * h * problem["SPLITS"],
        instructions=b * h * (3.0 * _most_pages(problem) + 4 * problem["SPLITS"]),
        touches=lines_of(2.0 * b * h * s, d),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    b, h, hkv, d, page, splits = (problem[name] for name in ("B", "H", "HKV", "D", "PAGE", "SPLITS"))
    most = _most_pages(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "q_ptr": Array(shape=(b, h, d), dtype="fp16"),
            "k_ptr": Array(shape=(b * most, page, hkv, d), dtype="fp16"),
            "v_ptr": Array(shape=(b * most, page, hkv, d), dtype="fp16"),
            "part_ptr": Array(shape=(b, h, splits, d), dtype="fp32", role="out"),
            "lse_ptr": Array(shape=(b, h, splits), dtype="fp32", role="out"),
            "length_ptr": Array(shape=(b,), dtype="int32", is_index=True),
            "table_ptr": Array(shape=(b, most), dtype="int32", is_index=True),
            **{"MOST_PAGES": most, "H": h, "HKV": hkv, "SPLITS": splits, "scale": 1 / math.sqrt(d)},
        },
        constexprs={"D": d, "PAGE": page},
        grid=(b, h, splits),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: length, Q; of each page of the split its place in the table, K, V; partial output and weight."""
    b, h, hkv, d, page, splits = (problem[name] for name in ("B", "H", "HKV", "D", "PAGE", "SPLITS"))
    w, most = np.arange(b * h * splits, dtype=np.int64), _most_pages(problem)
    batch, head, split = w % b, w // b % h, w // (b * h)
    found, pages = tables(problem), _pages(problem)[batch]
    build = TraceBuilder(n_workgroups=w.size, line_bytes=line_bytes)
    q = build.place("Q", shape=(b * h, d), item_bytes=2)
    k, v = (build.place(name, shape=(b * most * page, hkv, d), item_bytes=2) for name in "KV")
    part = build.place("part", shape=(b * h * splits, d), item_bytes=4)
    lse = build.place("lse", shape=(b * h * splits,), item_bytes=4)
    length = build.place("length", shape=(b,), item_bytes=4)
    table = build.place("table", shape=(b, most), item_bytes=4)
    query, share = batch * h + head, -(-pages // splits)
    build.step(build.read_box(length, at=(batch,), size=(1,)))
    build.step(build.read_box(q, at=(query, 0), size=(1, d)))
    mine = (split * share)[:, None] + np.arange(int(share.max()))[None, :]
    real = mine < np.minimum(pages, (split + 1) * share)[:, None]
    mine = np.minimum(mine, most - 1)
    left = found["length"].astype(np.int64)[batch][:, None] - mine * page
    at = (found["table"].astype(np.int64)[batch[:, None], mine] * page, (head // (h // hkv))[:, None], 0)
    size = (np.where(real, np.clip(left, 0, page), 0), 1, d)
    build.step(
        build.read_box(table, at=(batch[:, None], mine), size=(1, real.astype(np.int64))),
        build.read_box(k, at=at, size=size),
        build.read_box(v, at=at, size=size),
    )
    place = query * splits + split
    build.step(
        build.write_box(part, at=(place, 0), size=(1, d)),
        build.write_box(lse, at=(place,), size=(1,)),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 Q, K and V of unit scale, and the tables, which SEED draws and ``seed`` does not change."""
    draw = np.random.default_rng(seed)
    b, h, hkv, d, page = (problem[name] for name in ("B", "H", "HKV", "D", "PAGE"))
    cache = (b * _most_pages(problem), page, hkv, d)
    shapes = {"q": (b, h, d), "k": cache, "v": cache}
    values = {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}
    return values | tables(problem)


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Partial outputs and log-sum-exps in fp32; zeros and minus infinity for a split without pages."""
    b, h, hkv, d, page, splits = (problem[name] for name in ("B", "H", "HKV", "D", "PAGE", "SPLITS"))
    part, lse = np.zeros((b, h, splits, d), np.float32), np.full((b, h, splits), -np.inf, np.float32)
    for batch, length in enumerate(inputs["length"].tolist()):
        k, v = (inputs[name].astype(np.float32)[inputs["table"][batch]].reshape(-1, hkv, d)[:length] for name in "kv")
        pages = -(-length // page)
        share = -(-pages // splits) * page
        for head, split in np.ndindex(h, splits):
            own = slice(split * share, min(length, (split + 1) * share)), head // (h // hkv)
            if own[0].start < length:
                scores = k[own] @ inputs["q"][batch, head].astype(np.float32) / np.float32(math.sqrt(d))
                weights = np.exp(scores - scores.max())
                part[batch, head, split] = weights @ v[own] / weights.sum()
                lse[batch, head, split] = scores.max() + np.log(weights.sum())
    return {"part": part, "lse": lse}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other batches, head counts and splits; longest sequences that fill their pages and do not."""
    shapes = [(1, 1, 1), (1, 8, 4), (2, 3, 5), (8, 2, 2), (3, 5, 7), (4, 8, 16), (16, 1, 3), (5, 16, 1), (2, 24, 8)]
    for b, heads, splits in shapes:
        for cut in (0, 1):
            s = splits * 2 * problem["PAGE"] - cut
            yield Grid((b, heads, splits)), {**problem, "B": b, "H": heads, "HKV": 1, "S": s, "SPLITS": splits}
