"""Attention decode: one new token of each sequence against its cached keys, the keys in splits (Flash-Decoding).

This is the first stage; joining the splits is a second, small launch that is not part of it. The default has the head
counts of Llama 3 70B (64 and 8, D = 128), 4 sequences of 32768 tokens, 16 splits.
"""

import itertools
import math

import numpy as np

from .declared import GRIDS, Declared, Tensor, lines_of
from .flash_attention import HEADS
from .splits import IN_SPLITS, of_splits, steps_of


def access(s, build, pid, q, k, v, part, lse) -> None:
    """Q once; K and V of the split, block by block; the partial output and its weight."""
    batch, head, split = pid
    build.step(build.read_box(q, at=(batch, head, 0), size=(1, 1, s.D)))
    start, keys = steps_of(s, split)
    at, size = (batch[:, None], (head // (s.H // s.HKV))[:, None], start, 0), (1, 1, keys, s.D)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(part, at=(*pid, 0), size=(1, 1, 1, s.D)), build.write_box(lse, at=pid, size=(1, 1, 1)))


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
        **IN_SPLITS,
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
