"""Kernels of vLLM: LoRA, batch-invariant, quantised and MoE matrix products, prompts, state-space chunks."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

LAYERS = "vllm.model_executor.layers"
LORAS, RANK = 4, 16


def cdiv(a, b):
    return -(-a // b)


def lengths(s, parts, seed):
    """Uneven shares of the tokens, none empty."""
    draw = np.random.default_rng(seed).integers(0, parts, s.TOKENS)
    return np.bincount(draw, minlength=parts), draw


def loras(s, seed):
    of_each, draw = lengths(s, LORAS, seed)
    return {
        "token_indices_sorted_by_lora_ids": np.argsort(draw, kind="stable").astype(np.int32),
        "num_tokens_per_lora": of_each.astype(np.int32),
        "lora_token_start_loc": (np.cumsum(of_each) - of_each).astype(np.int32),
        "lora_ids": np.arange(LORAS, dtype=np.int32),
    }


def lora_tables(s):
    return {
        "token_indices_sorted_by_lora_ids": Array(shape=(s.TOKENS,), dtype="int32", is_index=True),
        "num_tokens_per_lora": Array(shape=(LORAS,), dtype="int32", is_index=True),
        "lora_token_start_loc": Array(shape=(LORAS,), dtype="int32", is_index=True),
        "lora_ids": Array(shape=(LORAS,), dtype="int32", is_index=True),
    }


lora_shrink = Kernel(
    "vllm.lora.ops.triton_ops.lora_shrink_op:_lora_shrink_kernel",
    sizes={"TOKENS": 2048, "K": 4096},
    arguments=lambda s: {
        "input_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"),
        "lora_ptr": Array(shape=(LORAS, RANK, s.K), dtype="bf16"),
        "out_ptr": Array(shape=(1, s.TOKENS, RANK), dtype="fp32", role="inout"),
        "M": s.TOKENS, "N": RANK, "K": s.K, **lora_tables(s), "scaling": 1.0,
        "input_d0_stride": s.K, "input_d1_stride": 1,
        "lora_d0_stride": RANK * s.K, "lora_d1_stride": s.K, "lora_d2_stride": 1,
        "output_d0_stride": s.TOKENS * RANK, "output_d1_stride": RANK, "output_d2_stride": 1,
    },
    constexprs=lambda s: {
        "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 256, "EVEN_K": s.K % 2048 == 0, "SPLIT_K": 8, "GROUP_SIZE_M": 8,
        "SLICE_NUM": 1, "USE_GDC": False, "launch_pdl": False,
    },
    grid=lambda s: (8 * cdiv(s.TOKENS, 32) * cdiv(RANK, 16), 1, LORAS),
    make_inputs=loras,
    num_warps=4,
    num_stages=2,
)  # fmt: skip

lora_expand = Kernel(
    "vllm.lora.ops.triton_ops.lora_expand_op:_lora_expand_kernel",
    sizes={"TOKENS": 2048, "N": 4096},
    arguments=lambda s: {
        "input_ptr": Array(shape=(1, s.TOKENS, RANK), dtype="fp32"),
        "lora_ptr": Array(shape=(LORAS, s.N, RANK), dtype="bf16"),
        "out_ptr": Array(shape=(s.TOKENS, s.N), dtype="bf16", role="inout"),
        "M": s.TOKENS, "N": s.N, "K": RANK, **lora_tables(s), "slice_start_loc": 0,
        "input_d0_stride": s.TOKENS * RANK, "input_d1_stride": RANK, "input_d2_stride": 1,
        "ls_d0_ptr": s.N * RANK, "ls_d1_ptr": RANK, "ls_d2_ptr": 1,
        "output_d0_stride": s.N, "output_d1_stride": 1, "output_hs_ptr": s.N,
    },
    constexprs=lambda s: {
        "BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 16, "EVEN_K": True, "ADD_INPUTS": True, "CAST_TYPE": True,
        "SLICE_NUM": 1, "SAME_STRIDE": True, "USE_GDC": False, "launch_pdl": False,
    },
    grid=lambda s: (cdiv(s.TOKENS, 64) * cdiv(s.N, 128), 1, LORAS),
    make_inputs=loras,
    num_warps=4,
    num_stages=2,
)  # fmt: skip


def matrices(s, names, dtype, out="bf16"):
    """A by rows, B by columns as weights are, C by rows, under their names."""
    a, b, c = names
    return {
        a: Array(shape=(s.M, s.K), dtype=dtype),
        b: Array(shape=(s.K, s.N), dtype=dtype, strides=(1, s.K)),
        c: Array(shape=(s.M, s.N), dtype=out, role="out"),
    }


def strides(s):
    return {
        "stride_am": s.K, "stride_ak": 1, "stride_bk": 1, "stride_bn": s.K, "stride_cm": s.N, "stride_cn": 1,
    }  # fmt: skip


persistent = Kernel(
    "vllm.model_executor.determinism.batch_invariant:matmul_kernel_persistent",
    sizes={"M": 2048, "N": 4096, "K": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        **matrices(s, ("a_ptr", "b_ptr", "c_ptr"), "bf16"), "bias_ptr": None,
        "M": s.M, "N": s.N, "K": s.K, **strides(s), "stride_bias": 1,
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_SMS": s.PROGRAMS,
        "A_LARGE": False, "B_LARGE": False, "C_LARGE": False, "HAS_BIAS": False,
    },
    grid=lambda s: (min(s.PROGRAMS, cdiv(s.M, 128) * cdiv(s.N, 128)),),
    programs="PROGRAMS",
    num_warps=8,
    num_stages=2,
)  # fmt: skip

bmm = Kernel(
    "vllm.model_executor.determinism.batch_invariant:bmm_kernel",
    sizes={"B": 8, "M": 1024, "N": 1024, "K": 512, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.B, s.M, s.K), dtype="bf16"), "b_ptr": Array(shape=(s.B, s.K, s.N), dtype="bf16"),
        "c_ptr": Array(shape=(s.B, s.M, s.N), dtype="bf16", role="out"), "B": s.B, "M": s.M, "N": s.N, "K": s.K,
        "stride_ab": s.M * s.K, "stride_am": s.K, "stride_ak": 1,
        "stride_bb": s.K * s.N, "stride_bk": s.N, "stride_bn": 1,
        "stride_cb": s.M * s.N, "stride_cm": s.N, "stride_cn": 1,
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": s.BLOCK_M, "BLOCK_SIZE_N": s.BLOCK_N, "BLOCK_SIZE_K": s.BLOCK_K,
        "A_LARGE": False, "B_LARGE": False, "C_LARGE": False,
    },
    grid=lambda s: (s.B, cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N)),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

rms_norm = Kernel(
    "vllm.model_executor.determinism.batch_invariant:_rms_norm_kernel",
    sizes={"ROWS": 4096, "COLUMNS": 4096},
    arguments=lambda s: {
        "input_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"),
        "weight_ptr": Array(shape=(s.COLUMNS,), dtype="bf16"),
        "output_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16", role="out"),
        "input_row_stride": s.COLUMNS, "output_row_stride": s.COLUMNS, "n_cols": s.COLUMNS, "eps": 1e-6,
    },
    constexprs=lambda s: {"BLOCK_SIZE": 1024, "HAS_WEIGHT": True},
    grid=lambda s: (s.ROWS,),
)  # fmt: skip

GROUP = 128  # inputs of one scale


def packed(s, zeros):
    """Weights of 4 bits, eight a word along N, with their scales and zeros."""
    return {
        "b_ptr": Array(shape=(s.K, s.N // 8), dtype="int32"),
        "scales_ptr": Array(shape=(s.K // GROUP, s.N), dtype="fp16"),
        "zeros_ptr": Array(shape=(s.K // GROUP, s.N // 8), dtype="int32") if zeros else None,
    }


awq = Kernel(
    f"{LAYERS}.quantization.awq_triton:awq_gemm_kernel",
    sizes={"M": 256, "N": 4096, "K": 2048, "SPLIT_K": 8, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"), **packed(s, zeros=True),
        "c_ptr": Array(shape=(s.SPLIT_K, s.M, s.N), dtype="fp16", role="out"),
        "M": s.M, "N": s.N, "K": s.K, "group_size": GROUP,
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": s.BLOCK_M, "BLOCK_SIZE_N": s.BLOCK_N, "BLOCK_SIZE_K": s.BLOCK_K, "SPLIT_K": s.SPLIT_K,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N), s.SPLIT_K),
)  # fmt: skip

w4a16 = Kernel(
    "vllm.model_executor.kernels.linear.mixed_precision.triton_w4a16:triton_w4a16_gemm_kernel",
    sizes={"M": 512, "N": 4096, "K": 2048, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"), **packed(s, zeros=False),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N // 8, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
        "group_size": GROUP,
    },
    constexprs=lambda s: {
        "HAS_ZP": False, "ZP_BIAS": 8, "BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N, "BLOCK_K": s.BLOCK_K,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N)),
)  # fmt: skip

scaled_mm = Kernel(
    f"{LAYERS}.quantization.compressed_tensors.triton_scaled_mm:scaled_mm_kernel",
    sizes={"M": 1024, "N": 2048, "K": 2048, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128},
    arguments=lambda s: {
        **matrices(s, ("a_ptr", "b_ptr", "c_ptr"), "int8"), "scale_a_ptr": Array(shape=(s.M, 1), dtype="fp32"),
        "scale_b_ptr": Array(shape=(s.N, 1), dtype="fp32"), "bias_ptr": None,
        "M": s.M, "N": s.N, "K": s.K, **strides(s),
    },
    constexprs=lambda s: {
        "ACCUMULATOR_DTYPE": "tl.int32", "BLOCK_SIZE_M": s.BLOCK_M, "BLOCK_SIZE_N": s.BLOCK_N,
        "BLOCK_SIZE_K": s.BLOCK_K,
        "BLOCK_SIZE_SCALE_A": s.BLOCK_M, "BLOCK_SIZE_SCALE_B": s.BLOCK_N,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
)  # fmt: skip

block_fp8 = Kernel(
    f"{LAYERS}.quantization.utils.fp8_utils:_w8a8_triton_block_scaled_mm",
    sizes={"M": 1024, "N": 2048, "K": 2048},
    arguments=lambda s: {
        **matrices(s, "ABC", "fp8e4b8"), "As": Array(shape=(s.M, cdiv(s.K, 128)), dtype="fp32"),
        "Bs": Array(shape=(cdiv(s.N, 128), cdiv(s.K, 128)), dtype="fp32"),
        "M": s.M, "N": s.N, "K": s.K, "group_n": 128, "group_k": 128, **strides(s),
        "stride_As_m": cdiv(s.K, 128), "stride_As_k": 1, "stride_Bs_k": 1, "stride_Bs_n": cdiv(s.K, 128),
    },
    constexprs=lambda s: {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 32},
    grid=lambda s: (cdiv(s.M, 64) * cdiv(s.N, 128),),
    num_warps=4,
    num_stages=2,
)  # fmt: skip

group_quant = Kernel(
    f"{LAYERS}.quantization.utils.fp8_utils:_per_token_group_quant_fp8",
    sizes={"ROWS": 1024, "COLUMNS": 4096},
    arguments=lambda s: {
        "y_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"),
        "y_q_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="fp8e4b8", role="out"),
        "y_s_ptr": Array(shape=(s.ROWS, s.COLUMNS // 128), dtype="fp32", role="out"),
        "group_size": 128, "y_num_columns": s.COLUMNS, "y_row_stride": s.COLUMNS, "eps": 1e-10,
    },
    constexprs=lambda s: {"fp8_min": -224.0, "fp8_max": 224.0, "use_ue8m0": False, "BLOCK": 128},
    grid=lambda s: (s.ROWS * s.COLUMNS // 128,),
    num_warps=1,
    num_stages=1,
)  # fmt: skip

EXPERTS, TOP, BLOCK = 8, 2, 64


def blocks(s):
    """Blocks of 64 slots that the host launches for the worst routing."""
    return cdiv(s.TOKENS * TOP + EXPERTS * (BLOCK - 1), BLOCK)


def routed(s, seed):
    """Slots sorted by expert and padded to blocks, the expert of each block, and the padded length."""
    draw = np.random.default_rng(seed).integers(0, EXPERTS, s.TOKENS * TOP)
    slots, experts = [], []
    for expert in range(EXPERTS):
        mine = np.flatnonzero(draw == expert)
        mine = np.pad(mine, (0, -mine.size % BLOCK), constant_values=s.TOKENS * TOP)
        slots.append(mine)
        experts += [expert] * (mine.size // BLOCK)
    found = np.full(blocks(s) * BLOCK, s.TOKENS * TOP, np.int32)
    together = np.concatenate(slots)
    found[: together.size] = together
    return {
        "sorted_token_ids_ptr": found,
        "expert_ids_ptr": np.pad(np.array(experts, np.int32), (0, blocks(s) - len(experts))),
        "num_tokens_post_padded_ptr": np.array([together.size], np.int32),
    }


fused_moe = Kernel(
    f"{LAYERS}.fused_moe.fused_moe:fused_moe_kernel",
    sizes={"TOKENS": 1024, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"), "b_ptr": Array(shape=(EXPERTS, s.N, s.K), dtype="bf16"),
        "c_ptr": Array(shape=(s.TOKENS, TOP, s.N), dtype="bf16", role="out"),
        "b_bias_ptr": None, "a_scale_ptr": None, "b_scale_ptr": None, "topk_weights_ptr": None,
        "sorted_token_ids_ptr": Array(shape=(blocks(s) * BLOCK,), dtype="int32", is_index=True),
        "expert_ids_ptr": Array(shape=(blocks(s),), dtype="int32", is_index=True),
        "num_tokens_post_padded_ptr": Array(shape=(1,), dtype="int32", is_index=True),
        "N": s.N, "K": s.K, "EM": blocks(s) * BLOCK, "num_valid_tokens": s.TOKENS * TOP,
        "stride_am": s.K, "stride_ak": 1, "stride_be": s.N * s.K, "stride_bk": 1, "stride_bn": s.K,
        "stride_cm": s.N, "stride_cn": 1, "stride_asm": 0, "stride_ask": 0, "stride_bse": 0, "stride_bsk": 0,
        "stride_bsn": 0, "stride_bbe": 0, "stride_bbn": 0,
    },
    constexprs=lambda s: {
        "group_n": 0, "group_k": 0, "naive_block_assignment": False, "BLOCK_SIZE_M": BLOCK, "BLOCK_SIZE_N": 128,
        "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "SPLIT_K": 1, "MUL_ROUTED_WEIGHT": False, "top_k": TOP,
        "compute_type": "tl.bfloat16", "use_fp8_w8a8": False, "use_int8_w8a8": False, "use_int8_w8a16": False,
        "per_channel_quant": False, "HAS_BIAS": False, "SWAP_AB": False, "USE_TD": False,
    },
    grid=lambda s: (blocks(s) * cdiv(s.N, 128),),
    make_inputs=routed,
    num_warps=4,
    num_stages=2,
)  # fmt: skip

batched_moe = Kernel(
    f"{LAYERS}.fused_moe.experts.fused_batched_moe:batched_triton_kernel",
    sizes={"TOKENS": 512, "N": 2048, "K": 1024, "BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64},
    arguments=lambda s: {
        "a_ptr": Array(shape=(EXPERTS, s.TOKENS, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(EXPERTS, s.N, s.K), dtype="bf16"),
        "c_ptr": Array(shape=(EXPERTS, s.TOKENS, s.N), dtype="bf16", role="out"),
        "expert_num_tokens": Array(shape=(EXPERTS,), dtype="int32", is_index=True),
        "max_num_tokens": s.TOKENS, "K": s.K, "N": s.N, "a_scale_ptr": None, "b_scale_ptr": None, "b_zp_ptr": None,
        "stride_ae": s.TOKENS * s.K, "stride_am": s.K, "stride_ak": 1, "stride_be": s.N * s.K, "stride_bk": 1,
        "stride_bn": s.K, "stride_ce": s.TOKENS * s.N, "stride_cm": s.N, "stride_cn": 1, "stride_ase": 0,
        "stride_asm": 0, "stride_ask": 0, "stride_bse": 0, "stride_bsk": 0, "stride_bsn": 0,
    },
    constexprs=lambda s: {
        "compute_type": "tl.bfloat16", "group_n": 0, "group_k": 0, "use_fp8_w8a8": False, "use_int8_w8a16": False,
        "per_act_token_quant": False, "BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N, "BLOCK_K": s.BLOCK_K,
    },
    grid=lambda s: (EXPERTS, cdiv(s.TOKENS, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N)),
    make_inputs=lambda s, seed: {
        "expert_num_tokens": np.random.default_rng(seed).integers(0, s.TOKENS + 1, EXPERTS).astype(np.int32)
    },
)  # fmt: skip

CHUNK, STATE = 256, 128


def chunk_starts(s, seed):
    """Sequences of 1000 tokens, each cut into chunks of 256."""
    ends = [min(at + CHUNK, first + 1000, s.TOKENS) for first in range(0, s.TOKENS, 1000)
            for at in range(first, min(first + 1000, s.TOKENS), CHUNK)]  # fmt: skip
    return {"cu_chunk_seqlens_ptr": np.array([0, *ends], np.int32)}


def chunks(s):
    return len(chunk_starts(s, 0)["cu_chunk_seqlens_ptr"]) - 1


chunk_bmm = Kernel(
    f"{LAYERS}.mamba.ops.ssd_bmm:_bmm_chunk_fwd_kernel",
    sizes={"TOKENS": 8000, "GROUPS": 8},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.TOKENS, s.GROUPS, STATE), dtype="bf16"),
        "b_ptr": Array(shape=(s.TOKENS, s.GROUPS, STATE), dtype="bf16"),
        "out_ptr": Array(shape=(chunks(s), s.GROUPS, CHUNK, CHUNK), dtype="fp32", role="out"),
        "cu_chunk_seqlens_ptr": Array(shape=(chunks(s) + 1,), dtype="int32", is_index=True),
        "stride_a_seqlen": s.GROUPS * STATE, "stride_a_head": STATE,
        "stride_b_seqlen": s.GROUPS * STATE, "stride_b_head": STATE,
        "stride_out_chunk": s.GROUPS * CHUNK * CHUNK, "stride_out_head": CHUNK * CHUNK, "stride_outm": CHUNK,
    },
    constexprs=lambda s: {
        "chunk_size": CHUNK, "K": STATE, "ngroups": s.GROUPS, "stride_ak": 1, "stride_bk": 1, "stride_outn": 1,
        "IS_CAUSAL": False, "dot_dtype": "tl.bfloat16",
    },
    config={"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32},
    grid=lambda s: (2 * 4, chunks(s) * s.GROUPS),
    make_inputs=chunk_starts,
)  # fmt: skip

HEADS, SHARED, WIDTH, BATCH = 16, 4, 128, 4  # query heads, of which SHARED read one head of keys


def prompts(s, seed):
    """Four prompts, each of at most a quarter of the tokens."""
    of_each = np.random.default_rng(seed).integers(1, s.TOKENS // BATCH + 1, BATCH)
    of_each[0] = s.TOKENS // BATCH
    return {"B_Seqlen": of_each.astype(np.int32), "B_Start_Loc": (np.cumsum(of_each) - of_each).astype(np.int32)}


prefill = Kernel(
    "vllm.v1.attention.ops.triton_prefill_attention:_fwd_kernel",
    sizes={"TOKENS": 4096, "BLOCK_M": 64, "BLOCK_N": 64},
    arguments=lambda s: {
        "Q": Array(shape=(s.TOKENS, HEADS, WIDTH), dtype="bf16"),
        "K": Array(shape=(s.TOKENS, HEADS // SHARED, WIDTH), dtype="bf16"),
        "V": Array(shape=(s.TOKENS, HEADS // SHARED, WIDTH), dtype="bf16"),
        "Sinks": None, "sm_scale": 0.0884,
        "B_Start_Loc": Array(shape=(BATCH,), dtype="int32", is_index=True),
        "B_Seqlen": Array(shape=(BATCH,), dtype="int32", is_index=True),
        "Out": Array(shape=(s.TOKENS, HEADS, WIDTH), dtype="bf16", role="out"),
        "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH, "stride_kbs": HEADS // SHARED * WIDTH, "stride_kh": WIDTH,
        "stride_vbs": HEADS // SHARED * WIDTH, "stride_vh": WIDTH, "stride_obs": HEADS * WIDTH, "stride_oh": WIDTH,
    },
    constexprs=lambda s: {
        "kv_group_num": SHARED, "BLOCK_M": s.BLOCK_M, "BLOCK_DMODEL": WIDTH, "BLOCK_N": s.BLOCK_N, "IS_CAUSAL": True,
        "SLIDING_WINDOW_Q": 0, "SLIDING_WINDOW_K": 0, "SINKS_BIAS_KEY0": False, "USE_SINKS": False, "Lk": WIDTH,
    },
    grid=lambda s: (BATCH, HEADS, cdiv(s.TOKENS // BATCH, s.BLOCK_M)),
    make_inputs=prompts,
    num_warps=8,
    num_stages=1,
)  # fmt: skip
