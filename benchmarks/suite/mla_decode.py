"""MLA decode: one new token against a cache of latents that all query heads share, heads in blocks, keys in splits.

A cached token is one row, a latent that is key and value at once and a rotated key beside it: 512 + 64 numbers in
DeepSeek-V2 and V3, for all of their 128 heads. This is the first stage; joining the splits is a launch of its own.
The default has 4 sequences of 32768 tokens in 16 splits.
"""

import itertools
import math

import numpy as np

from .declared import DOT, GRIDS, Declared, Tensor, lines_of, up
from .splits import IN_SPLITS, of_splits, steps_of

NOPE = 128  # of a head's key before its projection is absorbed: the scale of the scores


def access(s, build, pid, q, kv, part, lse) -> None:
    """Both parts of the queries, then of each step of tokens; the partial outputs and their weights."""
    batch, head, split = pid[0], pid[1] * s.BLOCK_H, pid[2]
    parts = (0, s.LATENT), (s.LATENT, s.ROPE)
    for col, width in parts:
        build.step(build.read_box(q, at=(batch, head, col), size=(1, s.BLOCK_H, width)))
    start, keys = steps_of(s, split)
    build.step(
        *(build.read_box(kv, at=(batch[:, None], start, col), size=(1, keys, width)) for col, width in parts),
    )
    build.step(
        build.write_box(part, at=(batch, head, split, 0), size=(1, s.BLOCK_H, 1, s.LATENT)),
        build.write_box(lse, at=(batch, head, split), size=(1, s.BLOCK_H, 1)),
    )


def reference(s, q, kv) -> tuple[np.ndarray, np.ndarray]:
    """`of_splits` in fp32."""
    q, kv = q.astype(np.float32), kv.astype(np.float32)
    scores = q @ np.swapaxes(kv, 1, 2) / np.float32(math.sqrt(NOPE + s.ROPE))
    return of_splits(s, scores, lambda weights, keys: weights @ kv[:, keys, : s.LATENT])


mla_decode = Declared(
    name="mla_decode",
    summary="one token's attention over a split of latent keys that all heads share, fp16",
    sharing="""\
Workgroup (x, y, z) reads the queries of the y-th block of BLOCK_H heads of sequence x, then over the z-th of SPLITS
runs of keys the latent and the rotated key of each token, BLOCK_N tokens a step, which are keys and values of all
heads; it writes a partial output row and one number for each head. The H / BLOCK_H workgroups of one sequence and split
read the same tokens: in the launch they are B ids apart. Other sequences and splits share no token with them.""",
    sources=("DeepSeek-V2, arXiv 2405.04434 (latents, sizes)", "sglang and vLLM, Triton decode (grid)"),
    sizes={"B": 4, "H": 128, "S": 32768, "LATENT": 512, "ROPE": 64, "SPLITS": 16, "BLOCK_H": 16, "BLOCK_N": 32},
    derived={
        **IN_SPLITS,
        "scale": lambda s: 1 / math.sqrt(NOPE + s.ROPE),
        "wide": lambda s: s.LATENT + s.ROPE,
        "products": lambda s: 2 * s.LATENT + s.ROPE,  # of a query and a token
    },
    grid="B H/BLOCK_H SPLITS",
    others=lambda s: (
        {"B": b, "H": blocks * s.BLOCK_H - cut, "S": splits * 2 * s.BLOCK_N - cut, "SPLITS": splits}
        for (b, blocks, splits), cut in itertools.product(GRIDS[3], (0, 1))
    ),
    tensors={"Q": Tensor("B H wide"), "KV": Tensor("B S wide")}
    | {"part": Tensor("B H SPLITS LATENT", "fp32", role="out"), "lse": Tensor("B H SPLITS", "fp32", role="out")},
    arguments="S H SPLITS scale",
    constexprs="LATENT ROPE BLOCK_H BLOCK_N",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.B * s.H * s.S * s.products,
    issued=lambda s: 2.0 * s.B * up(s.H, s.BLOCK_H) * s.BLOCK_N * int(s.steps.sum()) * s.products,
    blocks={"BLOCK_H BLOCK_N": DOT, "LATENT ROPE": (16, 512)},
    rules={"SPLITS = {s.SPLITS}, S = {s.S}: a split has at least one token": lambda s: s.SPLITS <= s.S},
    items={"the partial output": "B H SPLITS LATENT", "the cache of a sequence": "S wide"},
    work=lambda s: (2 * (s.S / s.BLOCK_N / s.SPLITS + 3), lines_of(s.S / s.SPLITS, s.wide)),
    compiled={((16, 32, 512), 4): (296, 32 * 1024)},
    tile="BLOCK_H BLOCK_N LATENT",
    num_stages=1,
    in_flight=2,
)
