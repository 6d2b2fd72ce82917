"""Triton source of the suite's MLA decode: one new token, a block of query heads, the latent keys of one split.

Source: multi-head latent attention with its projections absorbed (DeepSeek-V2, arXiv 2405.04434), and the split-key
stage that Flash-Decoding describes, on the grid of sglang's and vLLM's decode (batch, block of heads, split); written
anew.
"""

import triton
import triton.language as tl


@triton.jit
def mla_decode(
    q_ptr,
    kv_ptr,
    part_ptr,
    lse_ptr,
    S,
    H,
    SPLITS,
    scale,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Softmax-weighted sum of latents over the keys of one split, and the logarithm of its weights' sum, in fp32."""
    batch = tl.program_id(0)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    split = tl.program_id(2)
    kv_base = batch.to(tl.int64) * S * (LATENT + ROPE)
    length = tl.cdiv(S, SPLITS)
    first = split * length
    end = tl.minimum(S, first + length)
    cols = tl.arange(0, LATENT)
    turned = LATENT + tl.arange(0, ROPE)
    real = heads[:, None] < H
    query = (batch * H + heads[:, None]) * (LATENT + ROPE)
    q = tl.load(q_ptr + query + cols[None, :], mask=real, other=0.0)
    q_rope = tl.load(q_ptr + query + turned[None, :], mask=real, other=0.0)
    highest = tl.full((BLOCK_H,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    acc = tl.zeros((BLOCK_H, LATENT), tl.float32)
    for start in range(first, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        row = kv_ptr + kv_base + keys[:, None] * (LATENT + ROPE)
        latent = tl.load(row + cols[None, :], mask=keys[:, None] < end, other=0.0)
        rope = tl.load(row + turned[None, :], mask=keys[:, None] < end, other=0.0)
        scores = (tl.dot(q, tl.trans(latent)) + tl.dot(q_rope, tl.trans(rope))) * scale
        scores = tl.where(keys[None, :] < end, scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - new_highest[:, None])
        shrink = tl.exp(highest - new_highest)
        acc = tl.dot(weights.to(latent.dtype), latent, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        highest = new_highest
    place = (batch * H + heads) * SPLITS + split
    some = tl.where(total > 0, total, 1.0)
    tl.store(part_ptr + place[:, None] * LATENT + cols[None, :], acc / some[:, None], mask=real)
    tl.store(lse_ptr + place, tl.where(total > 0, highest + tl.log(some), -float("inf")), mask=heads < H)
