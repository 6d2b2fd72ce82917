"""Kernels of amd-aiter: five GEMMs, attention and a grouped matmul, with the remaps that they bring."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

KERNELS = "aiter.ops.triton._triton_kernels"
GEMM = {"M": 2048, "N": 2048, "K": 1024}


def cdiv(a, b):
    return -(-a // b)


def tiles(s):
    return cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)


def grid(s):
    rows, columns = tiles(s)
    return (rows * columns,)


def strides(s, k):
    return {
        "stride_am": k, "stride_ak": 1, "stride_bk": 1, "stride_bn": k, "stride_ck": 0, "stride_cm": s.N,
        "stride_cn": 1,
    }  # fmt: skip


def flops(s):
    return 2.0 * s.M * s.N * s.K


a16w16 = Kernel(
    f"{KERNELS}.gemm_a16w16:_gemm_a16_w16_kernel",
    sizes=GEMM,
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="bf16", strides=(1, s.K)),
        "bias_ptr": None,
        "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "M": s.M, "N": s.N, "K": s.K, **strides(s, s.K),
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1,
        "SPLITK_BLOCK_SIZE": s.K, "cache_modifier": "", "activation": "", "use_activation": False, "ADD_BIAS": False,
        "SKIP_REDUCE": False,
    },
    grid=grid, tiles=tiles, flops=flops, num_warps=8, options={"waves_per_eu": 2, "matrix_instr_nonkdim": 16},
)  # fmt: skip

gated = Kernel(
    f"{KERNELS}.gemm_a16w16_gated:_gemm_a16_w16_gated_kernel",
    sizes=GEMM,
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="bf16", strides=(1, s.K)),
        "c_ptr": Array(shape=(s.M, s.N // 2), dtype="bf16", role="out"),
        "M": s.M, "N": s.N, "K": s.K,
        **{name: stride for name, stride in strides(s, s.K).items() if name != "stride_ck"},
        "stride_cm": s.N // 2,
    },
    constexprs={
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "cache_modifier": "",
        "activation": "", "use_activation": False,
    },
    grid=grid, tiles=tiles, flops=flops, num_warps=8,
)  # fmt: skip


def by_block(dtype, **more):
    """GEMM with scales by block, of one of the two kinds of 8-bit floats."""
    return Kernel(
        f"{KERNELS}.gemm_a8w8_blockscale:_gemm_a8w8_blockscale_kernel",
        sizes=GEMM,
        arguments=lambda s: {
            "a_ptr": Array(shape=(s.M, s.K), dtype=dtype),
            "b_ptr": Array(shape=(s.K, s.N), dtype=dtype, strides=(1, s.K)),
            "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
            "a_scale_ptr": Array(shape=(s.M, cdiv(s.K, 128)), dtype="fp32"),
            "b_scale_ptr": Array(shape=(cdiv(s.K, 128), cdiv(s.N, 128)), dtype="fp32", strides=(1, cdiv(s.K, 128))),
            "M": s.M, "N": s.N, "K": s.K, **strides(s, s.K),
            "stride_ascale_m": cdiv(s.K, 128), "stride_ascale_k": 1, "stride_bscale_k": 1,
            "stride_bscale_n": cdiv(s.K, 128),
        },
        constexprs=lambda s: {
            "GROUP_K": 128, "GROUP_N": 128, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128,
            "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": s.K, "cache_modifier": "",
        },
        grid=grid, tiles=tiles, flops=flops, dtype="fp8", **more,
    )  # fmt: skip


blockscale = by_block("fp8e4b8", options={"waves_per_eu": 2, "matrix_instr_nonkdim": 16})
blockscale_nvidia = by_block("fp8e4", num_warps=8)
a8w8 = Kernel(
    f"{KERNELS}.gemm_a8w8:_gemm_a8w8_kernel",
    sizes=GEMM,
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp8e4"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="fp8e4", strides=(1, s.K)),
        "a_scale_ptr": Array(shape=(s.M,), dtype="fp32"), "b_scale_ptr": Array(shape=(s.N,), dtype="fp32"),
        "bias_ptr": Array(shape=(s.N,), dtype="bf16"), "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "M": s.M, "N": s.N, "K": s.K,
        **{name: stride for name, stride in strides(s, s.K).items() if name != "stride_ck"},
    },
    constexprs={
        "HAS_BIAS": True, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1,
        "NUM_XCDS": 1,
    },
    grid=grid, tiles=tiles, flops=flops, dtype="fp8",
)  # fmt: skip

afp4wfp4 = Kernel(
    f"{KERNELS}.gemm_afp4wfp4:_gemm_afp4_wfp4_kernel",
    sizes=GEMM,
    arguments=lambda s: {  # two values a byte, so K counts bytes
        "a_ptr": Array(shape=(s.M, s.K), dtype="uint8"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="uint8", strides=(1, s.K)),
        "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "a_scales_ptr": Array(shape=(s.M, cdiv(s.K, 16)), dtype="uint8"),
        "b_scales_ptr": Array(shape=(s.N, cdiv(s.K, 16)), dtype="uint8"),
        "M": s.M, "N": s.N, "K": s.K, **strides(s, s.K),
        "stride_asm": cdiv(s.K, 16), "stride_ask": 1, "stride_bsn": cdiv(s.K, 16), "stride_bsk": 1,
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 256, "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1,
        "SPLITK_BLOCK_SIZE": 2 * s.K, "cache_modifier": "",
    },
    grid=grid, tiles=tiles, flops=lambda s: 4.0 * s.M * s.N * s.K, dtype="fp8", num_warps=8,
)  # fmt: skip


def attention_strides(s):
    rows, found = {"q": "m", "k": "n", "v": "n", "o": "m"}, {}
    for letter, row in rows.items():
        last = "n" if letter == "o" else "k"
        found |= {
            f"stride_{letter}z_in": s.CONTEXT * s.HEADS * 128, f"stride_{letter}h_in": 128,
            f"stride_{letter}{row}_in": s.HEADS * 128, f"stride_{letter}{last}_in": 1,
        }  # fmt: skip
    zero = ("descale_q_z", "descale_k_z", "descale_v_z", "alibi_z", "alibi_h", "sd_z", "sd_h", "sd_m", "sd_n")
    lse = {"stride_lse_z_in": s.HEADS * s.CONTEXT, "stride_lse_h_in": s.CONTEXT, "stride_lse_m_in": 1}
    return {**found, **{f"stride_{name}_in": 0 for name in zero}, **lse}


def attention_tensor(s, role="in"):
    return Array(shape=(s.BATCH, s.CONTEXT, s.HEADS, 128), dtype="bf16", role=role)


attention = Kernel(
    f"{KERNELS}.mha:_attn_fwd",
    sizes={"BATCH": 2, "HEADS": 16, "CONTEXT": 2048},
    arguments=lambda s: {
        "q_ptr": attention_tensor(s), "k_ptr": attention_tensor(s), "v_ptr": attention_tensor(s),
        "descale_q_ptr": None, "descale_k_ptr": None, "descale_v_ptr": None,
        "out_ptr": attention_tensor(s, "out"), "alibi_slopes_ptr": None, "s_dmask_ptr": None,
        "dropout_mask_ptr": None,
        "softmax_lse_ptr": Array(shape=(s.BATCH, s.HEADS, s.CONTEXT), dtype="fp32", role="out"),
        **attention_strides(s), "sm_scale": 0.088, "cu_seqlens_q": None, "cu_seqlens_k": None, "dropout_p": 0.0,
        "philox_seed": 0, "philox_offset_base_in": 0, "SEQLEN_Q": s.CONTEXT, "SEQLEN_K": s.CONTEXT, "BATCH": s.BATCH,
    },
    constexprs=lambda s: {
        "IS_CAUSAL": True, "NUM_Q_HEADS": s.HEADS, "NUM_K_HEADS": s.HEADS, "PRELOAD_V": False, "BLOCK_M": 128,
        "BLOCK_N": 64, "BLOCK_DMODEL": 128, "BLOCK_DMODEL_POW2": 128, "BLOCK_DMODEL_PE": 0, "RETURN_SCORES": False,
        "ENABLE_DROPOUT": False, "IS_FP8": False, "FP8_MAX": 240.0, "VARLEN": False, "NUM_XCD": 8,
        "USE_INT64_STRIDES": True,
    },
    grid=lambda s: (s.BATCH * s.HEADS * cdiv(s.CONTEXT, 128),),
    num_stages=1, options={"waves_per_eu": 2},
)  # fmt: skip

EXPERTS = 8


def group_sizes(s, seed):
    rows = np.full(EXPERTS, s.M // EXPERTS, np.int32)
    rows[0] += s.M - int(rows.sum())
    return {"group_sizes_ptr": rows}


gmm = Kernel(
    f"{KERNELS}.gmm:gmm_kernel",
    sizes={"M": 4096, "K": 512, "N": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        "lhs_ptr": Array(shape=(s.M, s.K), dtype="bf16"),
        "rhs_ptr": Array(shape=(EXPERTS, s.K, s.N), dtype="bf16"),
        "group_sizes_ptr": Array(shape=(EXPERTS,), dtype="int32", is_index=True),
        "out_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "M": s.M, "K": s.K, "N": s.N, "G": EXPERTS,
    },
    constexprs=lambda s: {
        "TRANS_RHS": False, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_K": 64, "BLOCK_SIZE_N": 128, "GROUP_SIZE": 4,
        "GRID_DIM": s.PROGRAMS,
    },
    grid=lambda s: (s.PROGRAMS,),
    make_inputs=group_sizes,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)  # fmt: skip
