"""Attention decode: one new token of each sequence against its cached keys, the keys in splits (Flash-Decoding).

This is the first stage; joining the splits is a second, small launch that is not part of it. The default has the head
counts of Llama 3 70B (64 and 8, D = 128), 4 sequences of 32768 tokens, 16 splits.
"""

import itertools
import math

import numpy as np

from .declared import GRIDS, Declared, Sizes, Tensor, cdiv, lines_of
from .flash_attention import HEADS


def splits(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """(SPLITS,) first key of each split, and the key behind its last; equal where the split is empty."""
    first = np.arange(s.SPLITS) * cdiv(s.S, s.SPLITS)
    return np.minimum(first, s.S), np.minimum(first + cdiv(s.S, s.SPLITS), s.S)


def steps_of(s: Sizes, split: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First key of each step of a workgroup's split, and how many keys: (n_workgroups, steps), 0 behind its end."""
    first, end = (place[split][:, None] for place in s.splits)
    start = first + np.arange(int(s.steps.max()))[None, :] * s.BLOCK_N
    return start, np.clip(end - start, 0, s.BLOCK_N)


def access(s, build, pid, q, k, v, part, lse) -> None:
    """Q once; K and V of the split, block by block; the partial output and its weight."""
    batch, head, split = pid
    build.step(build.read_box(q, at=(batch, head, 0), size=(1, 1, s.D)))
    start, keys = steps_of(s, split)
    at, size = (batch[:, None], (head // (s.H // s.HKV))[:, None], start, 0), (1, 1, keys, s.D)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(part, at=(*pid, 0), size=(1, 1, 1, s.D)), build.write_box(lse, at=pid, size=(1, 1, 1)))


def of_splits(s: Sizes, scores: np.ndarray, weighted) -> tuple[np.ndarray, np.ndarray]:
    """Partial outputs and log-sum-exps of scores (B, H, S); zeros and minus infinity for a split without keys.

    ``weighted(weights, keys)`` sums the values of a slice of keys.
    """
    part, lse = [], []
    for first, end in zip(*s.splits, strict=True):
        mine = scores[:, :, first:end]
        most = mine.max(axis=-1, initial=-np.inf)
        weights = np.exp(mine - most[..., None])
        total = np.maximum(weights.sum(axis=-1), 1)  # the largest weight is 1: less is of no keys
        part.append(weighted(weights, slice(first, end)) / total[..., None])
        lse.append(most + np.log(total))
    return np.stack(part, axis=2), np.stack(lse, axis=2)


def reference(s, q, k, v) -> tuple[np.ndarray, np.ndarray]:
    """`of_splits` in fp32."""
    q, k, v = (values.astype(np.float32) for values in (q[:, :, None, :], k, v))
    k, v = (np.repeat(values, s.H // s.HKV, axis=1) for values in (k, v))
    scores = (q @ np.swapaxes(k, 2, 3))[:, :, 0] / np.float32(math.sqrt(s.D))
    return of_splits(s, scores, lambda weights, keys: (weights[:, :, None, :] @ v[:, :, keys])[:, :, 0])


def others(s, block: str = "BLOCK_N"):
    """Other batches, head counts and splits; keys that the splits share evenly and not."""
    for (b, heads, splits), cut in itertools.product(GRIDS[3], (0, 1)):
        yield {"B": b, "H": heads, "HKV": 1, "S": splits * 2 * getattr(s, block) - cut, "SPLITS": splits}


attention_decode = Declared(
    name="attention_decode",
    summary="one token's attention over a split of the keys, fp16, grouped queries",
    sharing="""\
Workgroup (x, y, z) reads the query of head y of sequence x, then K and V of key head y // (H / HKV) over the z-th of
SPLITS runs of keys, BLOCK_N keys a step, and writes one partial output row and one number. The H / HKV query heads of
one key head read the same keys in the same split: in the launch they are B ids apart. Other key heads, splits and
sequences share no key with them. No key is read twice by one workgroup.""",
    sources=("Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)", "vLLM Triton decode attention (its grid)"),
    sizes={"B": 4, "H": 64, "HKV": 8, "S": 32768, "D": 128, "SPLITS": 16, "BLOCK_N": 64},
    derived={
        "scale": lambda s: 1 / math.sqrt(s.D),
        "splits": splits,
        "steps": lambda s: cdiv(s.splits[1] - s.splits[0], s.BLOCK_N),  # (SPLITS,) trips through the loop over keys
    },
    grid="B H SPLITS",
    others=others,
    tensors={"Q": Tensor("B H D"), "K": Tensor("B HKV S D"), "V": Tensor("B HKV S D")}
    | {"part": Tensor("B H SPLITS D", "fp32", role="out"), "lse": Tensor("B H SPLITS", "fp32", role="out")},
    arguments="S H HKV SPLITS scale",
    constexprs="D BLOCK_N",
    access=access,
    reference=reference,
    flops=lambda s: 4.0 * s.B * s.H * s.S * s.D,
    issued=lambda s: 4.0 * s.B * s.H * s.D * s.BLOCK_N * int(s.steps.sum()),
    blocks={"BLOCK_N": (1, 1024), "D": (1, 256)},
    rules={**HEADS, "SPLITS = {s.SPLITS}, S = {s.S}: a split has at least one key": lambda s: s.SPLITS <= s.S},
    items={"K of a head": "S D", "part": "B H SPLITS D"},
    work=lambda s: (2 * (s.S / s.BLOCK_N / s.SPLITS + 2), lines_of(2 * s.S / s.SPLITS, s.D)),
    compiled={((64, 128), 4): (72, 1024), ((64, 64), 4): (67, 512)},
    in_flight=4,
)
