"""Attention over packed sequences of drawn lengths: cumulated lengths, and a grid for the longest that may come.

The host launches blocks for S tokens of every sequence; workgroups beyond a sequence's end read its place and leave.
Lengths are drawn by SEED, evenly between 1 and S. The heads are those of Llama 3 8B.
"""

import itertools
from dataclasses import replace

import numpy as np

from . import flash_attention
from .declared import Sizes, Tensor, cdiv, table
from .flash_attention import FITTED, attention, softmax_ops

SHAPES = ((1, 1, 1), (1, 2, 4), (5, 3, 1), (2, 1, 2), (3, 8, 1), (8, 2, 8), (7, 5, 1), (11, 1, 13), (37, 1, 1))


def key_steps(s: Sizes) -> np.ndarray:
    """(B, query blocks) int64: key blocks that each query block of a sequence reads, 0 beyond the sequence's end."""
    length, first = s.lengths[:, None], np.arange(cdiv(s.S, s.BLOCK_M))[None, :] * s.BLOCK_M
    end = np.minimum(length, first + s.BLOCK_M) if s.CAUSAL else length
    return np.where(first < length, cdiv(end, s.BLOCK_N), 0)


def access(s, build, pid, q, k, v, o, cu_seqlens) -> None:
    """Begin and end of the sequence; of a block inside it Q, K and V block by block, O."""
    block, (batch, head) = pid[0], np.divmod(pid[1], s.H)
    starts = s.cu_seqlens.astype(np.int64)
    first, end, steps = starts[batch], starts[batch + 1], s.key_steps[batch, block]
    build.step(build.read_box(cu_seqlens, at=(batch,), size=(1,)))
    build.step(build.read_box(cu_seqlens, at=(batch + 1,), size=(1,)))
    row = first + block * s.BLOCK_M
    own = {"at": (row, head, 0), "size": (np.clip(end - row, 0, s.BLOCK_M), 1, s.D)}
    build.step(build.read_box(q, **own))
    trip = np.arange(int(steps.max()))[None, :]
    key = first[:, None] + trip * s.BLOCK_N
    high = np.where(trip < steps[:, None], np.clip(end[:, None] - key, 0, s.BLOCK_N), 0)
    at, size = (key, (head // (s.H // s.HKV))[:, None], 0), (high, 1, s.D)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(o, **own))


def reference(s, q, k, v, cu_seqlens) -> np.ndarray:
    """O: attention of each sequence alone."""
    out = []
    for first, end in itertools.pairwise(cu_seqlens.tolist()):
        alone = (np.swapaxes(values[first:end], 0, 1)[None] for values in (q, k, v))
        out.append(np.swapaxes(flash_attention.reference(s, *alone)[0], 0, 1))
    return np.concatenate(out)


attention_varlen = replace(
    attention,
    name="attention_varlen",
    summary="attention over packed sequences, fp16, grouped queries, lengths drawn by SEED",
    sharing="""\
Workgroup (m, n) of head n % H of sequence n // H reads where its sequence begins and ends in the packed tokens; if
block m lies beyond the end it leaves. Else it reads BLOCK_M rows of Q, all of K and V of its sequence and of key head
n % H // (H / HKV) (up to the diagonal if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. Workgroups
of the H / HKV query heads of one key head of a sequence, a run of columns of the grid, share K and V. All heads of a
token lie side by side. The work of a workgroup grows with its sequence and, if CAUSAL, with m.""",
    sources=("FlashAttention-2, arXiv 2307.08691 (algorithm, cumulated lengths)", "Llama 3, arXiv 2407.21783 (heads)"),
    sizes={"B": 16, "H": 32, "HKV": 8, "S": 4096, "D": 128, "CAUSAL": True, "SEED": 1, "BLOCK_M": 128, "BLOCK_N": 64},
    derived={
        **attention.derived,
        "lengths": lambda s: np.random.default_rng(s.SEED).integers(1, s.S + 1, s.B),  # of each sequence, as drawn
        "cu_seqlens": lambda s: np.concatenate([[0], np.cumsum(s.lengths)]).astype(np.int32),  # first token of each
        "tokens": lambda s: int(s.lengths.sum()),
        "key_steps": key_steps,
        "scores": lambda s: float(s.H * s.key_steps.sum()) * s.BLOCK_M * s.BLOCK_N,
        "seen": lambda s: s.lengths * (s.lengths + 1) // 2 if s.CAUSAL else s.lengths**2,  # keys by all queries of each
    },
    # few blocks and many heads and the other way round, several sequences and one
    others=lambda s: (
        {"B": b, "H": h, "HKV": 1, "S": blocks * s.BLOCK_M - cut}
        for (blocks, b, h), cut in itertools.product(SHAPES, (0, 1))
    ),
    tensors={"Q": Tensor("tokens H D"), "K": Tensor("tokens HKV D"), "V": Tensor("tokens HKV D")}
    | {"O": Tensor("tokens H D", role="out"), "cu_seqlens": table("cu_seqlens")},
    arguments="H HKV scale",
    access=access,
    reference=reference,
    flops=lambda s: 4.0 * s.H * s.D * int(s.seen.sum()),
    issued=lambda s: 4.0 * s.D * s.scores,
    items={"Q or O": "B S H D"},
    compiled={((128, 64, 128), 4): (256, 32 * 1024)},  # causal
    more=lambda s: {"vector_ops": s.scores * softmax_ops(s.D, s.BLOCK_N), "fitted": FITTED},
)
