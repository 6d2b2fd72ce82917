"""Kernels of packages that were tried after a prediction: mLSTM, int8 attention, grouped and persistent GEMM."""

import numpy as np

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


HEADS, WIDTH, CHUNK = 8, 128, 256  # heads, width of one, tokens of a chunk
BLOCKS = {"siz_b_LQ": 64, "siz_b_LKV": 64, "siz_b_DHQK": 64, "siz_b_DHHV": 128}


def sequence(s, role="in"):
    return Array(shape=(s.BATCH, HEADS, s.CONTEXT, WIDTH), dtype="bf16", role=role)


def of_chunks(s, *sides, role="in"):
    return Array(shape=(s.BATCH, HEADS, *sides), dtype="fp32", role=role)


def chunks(s):
    return s.CONTEXT // CHUNK


mlstm = Kernel(
    "mlstm_kernels.triton.chunkwise.xl_chunk.fw_kernel_parallel:mlstm_chunkwise__parallel_fw_Hintra_kernel",
    sizes={"BATCH": 2, "CONTEXT": 4096},
    arguments=lambda s: {
        "matQ": sequence(s), "matK": sequence(s), "matV": sequence(s), "matHout": sequence(s, "out"),
        "matC_states": of_chunks(s, (chunks(s) + 1) * WIDTH, WIDTH),
        "vecN_states": of_chunks(s, (chunks(s) + 1) * WIDTH), "scaMinter_states": of_chunks(s, chunks(s) + 1),
        "vecI": of_chunks(s, chunks(s), CHUNK), "vecB": of_chunks(s, chunks(s), CHUNK),
        "vecNout": of_chunks(s, s.CONTEXT, role="out"), "vecMout": of_chunks(s, s.CONTEXT, role="out"),
    },
    constexprs=lambda s: {
        "qk_scale": WIDTH**-0.5, "str_matQK_B_NH": s.CONTEXT * WIDTH, "str_matQK_S": WIDTH, "str_matQK_DHQK": 1,
        "str_matHV_B_NH": s.CONTEXT * WIDTH, "str_matHV_S": WIDTH, "str_matHV_DHHV": 1,
        "str_matCstates_B_NH": (chunks(s) + 1) * WIDTH * WIDTH, "str_matCstates_NCDHQK": WIDTH,
        "str_matCstates_DHHV": 1, "str_vecNstates_B_NH": (chunks(s) + 1) * WIDTH, "str_vecNstates_NCDHQK": 1,
        "str_scaMinterstates_B_NH": chunks(s) + 1, "str_vecBI_B_NH": s.CONTEXT, "str_vecBI_NC": CHUNK,
        "str_vecBI_L": 1, "str_vecMN_B_NH": s.CONTEXT, "str_vecMN_S": 1, "B": s.BATCH, "NH": HEADS, "S": s.CONTEXT,
        "DHQK": WIDTH, "DHHV": WIDTH, "NC": chunks(s), "L": CHUNK, **BLOCKS, "DTYPE": "tl.bfloat16",
        "OUTPUT_DTYPE": "tl.float32", "EPS": 1e-6, "MINIMUM_MAX_VAL": -10.0,
    },
    grid=lambda s: (cdiv(WIDTH, 128), CHUNK // 64, chunks(s) * s.BATCH * HEADS),
    num_stages=1,
)  # fmt: skip


def heads(s, dtype, role="in"):
    return Array(shape=(s.BATCH, s.HEADS, s.CONTEXT, WIDTH), dtype=dtype, role=role)


def strides(s, letter):
    return {
        f"stride_{letter}z": s.HEADS * s.CONTEXT * WIDTH, f"stride_{letter}h": s.CONTEXT * WIDTH,
        f"stride_{letter}n": WIDTH,
    }  # fmt: skip


sage = Kernel(
    "sageattention.attn_qk_int8_per_block_causal:_attn_fwd",
    sizes={"BATCH": 1, "HEADS": 16, "CONTEXT": 4096},
    arguments=lambda s: {
        "Q": heads(s, "int8"), "K": heads(s, "int8"), "V": heads(s, "fp16"), "Out": heads(s, "fp16", "out"),
        "Q_scale": Array(shape=(s.BATCH, s.HEADS, cdiv(s.CONTEXT, 128)), dtype="fp32"),
        "K_scale": Array(shape=(s.BATCH, s.HEADS, cdiv(s.CONTEXT, 64)), dtype="fp32"),
        **strides(s, "q"), **strides(s, "k"), **strides(s, "v"), **strides(s, "o"),
        "qo_len": s.CONTEXT, "kv_len": s.CONTEXT,
    },
    constexprs=lambda s: {
        "H": s.HEADS, "num_kv_groups": 1, "HEAD_DIM": WIDTH, "BLOCK_M": 128, "BLOCK_N": 64, "STAGE": 3,
    },
    grid=lambda s: (cdiv(s.CONTEXT, 128), s.HEADS, s.BATCH),
    num_warps=8,
    num_stages=4,
)  # fmt: skip

EXPERTS, TOP = 8, 2


def share(s, seed):
    """Tokens of each expert, uneven, and the order that sorts them by expert."""
    draw = np.random.default_rng(seed).integers(0, EXPERTS, s.TOKENS * TOP)
    return {
        "m_sizes_ptr": np.bincount(draw, minlength=EXPERTS).astype(np.int32),
        "gather_indices_ptr": np.argsort(draw, kind="stable").astype(np.int32),
    }


def grouped_gemm(function):
    return Kernel(
        f"unsloth.kernels.moe.grouped_gemm.kernels.forward:{function}",
        sizes={"TOKENS": 1024, "N": 2048, "K": 1024, "PROGRAMS": 304},
        arguments=lambda s: {
            "x_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"),
            "w_ptr": Array(shape=(EXPERTS, s.N, s.K), dtype="bf16"),
            "y_ptr": Array(shape=(s.TOKENS * TOP, s.N), dtype="bf16", role="out"),
            "m_sizes_ptr": Array(shape=(EXPERTS,), dtype="int32", is_index=True),
            "gather_indices_ptr": Array(shape=(s.TOKENS * TOP,), dtype="int32", is_index=True),
            "topk_weights_ptr": None, "NUM_TOKENS": s.TOKENS, "NUM_SMS": s.PROGRAMS,
        },
        constexprs=lambda s: {
            "NUM_EXPERTS": EXPERTS, "TOPK": TOP, "N": s.N, "K": s.K, "PERMUTE_X": True,
            **({} if function.startswith("_auto") else {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}),
        },
        grid=lambda s: (s.PROGRAMS,),
        make_inputs=share,
    )  # fmt: skip


grouped = grouped_gemm("_grouped_gemm_forward_kernel")
grouped_tuned = grouped_gemm("_autotuned_grouped_gemm_forward_kernel")

persistent = Kernel(
    "flashinfer.triton.kernels.sm_constraint_gemm:gemm_kernel_persistent",
    sizes={"M": 4096, "N": 2048, "K": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
        "b_ptr": Array(shape=(s.N, s.K), dtype="fp16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="inout"),
        "M": s.M, "N": s.N, "K": s.K, "stride_am": s.K, "stride_ak": 1, "stride_bk": 1, "stride_bn": s.K,
        "stride_cm": s.N, "stride_cn": 1, "alpha": 1.0, "beta": 0.0,
    },
    constexprs=lambda s: {"NUM_SMS": s.PROGRAMS},
    grid=lambda s: (min(s.PROGRAMS, cdiv(s.M, s.BLOCK_SIZE_M) * cdiv(s.N, s.BLOCK_SIZE_N)),),
    tiles=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)),
    programs="PROGRAMS",
    num_stages=2,  # its own three do not fit the LDS of an MI300X
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)  # fmt: skip

general_mm = Kernel(
    "flag_gems.ops.mm:mm_kernel_general",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "A": Array(shape=(s.M, s.K), dtype="fp16"), "B": Array(shape=(s.K, s.N), dtype="fp16"),
        "C": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
    },
    constexprs={"GROUP_M": 8},  # which its configurations for AMD leave out
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
    tiles=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N)),
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)  # fmt: skip

addmm = Kernel(
    "flag_gems.ops.addmm:addmm_kernel",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"), "b_ptr": Array(shape=(s.K, s.N), dtype="fp16"),
        "i_ptr": Array(shape=(s.M, s.N), dtype="fp16"), "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "alpha": 1.0, "beta": 1.0, "M": s.M, "N": s.N, "K": s.K, "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N,
        "stride_bn": 1, "stride_im": s.N, "stride_in": 1, "stride_cm": s.N, "stride_cn": 1,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)),
)  # fmt: skip

SCALED = 128  # items of a row or column that have one scale


def scaled_by_block(function, dtype, num_stages):
    """A GEMM with a scale for each row, or block of columns, and 128 items of K; blocks as where it is untuned."""
    return Kernel(
        function,
        sizes={"M": 2048, "N": 2048, "K": 1024},
        arguments=lambda s: {
            "A": Array(shape=(s.M, s.K), dtype=dtype), "B": Array(shape=(s.K, s.N), dtype=dtype, strides=(1, s.K)),
            "C": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
            "As": Array(shape=(s.M, s.K // SCALED), dtype="fp32"),
            "Bs": Array(shape=(s.K // SCALED, s.N // SCALED), dtype="fp32", strides=(1, s.K // SCALED)),
            "M": s.M, "N": s.N, "K": s.K, "group_n": SCALED, "group_k": SCALED, "stride_am": s.K, "stride_ak": 1,
            "stride_bk": 1, "stride_bn": s.K, "stride_cm": s.N, "stride_cn": 1, "stride_As_m": s.K // SCALED,
            "stride_As_k": 1, "stride_Bs_k": 1, "stride_Bs_n": s.K // SCALED,
        },
        constexprs={"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 32},
        grid=lambda s: (cdiv(s.M, 64) * cdiv(s.N, 128),),
        tiles=lambda s: (cdiv(s.M, 64), cdiv(s.N, 128)),
        num_warps=4,
        num_stages=num_stages,
    )  # fmt: skip


block_int8 = scaled_by_block("sglang.kernels.ops.gemm.int8_kernel:_w8a8_block_int8_matmul", "int8", 3)
block_fp8 = scaled_by_block("flag_gems.ops.w8a8_block_fp8_matmul:w8a8_block_fp8_matmul_kernel", "fp8e4", 2)

int_mm = Kernel(
    "torchao.kernel.intmm_triton:matmul_kernel_with_block_pointers",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="int8"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="int8", strides=(1, s.K)),
        "c_ptr": Array(shape=(s.M, s.N), dtype="int32", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": 1, "stride_bn": s.K, "stride_cm": s.N, "stride_cn": 1,
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
    grid=lambda s: (cdiv(s.M, 128) * cdiv(s.N, 128),),
    tiles=lambda s: (cdiv(s.M, 128), cdiv(s.N, 128)),
    num_warps=8,
    num_stages=3,
)  # fmt: skip

bmm = Kernel(
    "flag_gems.ops.bmm:bmm_kernel",
    sizes={"BATCH": 4, "M": 1024, "N": 1024, "K": 1024},
    arguments=lambda s: {
        "A": Array(shape=(s.BATCH, s.M, s.K), dtype="fp16"), "B": Array(shape=(s.BATCH, s.K, s.N), dtype="fp16"),
        "O": Array(shape=(s.BATCH, s.M, s.N), dtype="fp16", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_ab": s.M * s.K, "stride_am": s.K, "stride_ak": 1, "stride_bb": s.K * s.N, "stride_bk": s.N,
        "stride_bn": 1, "stride_ob": s.M * s.N, "stride_om": s.N, "stride_on": 1,
    },
    constexprs={"DIVISIBLE_M": True, "DIVISIBLE_N": True, "DIVISIBLE_K": True},
    grid=lambda s: (cdiv(s.M, s.TILE_M), cdiv(s.N, s.TILE_N), s.BATCH),
)  # fmt: skip

baddbmm = Kernel(
    "flag_gems.ops.baddbmm:baddbmm_kernel",
    sizes={"BATCH": 4, "M": 1024, "N": 1024, "K": 1024},
    arguments=lambda s: {
        "A": Array(shape=(s.BATCH, s.M, s.K), dtype="fp16"), "B": Array(shape=(s.BATCH, s.K, s.N), dtype="fp16"),
        "O": Array(shape=(s.BATCH, s.M, s.N), dtype="fp16", role="out"),
        "bias": Array(shape=(s.BATCH, s.M, s.N), dtype="fp16"), "alpha": 1.0, "beta": 1.0, "M": s.M, "N": s.N,
        "K": s.K,
    },
    constexprs=lambda s: {
        "DIVISIBLE_M": True, "DIVISIBLE_N": True, "DIVISIBLE_K": True, "bias_batch_stride": s.M * s.N,
        "bias_M_stride": s.N, "bias_N_stride": 1,
    },
    grid=lambda s: (cdiv(s.M, s.TILE_M), cdiv(s.N, s.TILE_N), s.BATCH),
)  # fmt: skip
