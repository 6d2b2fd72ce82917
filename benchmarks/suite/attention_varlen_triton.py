"""Triton source of the suite's attention over sequences of several lengths, packed one after the other.

Source: the forward pass of FlashAttention-2 (Dao, arXiv 2307.08691) with its cumulated lengths (cu_seqlens) and a grid
for the longest sequence, of which the blocks beyond a sequence's end leave; written anew, in the plain launch order.
"""

import triton
import triton.language as tl


@triton.jit
def attention_varlen(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    cu_seqlens_ptr,
    H,
    HKV,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """O = softmax(Q K^T * scale) V, sequence by sequence, for Q, O (tokens, H, D) and K, V (tokens, HKV, D)."""
    block = tl.program_id(0)
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    first = tl.load(cu_seqlens_ptr + batch)
    length = tl.load(cu_seqlens_ptr + batch + 1) - first
    if block * BLOCK_M >= length:
        return
    kv_head = head // (H // HKV)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, D)
    inside = rows[:, None] < length
    own = ((first + rows[:, None]) * H + head) * D + cols[None, :]
    q = tl.load(q_ptr + own, mask=inside, other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (block + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = ((first + keys[:, None]) * HKV + kv_head) * D + cols[None, :]
        k = tl.load(k_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        allowed = keys[None, :] < length
        if CAUSAL:
            allowed = allowed & (keys[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - new_highest[:, None])
        shrink = tl.exp(highest - new_highest)
        v = tl.load(v_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        highest = new_highest
    out = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + own, out, mask=inside)
