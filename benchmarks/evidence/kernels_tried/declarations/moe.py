"""The fused mixture-of-experts kernels of applied-ai, which is vLLM's, and of sglang."""

import os

import numpy as np

from swizzle_sim.capture import Array, Kernel

FOLDER = os.environ.get("APPLIED_AI", ".")
EXPERTS, TOP = 8, 2
SIZES = {"TOKENS": 1024, "N": 2048, "K": 1024}


def cdiv(a, b):
    return -(-a // b)


def padded(s):
    """Rows that the launch makes room for: each expert's tokens filled up to whole blocks."""
    return cdiv(s.TOKENS * TOP + EXPERTS * 63, 64) * 64


def routing(s, seed):
    """Tokens sorted by expert, padded with an index past the last, as ``moe_align_block_size`` gives them."""
    draw = np.random.default_rng(seed)
    expert = draw.integers(0, EXPERTS, s.TOKENS * TOP)
    ids = np.full(padded(s), s.TOKENS * TOP, np.int32)
    experts, at = np.zeros(padded(s) // 64, np.int32), 0
    for e in range(EXPERTS):
        own = np.flatnonzero(expert == e)
        ids[at : at + own.size] = own
        end = at + cdiv(own.size, 64) * 64
        experts[at // 64 : end // 64] = e
        at = end
    return {
        "sorted_token_ids_ptr": ids, "expert_ids_ptr": experts,
        "num_tokens_post_padded_ptr": np.array([at], np.int32),
    }  # fmt: skip


def tensors(s):
    return {
        "a_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(EXPERTS, s.N, s.K), dtype="bf16"),
        "c_ptr": Array(shape=(s.TOKENS, TOP, s.N), dtype="bf16", role="out"),
        "topk_weights_ptr": Array(shape=(s.TOKENS, TOP), dtype="fp32"),
        "sorted_token_ids_ptr": Array(shape=(padded(s),), dtype="int32", is_index=True),
        "expert_ids_ptr": Array(shape=(padded(s) // 64,), dtype="int32", is_index=True),
        "num_tokens_post_padded_ptr": Array(shape=(1,), dtype="int32", is_index=True),
        "N": s.N, "K": s.K, "EM": padded(s), "num_valid_tokens": s.TOKENS * TOP,
        "stride_am": s.K, "stride_ak": 1, "stride_be": s.N * s.K, "stride_bk": 1, "stride_bn": s.K,
        "stride_cm": s.N, "stride_cn": 1,
    }  # fmt: skip


CONSTANTS = {
    "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "MUL_ROUTED_WEIGHT": False,
    "top_k": TOP, "compute_type": "tl.bfloat16",
}  # fmt: skip


def grid(s):
    return (padded(s) // 64 * cdiv(s.N, 128),)


def tiles(s):
    return padded(s) // 64, cdiv(s.N, 128)


applied_ai = Kernel(
    f"{FOLDER}/kernels/triton/inference/col_major_moe_gemm/v0_moe_fused.py:fused_moe_kernel",
    sizes=SIZES,
    arguments=lambda s: {**tensors(s), "stride_weight": 1, "stride_token_id": 1},
    constexprs=CONSTANTS,
    grid=grid,
    tiles=tiles,
    make_inputs=routing,
)

sglang = Kernel(
    "sglang.kernels.ops.moe.fused_moe_triton_kernels:fused_moe_kernel",
    sizes=SIZES,
    arguments=lambda s: {
        **tensors(s), "a_desc": None, "b_desc": None, "bias_ptr": None, "a_scale_ptr": None, "b_scale_ptr": None,
        "add_mask_ptr": None, "stride_bias_e": 0, "stride_bias_n": 0, "stride_asm": 0, "stride_ask": 0,
        "stride_bse": 0, "stride_bsk": 0, "stride_bsn": 0,
    },
    constexprs={
        **CONSTANTS, "group_n": 0, "group_k": 0, "use_fp8_w8a8": False, "use_int8_w8a8": False,
        "use_int8_w8a16": False, "per_channel_quant": False, "even_Ks": True, "c_sorted": False, "swap_ab": False,
        "FUSE_ADD_TO_OUTPUT": False, "MASK_OUTPUT": False, "FUSE_SUM_ALL_REDUCE": False, "ROUTER_TOPK": 2,
    },
    grid=grid,
    tiles=tiles,
    make_inputs=routing,
)  # fmt: skip
