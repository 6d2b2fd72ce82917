"""Further kernels of packages on the page: LoRA, extension and decoding, gated and batched products, chunks."""

import numpy as np

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


LORAS, RANK, SEQUENCES = 4, 16, 8


def segments(s, seed):
    """Eight sequences of uneven length, each with an adapter."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, s.TOKENS // SEQUENCES + 1, SEQUENCES)
    return {
        "seg_lens": lengths.astype(np.int32), "seg_indptr": np.cumsum([0, *lengths]).astype(np.int32),
        "weight_indices": draw.integers(0, LORAS, SEQUENCES).astype(np.int32),
        "lora_ranks": np.full(LORAS, RANK, np.int32),
    }  # fmt: skip


def segment_tables():
    return {
        "seg_lens": Array(shape=(SEQUENCES,), dtype="int32", is_index=True),
        "seg_indptr": Array(shape=(SEQUENCES + 1,), dtype="int32", is_index=True),
        "weight_indices": Array(shape=(SEQUENCES,), dtype="int32", is_index=True),
        "lora_ranks": Array(shape=(LORAS,), dtype="int32", is_index=True), "sorted_token_ids": None,
    }  # fmt: skip


lora_b = Kernel(
    "sglang.kernels.ops.lora.dense.sgemm_lora_b:_sgemm_lora_b_kernel",
    sizes={"TOKENS": 2048, "N": 4096},
    arguments=lambda s: {
        "x": Array(shape=(s.TOKENS, RANK), dtype="bf16"), "weights": Array(shape=(LORAS, s.N, RANK), dtype="bf16"),
        "output": Array(shape=(s.TOKENS, s.N), dtype="bf16", role="inout"), "N": s.N, "K": RANK,
        "x_stride_0": RANK, "x_stride_1": 1, "w_stride_0": s.N * RANK, "w_stride_1": RANK, "w_stride_2": 1,
        "output_stride_0": s.N, "output_stride_1": 1, **segment_tables(),
        "scalings": Array(shape=(LORAS,), dtype="fp32"),
    },
    constexprs={"SORTED_BY_ADAPTER": False, "BLOCK_S": 16, "BLOCK_N": 256, "BLOCK_K": 16},
    grid=lambda s: (cdiv(s.TOKENS // SEQUENCES, 16) * cdiv(s.N, 256), SEQUENCES),
    make_inputs=segments,
)  # fmt: skip

lora_a = Kernel(
    "sglang.kernels.ops.lora.dense.sgemm_lora_a:_sgemm_lora_a_kernel",
    sizes={"TOKENS": 2048, "K": 4096},
    arguments=lambda s: {
        "x": Array(shape=(s.TOKENS, s.K), dtype="bf16"), "weights": Array(shape=(LORAS, RANK, s.K), dtype="bf16"),
        "output": Array(shape=(s.TOKENS, RANK), dtype="bf16", role="out"), "N": RANK, "K": s.K, "stack_num": 1,
        "x_stride_0": s.K, "x_stride_1": 1, "w_stride_0": RANK * s.K, "w_stride_1": s.K, "w_stride_2": 1,
        "output_stride_0": RANK, "output_stride_1": 1, **segment_tables(),
    },
    constexprs={"SORTED_BY_ADAPTER": False, "BLOCK_S": 16, "BLOCK_N": 16, "BLOCK_K": 256},
    grid=lambda s: (cdiv(s.TOKENS // SEQUENCES, 16), SEQUENCES),
    make_inputs=segments,
)  # fmt: skip

HEADS, SHARED, WIDTH, BATCH = 16, 4, 128, 4


def prefixes(s, seed):
    """Four sequences: new tokens of each, and the slots that hold its older ones."""
    draw = np.random.default_rng(seed)
    new = draw.integers(1, s.TOKENS // BATCH + 1, BATCH)
    new[0] = s.TOKENS // BATCH
    old = draw.integers(1, s.SLOTS // BATCH + 1, BATCH)
    slots = np.pad(draw.permutation(s.SLOTS)[: old.sum()], (0, s.SLOTS - old.sum()))
    return {
        "qo_indptr": np.cumsum([0, *new]).astype(np.int32), "kv_indptr": np.cumsum([0, *old]).astype(np.int32),
        "kv_indices": slots.astype(np.int64),
    }  # fmt: skip


def of_tokens(tokens, heads, role="in"):
    return Array(shape=(tokens, heads, WIDTH), dtype="bf16", role=role)


KV = HEADS // SHARED * WIDTH

extend = Kernel(
    "sglang.kernels.ops.attention.extend_attention:_fwd_kernel",
    sizes={"TOKENS": 2048, "SLOTS": 2048},
    arguments=lambda s: {
        "Q_Extend": of_tokens(s.TOKENS, HEADS), "K_Extend": of_tokens(s.TOKENS, HEADS // SHARED),
        "V_Extend": of_tokens(s.TOKENS, HEADS // SHARED), "O_Extend": of_tokens(s.TOKENS, HEADS, "out"),
        "LSE_Extend": None, "K_Buffer": of_tokens(s.SLOTS, HEADS // SHARED),
        "V_Buffer": of_tokens(s.SLOTS, HEADS // SHARED),
        "qo_indptr": Array(shape=(BATCH + 1,), dtype="int32", is_index=True),
        "kv_indptr": Array(shape=(BATCH + 1,), dtype="int32", is_index=True),
        "kv_indices": Array(shape=(s.SLOTS,), dtype="int64", is_index=True),
        "mask_ptr": None, "mask_indptr": None, "sink_ptr": None, "window_kv_offset_ptr": None,
        "sm_scale": WIDTH**-0.5, "k_scale": 1.0, "v_scale": 1.0, "kv_group_num": SHARED,
        "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH, "stride_kbs": KV, "stride_kh": WIDTH, "stride_vbs": KV,
        "stride_vh": WIDTH, "stride_obs": HEADS * WIDTH, "stride_oh": WIDTH, "stride_lse_bs": 0, "stride_lse_h": 0,
        "stride_buf_kbs": KV, "stride_buf_kh": WIDTH, "stride_buf_vbs": KV, "stride_buf_vh": WIDTH,
        "stride_buf_kpage": KV, "stride_buf_ktok": 0, "stride_buf_vpage": KV, "stride_buf_vtok": 0,
        "compact_batch_size": BATCH,
    },
    constexprs={
        "SLIDING_WINDOW_SIZE": -1, "logit_cap": 0.0, "xai_temperature_len": -1, "Lq": WIDTH, "Lv": WIDTH,
        "BLOCK_DMODEL": WIDTH, "BLOCK_DPE": 0, "BLOCK_DV": WIDTH, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_N_PREFIX": 64,
        "USE_CUSTOM_MASK": False, "IS_CAUSAL": True, "SKIP_PREFIX_CUSTOM_MASK": True, "STORE_LSE": False,
        "SKIP_PREFIX": False, "SKIP_EXTEND": False, "STORE_TRANSPOSE": True, "HAS_SINK": False,
        "USE_COMPACT_TILE_GRID": False, "USE_EXP2": False, "USE_FP8_PREFIX": False, "USE_FP8_EXTEND": False,
        "FP8_MAX": 1.0,
    },
    grid=lambda s: (BATCH, HEADS, cdiv(s.TOKENS // BATCH, 64)),
    make_inputs=prefixes,
    num_warps=4,
    num_stages=1,
)  # fmt: skip


def caches(s, seed):
    """Lengths of the sequences, the slots that hold their keys, four parts of each."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, s.SLOTS // s.SEQUENCES + 1, s.SEQUENCES)
    slots = np.pad(draw.permutation(s.SLOTS)[: lengths.sum()], (0, s.SLOTS - lengths.sum()))
    return {
        "kv_indptr": np.cumsum([0, *lengths]).astype(np.int32), "kv_indices": slots.astype(np.int64),
        "num_kv_splits": np.full(s.SEQUENCES, 4, np.int32),
    }  # fmt: skip


decode = Kernel(
    "sglang.kernels.ops.attention.decode_attention:_fwd_kernel_stage1",
    sizes={"SEQUENCES": 16, "SLOTS": 8192},
    arguments=lambda s: {
        "Q": of_tokens(s.SEQUENCES, HEADS), "K_Buffer": of_tokens(s.SLOTS, HEADS),
        "V_Buffer": of_tokens(s.SLOTS, HEADS),
        "sm_scale_withk": WIDTH**-0.5, "kv_indptr": Array(shape=(s.SEQUENCES + 1,), dtype="int32", is_index=True),
        "kv_indices": Array(shape=(s.SLOTS,), dtype="int64", is_index=True),
        "Att_Out": Array(shape=(s.SEQUENCES, HEADS, 4, WIDTH), dtype="fp32", role="out"),
        "Att_Lse": Array(shape=(s.SEQUENCES, HEADS, 4), dtype="fp32", role="out"),
        "num_kv_splits": Array(shape=(s.SEQUENCES,), dtype="int32", is_index=True),
        "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH, "stride_buf_kbs": HEADS * WIDTH, "stride_buf_kh": WIDTH,
        "stride_buf_vbs": HEADS * WIDTH, "stride_buf_vh": WIDTH, "stride_buf_kpage": HEADS * WIDTH,
        "stride_buf_ktok": 0, "stride_buf_vpage": HEADS * WIDTH, "stride_buf_vtok": 0,
        "stride_mid_ob": HEADS * 4 * WIDTH, "stride_mid_oh": 4 * WIDTH, "stride_mid_os": WIDTH,
    },
    constexprs={
        "kv_group_num": 1, "BLOCK_DMODEL": WIDTH, "BLOCK_DV": WIDTH, "BLOCK_N": 8, "MIN_BLOCK_KV": 32,
        "logit_cap": 0.0, "Lk": WIDTH, "Lv": WIDTH, "xai_temperature_len": -1, "PAGE_SIZE": 1,
    },
    grid=lambda s: (s.SEQUENCES, HEADS, 4),
    make_inputs=caches,
    num_warps=4,
    num_stages=2,
)  # fmt: skip

gated = Kernel(
    "aiter.ops.triton._triton_kernels.gemm_a16w16_gated:_gemm_a16_w16_gated_kernel",
    sizes={"M": 1024, "N": 4096, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="bf16", strides=(1, s.K)),
        "c_ptr": Array(shape=(s.M, s.N // 2), dtype="bf16", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": 1, "stride_bn": s.K, "stride_cm": s.N // 2, "stride_cn": 1,
    },
    constexprs={
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 4, "cache_modifier": "",
        "activation": None, "use_activation": False,
    },
    grid=lambda s: (cdiv(s.M, 128) * cdiv(s.N, 128),),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

batched = Kernel(
    "aiter.ops.triton._triton_kernels.batched_gemm_bf16:_batched_gemm_bf16_kernel",
    sizes={"BATCH": 4, "M": 1024, "N": 1024, "K": 512},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.BATCH, s.M, s.K), dtype="bf16"),
        "b_ptr": Array(shape=(s.BATCH, s.K, s.N), dtype="bf16", strides=(s.N * s.K, 1, s.K)),
        "c_ptr": Array(shape=(s.BATCH, s.M, s.N), dtype="bf16", role="out"), "bias_ptr": None,
        "M": s.M, "N": s.N, "K": s.K, "stride_ab": s.M * s.K, "stride_am": s.K, "stride_ak": 1,
        "stride_bb": s.N * s.K, "stride_bk": 1, "stride_bn": s.K, "stride_cb": s.M * s.N, "stride_cm": s.N,
        "stride_cn": 1, "stride_biasb": 0,
    },
    constexprs={
        "HAS_BIAS": False, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 4,
    },
    grid=lambda s: (s.BATCH, cdiv(s.M, 128) * cdiv(s.N, 128)),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

CHUNK = 64


def chunked(s, width, dtype="bf16", role="in"):
    return Array(shape=(s.BATCH, s.TIME, HEADS, *width), dtype=dtype, role=role)


kkt = Kernel(
    "fla.ops.common.chunk_scaled_dot_kkt:chunk_scaled_dot_kkt_fwd_kernel",
    sizes={"BATCH": 2, "TIME": 2048},
    arguments=lambda s: {
        "k": chunked(s, (WIDTH,)), "g": chunked(s, (), "fp32"), "beta": chunked(s, (), "fp32"),
        "A": chunked(s, (CHUNK,), "fp32", "out"), "cu_seqlens": None, "chunk_indices": None, "T": s.TIME,
    },
    constexprs={"H": HEADS, "HV": HEADS, "K": WIDTH, "BT": CHUNK},
    grid=lambda s: (cdiv(s.TIME, CHUNK), s.BATCH * HEADS),
)  # fmt: skip

w_u = Kernel(
    "fla.ops.delta_rule.wy_fast:recompute_w_u_fwd_kernel",
    sizes={"BATCH": 2, "TIME": 2048},
    arguments=lambda s: {
        "k": chunked(s, (WIDTH,)), "v": chunked(s, (WIDTH,)), "beta": chunked(s, ()),
        "w": chunked(s, (WIDTH,), role="out"), "u": chunked(s, (WIDTH,), role="out"), "A": chunked(s, (CHUNK,)),
        "cu_seqlens": None, "chunk_indices": None, "T": s.TIME,
    },
    constexprs={"H": HEADS, "K": WIDTH, "V": WIDTH, "BT": CHUNK, "BK": 64, "BV": 64},
    grid=lambda s: (cdiv(s.TIME, CHUNK), s.BATCH * HEADS),
)  # fmt: skip

mv = Kernel(
    "flag_gems.ops.mv:mv_kernel",
    sizes={"N": 8192, "M": 4096},
    arguments=lambda s: {
        "A": Array(shape=(s.N, s.M), dtype="fp16"), "B": Array(shape=(s.M,), dtype="fp16"),
        "C": Array(shape=(s.N,), dtype="fp16", role="out"), "N": s.N, "M": s.M, "stride_an": s.M, "stride_am": 1,
        "stride_bm": 1, "stride_cn": 1,
    },
    grid=lambda s: (cdiv(s.N, s.BLOCK_N),),
)  # fmt: skip

layer_norm = Kernel(
    "liger_kernel.ops.layer_norm:_layer_norm_forward_kernel",
    sizes={"ROWS": 4096, "COLUMNS": 4096},
    arguments=lambda s: {
        "Y_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16", role="out"), "Y_row_stride": s.COLUMNS,
        "X_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"), "X_row_stride": s.COLUMNS,
        "W_ptr": Array(shape=(s.COLUMNS,), dtype="bf16"), "W_row_stride": 1,
        "B_ptr": Array(shape=(s.COLUMNS,), dtype="bf16"), "B_row_stride": 1,
        "Mean_ptr": Array(shape=(s.ROWS,), dtype="fp32", role="out"), "Mean_row_stride": 1,
        "RSTD_ptr": Array(shape=(s.ROWS,), dtype="fp32", role="out"), "RSTD_row_stride": 1,
        "n_cols": s.COLUMNS, "eps": 1e-6,
    },
    constexprs=lambda s: {"BLOCK_SIZE": 1 << (s.COLUMNS - 1).bit_length()},
    grid=lambda s: (s.ROWS,),
    num_warps=8,
)  # fmt: skip
