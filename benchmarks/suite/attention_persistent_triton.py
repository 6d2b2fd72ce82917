"""Triton source of the suite's persistent attention: programs that stay, a query block of a head at a time.

Source: the forward pass of FlashAttention-2 (Dao, arXiv 2307.08691) under the persistent grid that AMD's rocke study of
thread-block mapping compares (ROCm/rocm-libraries PR 9480), written anew without an order of its own.
"""

import triton
import triton.language as tl


@triton.jit
def attention_persistent(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    S,
    H,
    HKV,
    HEADS,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """O = softmax(Q K^T * scale) V for Q, O (HEADS, S, D); tile t is query block t // HEADS of head t % HEADS."""
    num_tiles = tl.cdiv(S, BLOCK_M) * HEADS
    for tile in range(tl.program_id(0), num_tiles, tl.num_programs(0)):
        first = tile // HEADS * BLOCK_M
        head = tile % HEADS
        kv_head = head // H * HKV + head % H // (H // HKV)
        q_base = head.to(tl.int64) * S * D
        kv_base = kv_head.to(tl.int64) * S * D
        rows = first + tl.arange(0, BLOCK_M)
        cols = tl.arange(0, D)
        inside = rows[:, None] < S
        q = tl.load(q_ptr + q_base + rows[:, None] * D + cols[None, :], mask=inside, other=0.0)
        highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        acc = tl.zeros((BLOCK_M, D), tl.float32)
        end = S
        if CAUSAL:
            end = tl.minimum(S, first + BLOCK_M)
        for start in range(0, end, BLOCK_N):
            keys = start + tl.arange(0, BLOCK_N)
            known = keys[:, None] < S
            k = tl.load(k_ptr + kv_base + keys[:, None] * D + cols[None, :], mask=known, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * scale
            allowed = keys[None, :] < S
            if CAUSAL:
                allowed = allowed & (keys[None, :] <= rows[:, None])
            scores = tl.where(allowed, scores, -float("inf"))
            new_highest = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp(scores - new_highest[:, None])
            shrink = tl.exp(highest - new_highest)
            v = tl.load(v_ptr + kv_base + keys[:, None] * D + cols[None, :], mask=known, other=0.0)
            acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
            total = total * shrink + tl.sum(weights, 1)
            highest = new_highest
        out = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
        tl.store(o_ptr + q_base + rows[:, None] * D + cols[None, :], out, mask=inside)
