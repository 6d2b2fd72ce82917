"""Causal attention as one would find it in a model: a Triton kernel, its wrapper, and a call.

One workgroup computes a block of queries of one head, over the keys up to it: late blocks take longest.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_attention(
    q_ptr, k_ptr, v_ptr, o_ptr, S, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """O = softmax(Q K^T * scale, keys up to the query's) V, all of shape (heads, S, D)."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    base = head.to(tl.int64) * S * D
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, D)
    q = tl.load(q_ptr + base + rows[:, None] * D + cols[None, :], mask=rows[:, None] < S, other=0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, tl.minimum(S, (block + 1) * BLOCK_M), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        at = keys[:, None] * D + cols[None, :]
        k = tl.load(k_ptr + base + at, mask=keys[:, None] < S, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] <= rows[:, None], scores, -float("inf"))
        now = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - now[:, None])
        shrink = tl.exp(highest - now)
        v = tl.load(v_ptr + base + at, mask=keys[:, None] < S, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        highest = now
    out = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + base + rows[:, None] * D + cols[None, :], out, mask=rows[:, None] < S)


def attend(q, k, v):
    """Causal attention of q, k and v, of shape (heads, S, D)."""
    heads, S, D = q.shape
    assert k.shape == v.shape == q.shape
    o = torch.empty_like(q)
    grid = (triton.cdiv(S, 128), heads)
    causal_attention[grid](q, k, v, o, S, D**-0.5, D, BLOCK_M=128, BLOCK_N=64)
    return o


if __name__ == "__main__":
    q, k, v = (torch.randn(64, 2048, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    print(attend(q, k, v).shape)
