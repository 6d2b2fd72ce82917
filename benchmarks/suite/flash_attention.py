"""Attention, forward: `attention` with keys of its own for each query head, `attention_gqa` with query heads in groups.

The default of `attention` is the head count at which arXiv 2511.02132 saw most on MI300X (H = 128, D = 128), at 4096
tokens instead of its 2K to 128K, so that a replay takes about a second: K and V of a head are 2 MiB, of the 16 heads
that block-first runs at once on an XCD 32 MiB, eight times its L2. `attention_gqa` has the head counts of Llama 3 70B
(64 and 8, D = 128) at 4096 tokens: H query heads share HKV key and value heads in runs of H / HKV.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from .declared import DOT, Declared, Sizes, Tensor, cdiv, lines_of

SOFTMAX_OPS = 10.6  # lane instructions a score,
ROW_OPS, SUM_OPS = 96.0, 1.8  # and of a step of keys those of a query, and of each of its sums that are rescaled
FITTED = dict.fromkeys(("SOFTMAX_OPS", "ROW_OPS", "SUM_OPS"), ("data/machine/h200_attention_shapes.csv",))

# By CAUSAL, of (BLOCK_M, BLOCK_N, D)
COMPILED = {
    0: {
        ((128, 64, 128), 4): (218, 32 * 1024),
        ((128, 64, 64), 4): (146, 16 * 1024),
        ((128, 128, 128), 4): (365, 32 * 1024),
        ((256, 64, 128), 4): (424, 64 * 1024),
    },
    1: {
        ((128, 64, 128), 4): (276, 32 * 1024),
        ((128, 64, 64), 4): (225, 16 * 1024),
    },
}
# query blocks and heads: few and many, the other way round, heads that XCDs share evenly and not
SHAPES = ((1, 1), (1, 8), (5, 3), (2, 2), (4, 4), (3, 8), (8, 16), (7, 5), (16, 24), (11, 13), (32, 2), (37, 1))
HEADS = {
    "H = {s.H}, HKV = {s.HKV}: every key head serves as many query heads, so HKV divides H": lambda s: s.H % s.HKV == 0
}


def softmax_ops(d: int, keys: int) -> float:
    """Lane instructions a score between the two products: an exponential, and at every step of keys what a query costs.

    Source: an H200 executes 15.7, 20.8, 13.9 and 17.3 a score for D = 128 with 64 and 32 keys a step and D = 64 with 64
    and 32 (Nsight Compute, decision 0022): the three constants; taken to be as many elsewhere.
    """
    return SOFTMAX_OPS + (ROW_OPS + SUM_OPS * d) / keys


def key_blocks(s: Sizes) -> np.ndarray:
    """(n_query_blocks,) key blocks that each query block reads."""
    ends = np.full(cdiv(s.S, s.BLOCK_M), s.S)
    if s.CAUSAL:
        ends = np.minimum((np.arange(ends.size) + 1) * s.BLOCK_M, s.S)
    return cdiv(ends, s.BLOCK_N)


def access(s, build, pid, q, k, v, o) -> None:
    """Q once; K and V block by block, up to the diagonal if causal; O once."""
    block, (batch, head) = pid[0], np.divmod(pid[1], s.H)
    own = {"at": (batch, head, block * s.BLOCK_M, 0), "size": (1, 1, s.BLOCK_M, s.D)}
    build.step(build.read_box(q, **own))
    steps = s.key_blocks[block][:, None]
    trip = np.arange(int(steps.max()))[None, :]
    at = (batch[:, None], (head // (s.H // s.HKV))[:, None], trip * s.BLOCK_N, 0)
    size = (1, 1, np.where(trip < steps, s.BLOCK_N, 0), s.D)
    build.step(build.read_box(k, at=at, size=size), build.read_box(v, at=at, size=size))
    build.step(build.write_box(o, **own))


def reference(s, q, k, v) -> np.ndarray:
    """O, softmax and sums in fp32."""
    q, k, v = (values.astype(np.float32) for values in (q, k, v))
    k, v = (np.repeat(values, s.H // s.HKV, axis=1) for values in (k, v))
    scores = q @ np.swapaxes(k, 2, 3) / np.float32(math.sqrt(s.D))
    if s.CAUSAL:
        scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def work(s: Sizes) -> tuple[float, float]:
    """Two loads a step of keys; Q and O."""
    steps = cdiv(s.S, s.BLOCK_N) / (2 if s.CAUSAL else 1)
    return 2 * steps + 2, lines_of(2 * steps * s.BLOCK_N + 2 * s.S / cdiv(s.S, s.BLOCK_M), s.D)


def others(s, shapes=SHAPES):
    """Other grids, each once exact and once ragged, with as many queries for each key head where heads allow it."""
    for (blocks, heads), cut in itertools.product(shapes, (0, 1)):
        shared = {"HKV": heads // math.gcd(heads, s.H // s.HKV)} if "HKV" in s.problem else {}
        yield {"B": 1, "H": heads, "S": blocks * s.BLOCK_M - cut, **shared}


attention = Declared(
    name="attention",
    summary="softmax(Q K^T) V, fp16, one query block of a head",
    sharing="""\
Workgroup (m, n) reads BLOCK_M rows of Q of head n, all of K and V of head n (up to the diagonal if CAUSAL), BLOCK_N
rows of each a step, and writes BLOCK_M rows of O. The workgroups of one head, a column of the grid, share K and V; two
heads share nothing, and Q and O are touched once. Workgroups of a head that run at the same time behind one L2 march
through K and V together; heads that run beside them behind it compete for its room.""",
    sources=(
        "FlashAttention-2, arXiv 2307.08691 (algorithm, grid)",
        "arXiv 2511.02132 (sizes; orders of heads and blocks on MI300X)",
    ),
    sizes={"B": 1, "H": 128, "S": 4096, "D": 128, "CAUSAL": False, "BLOCK_M": 128, "BLOCK_N": 64},
    derived={
        "HKV": lambda s: s.H,
        "scale": lambda s: 1 / math.sqrt(s.D),
        "key_blocks": key_blocks,
        "tiles": lambda s: s.B * s.H * float(s.key_blocks.sum()) * s.BLOCK_M * s.BLOCK_N,  # scores, masked ones too
    },
    grid="S/BLOCK_M B*H",
    others=others,
    tensors={"Q": Tensor("B H S D"), "K": Tensor("B HKV S D"), "V": Tensor("B HKV S D")}
    | {"O": Tensor("B H S D", role="out")},
    arguments="S H HKV scale",
    constexprs="D CAUSAL BLOCK_M BLOCK_N",
    access=access,
    reference=reference,
    flops=lambda s: 4.0 * s.B * s.H * s.D * (s.S * (s.S + 1) / 2 if s.CAUSAL else s.S * s.S),
    issued=lambda s: 4.0 * s.tiles * s.D,
    blocks={"BLOCK_M BLOCK_N": DOT, "D": (16, 256)},
    rules=HEADS,
    items={"Q of a head": "S D"},
    work=work,
    compiled=lambda s: COMPILED[s.CAUSAL],
    num_stages=1,  # as AMD's attention kernels: loads of a step are issued ahead by the compiler within the step
    in_flight=2,
    more=lambda s: {"vector_ops": s.tiles * softmax_ops(s.D, s.BLOCK_N), "fitted": FITTED},
)

attention_gqa = replace(
    attention,
    name="attention_gqa",
    summary="attention, fp16, query heads share keys in groups",
    sharing="""\
Workgroup (m, n) reads BLOCK_M rows of Q of query head n, all of K and V of key head n // (H / HKV) (up to the diagonal
if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. The workgroups of the H / HKV query heads of one
key head, a run of columns of the grid, share K and V; nothing else is shared. In a batch of several, columns go on with
the next sequence's heads.""",
    sizes={"B": 1, "H": 64, "HKV": 8, "S": 4096, "D": 128, "CAUSAL": False, "BLOCK_M": 128, "BLOCK_N": 64},
    triton="attention_triton.py",
    function="attention",
)
