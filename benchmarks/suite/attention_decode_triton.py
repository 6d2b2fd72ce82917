"""Triton source of the suite's attention decode: one new token, keys of one split, one query head a workgroup.

Source: the split-key first stage that Flash-Decoding describes and vLLM launches on (batch, head, split), written
anew; the second stage, which joins the splits, is a launch of its own.
"""

import triton
import triton.language as tl


@triton.jit
def attention_decode(
    q_ptr,
    k_ptr,
    v_ptr,
    part_ptr,
    lse_ptr,
    S,
    H,
    HKV,
    SPLITS,
    scale,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Softmax-weighted sum of V over the keys of one split, and the logarithm of its weights' sum, in fp32."""
    batch = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    kv_base = (batch * HKV + head // (H // HKV)).to(tl.int64) * S * D
    length = tl.cdiv(S, SPLITS)
    first = split * length
    end = tl.minimum(S, first + length)
    cols = tl.arange(0, D)
    query = batch * H + head
    q = tl.load(q_ptr + query * D + cols).to(tl.float32) * scale
    highest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(first, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = kv_base + keys[:, None] * D + cols[None, :]
        k = tl.load(k_ptr + offsets, mask=keys[:, None] < end, other=0.0).to(tl.float32)
        scores = tl.where(keys < end, tl.sum(k * q[None, :], 1), -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 0))
        shrink = tl.exp(highest - new_highest)
        weights = tl.exp(scores - new_highest)
        v = tl.load(v_ptr + offsets, mask=keys[:, None] < end, other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(weights[:, None] * v, 0)
        total = total * shrink + tl.sum(weights, 0)
        highest = new_highest
    place = query * SPLITS + split
    some = tl.where(total > 0, total, 1.0)
    tl.store(part_ptr + place * D + cols, acc / some)
    tl.store(lse_ptr + place, tl.where(total > 0, highest + tl.log(some), -float("inf")))
