"""Paged decode attention: keys in pages that a table finds, sequences of drawn lengths, grouped queries, split keys.

Lengths are drawn evenly between half of S and S, and pages lie in a random order, both by SEED. All heads of a key lie
together, as in vLLM. The heads are those of Llama 3 8B.
"""

from dataclasses import replace

import numpy as np

from .attention_decode import attention_decode, others
from .declared import Sizes, Tensor, cdiv, lines_of, table
from .flash_attention import HEADS


def drawn(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Lengths (B,) and pages (B, most pages), int32, as SEED draws them."""
    draw = np.random.default_rng(s.SEED)
    length = draw.integers(cdiv(s.S, 2), s.S + 1, s.B)
    pages = draw.permutation(s.B * s.MOST_PAGES).reshape(s.B, s.MOST_PAGES)
    return length.astype(np.int32), pages.astype(np.int32)


def access(s, build, pid, q, k, v, *rest) -> None:
    """Length, Q; of each page of the split its place in the table, K, V; partial output and weight."""
    part, lse, length, table = rest
    batch, head, split = pid
    pages, share = s.pages[batch], cdiv(s.pages, s.SPLITS)[batch]
    build.step(build.read_box(length, at=(batch,), size=(1,)), build.read_box(q, at=(batch, head, 0), size=(1, 1, s.D)))
    mine = (split * share)[:, None] + np.arange(int(share.max()))[None, :]
    real = mine < np.minimum(pages, (split + 1) * share)[:, None]
    mine = np.minimum(mine, s.MOST_PAGES - 1)
    left = s.length.astype(np.int64)[batch][:, None] - mine * s.PAGE
    at = (s.table.astype(np.int64)[batch[:, None], mine], 0, (head // (s.H // s.HKV))[:, None], 0)
    size = (1, np.where(real, np.clip(left, 0, s.PAGE), 0), 1, s.D)
    build.step(
        build.read_box(table, at=(batch[:, None], mine), size=(1, real.astype(np.int64))),
        build.read_box(k, at=at, size=size),
        build.read_box(v, at=at, size=size),
    )
    build.step(build.write_box(part, at=(*pid, 0), size=(1, 1, 1, s.D)), build.write_box(lse, at=pid, size=(1, 1, 1)))


def reference(s, q, k, v, length, table) -> tuple[np.ndarray, ...]:
    """That of `attention_decode` of each sequence alone: the keys of its pages, split between pages."""
    found = []
    for batch, end in enumerate(length.tolist()):
        keys, values = (np.swapaxes(x[table[batch]].reshape(-1, s.HKV, s.D)[:end], 0, 1)[None] for x in (k, v))
        share = cdiv(cdiv(end, s.PAGE), s.SPLITS) * s.PAGE
        first = np.minimum(np.arange(s.SPLITS) * share, end)
        alone = Sizes(s.problem, {"splits": (first, np.minimum(first + share, end))})
        found.append(attention_decode.reference(alone, q[batch : batch + 1], keys, values))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


attention_paged = replace(
    attention_decode,
    name="attention_paged",
    summary="one token's attention over a split of paged keys, fp16, lengths and pages drawn by SEED",
    sharing="""\
Workgroup (batch, head, split) reads its sequence's length, one query vector, and the keys and values of one key head
in the pages of its split, wherever the table says they lie; it writes a partial output. The H / HKV query heads of a
key head read the same rows, and nothing else does. All key heads of a key lie side by side, so workgroups of
different key heads read neighbouring rows of the same pages. Workgroups of short sequences have fewer pages.""",
    sources=("vLLM's paged key cache", "Flash-Decoding (Dao, Haziza, Massa, Sizov 2023)"),
    # S keys at most of a sequence; SPLITS parts of its pages; another SEED is another draw of lengths and pages
    sizes={"B": 32, "H": 32, "HKV": 8, "S": 4096, "D": 128, "PAGE": 16, "SPLITS": 8, "SEED": 1},
    derived={
        "MOST_PAGES": lambda s: cdiv(s.S, s.PAGE),  # of the longest sequence
        "scale": attention_decode.derived["scale"],
        "drawn": drawn,
        **{name: lambda s, i=i: s.drawn[i] for i, name in enumerate(("length", "table"))},
        "pages": lambda s: cdiv(s.length.astype(np.int64), s.PAGE),  # of each sequence
    },
    others=lambda s: others(s, block="PAGE"),
    tensors={**attention_decode.tensors, **dict.fromkeys("KV", Tensor("B*MOST_PAGES PAGE HKV D"))}
    | {"length": table("length"), "table": table("table")},
    arguments="MOST_PAGES H HKV SPLITS scale",
    constexprs="D PAGE",
    access=access,
    reference=reference,
    flops=lambda s: 4.0 * s.H * s.D * int(s.length.sum()),
    issued=lambda s: 4.0 * s.H * s.D * s.PAGE * int(s.pages.sum()),
    blocks={"PAGE": (1, 1024), "D": (1, 256)},
    rules=HEADS,
    items={"the partial output": "B H SPLITS D"},
    work=lambda s: (3 * s.MOST_PAGES / s.SPLITS + 4, lines_of(2 * s.S / s.SPLITS, s.D)),
    compiled={((16, 128), 4): (64, 1024)},
)
