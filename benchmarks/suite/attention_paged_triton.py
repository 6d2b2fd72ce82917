"""Triton source of the suite's paged decode: one new token, one query head, the pages of one split, found in a table.

Source: the layout of vLLM's paged key cache (pages of keys, all heads of a key together, a table of pages a sequence),
and the split-key stage that Flash-Decoding describes; written anew.
"""

import triton
import triton.language as tl


@triton.jit
def attention_paged(
    q_ptr,
    k_ptr,
    v_ptr,
    part_ptr,
    lse_ptr,
    length_ptr,
    table_ptr,
    MOST_PAGES,
    H,
    HKV,
    SPLITS,
    scale,
    D: tl.constexpr,
    PAGE: tl.constexpr,
):
    """Softmax-weighted sum of V over the keys of one split, and the logarithm of its weights' sum, in fp32."""
    batch = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    kv_head = head // (H // HKV)
    length = tl.load(length_ptr + batch)
    pages = tl.cdiv(length, PAGE)
    share = tl.cdiv(pages, SPLITS)
    cols = tl.arange(0, D)
    query = batch * H + head
    q = tl.load(q_ptr + query * D + cols).to(tl.float32) * scale
    highest = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for page in range(split * share, tl.minimum(pages, (split + 1) * share)):
        place = tl.load(table_ptr + batch * MOST_PAGES + page)
        rows = place.to(tl.int64) * PAGE + tl.arange(0, PAGE)
        there = page * PAGE + tl.arange(0, PAGE) < length
        offsets = (rows[:, None] * HKV + kv_head) * D + cols[None, :]
        k = tl.load(k_ptr + offsets, mask=there[:, None], other=0.0).to(tl.float32)
        scores = tl.where(there, tl.sum(k * q[None, :], 1), -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 0))
        shrink = tl.exp(highest - new_highest)
        weights = tl.exp(scores - new_highest)
        v = tl.load(v_ptr + offsets, mask=there[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(weights[:, None] * v, 0)
        total = total * shrink + tl.sum(weights, 0)
        highest = new_highest
    place = query * SPLITS + split
    some = tl.where(total > 0, total, 1.0)
    tl.store(part_ptr + place * D + cols, acc / some)
    tl.store(lse_ptr + place, tl.where(total > 0, highest + tl.log(some), -float("inf")))
