"""Further kernels of SGLang: scaled and LoRA products, prompts, verified drafts, a router, sparse attention."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

OPS = "sglang.kernels.ops"
HEADS, SHARED, WIDTH, BATCH = 16, 4, 128, 4


def cdiv(a, b):
    return -(-a // b)


block_fp8 = Kernel(
    f"{OPS}.gemm.fp8_kernel:_w8a8_block_fp8_matmul",
    sizes={"M": 1024, "N": 4096, "K": 1024},
    arguments=lambda s: {
        "A": Array(shape=(s.M, s.K), dtype="fp8e4b8"), "B": Array(shape=(s.K, s.N), dtype="fp8e4b8", strides=(1, s.K)),
        "C": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "As": Array(shape=(s.M, cdiv(s.K, 128)), dtype="fp32"),
        "Bs": Array(shape=(cdiv(s.N, 128), cdiv(s.K, 128)), dtype="fp32"),
        "M": s.M, "N": s.N, "K": s.K, "group_n": 128, "group_k": 128, "stride_am": s.K, "stride_ak": 1, "stride_bk": 1,
        "stride_bn": s.K, "stride_cm": s.N, "stride_cn": 1, "stride_As_m": cdiv(s.K, 128), "stride_As_k": 1,
        "stride_Bs_k": 1, "stride_Bs_n": cdiv(s.K, 128),
    },
    constexprs=lambda s: {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 32,
        "needs_masking": s.K % 128 != 0,
    },
    grid=lambda s: (cdiv(s.M, 128) * cdiv(s.N, 128),),
    num_warps=4,
    num_stages=2,
)  # fmt: skip


def of_tokens(tokens, heads, role="in"):
    return Array(shape=(tokens, heads, WIDTH), dtype="bf16", role=role)


def starts(name, many=BATCH):
    return {name: Array(shape=(many,), dtype="int32", is_index=True)}


def prompts(s, seed):
    lengths = np.random.default_rng(seed).integers(1, s.TOKENS // BATCH + 1, BATCH)
    return {"B_Start_Loc": (np.cumsum(lengths) - lengths).astype(np.int32), "B_Seqlen": lengths.astype(np.int32)}


prefill = Kernel(
    f"{OPS}.attention.prefill_attention:_fwd_kernel",
    sizes={"TOKENS": 4096},
    arguments=lambda s: {
        "Q": of_tokens(s.TOKENS, HEADS), "K": of_tokens(s.TOKENS, HEADS // SHARED),
        "V": of_tokens(s.TOKENS, HEADS // SHARED), "Out": of_tokens(s.TOKENS, HEADS, "out"), "sm_scale": WIDTH**-0.5,
        **starts("B_Start_Loc"), **starts("B_Seqlen"), "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH,
        "stride_kbs": HEADS // SHARED * WIDTH, "stride_kh": WIDTH, "stride_vbs": HEADS // SHARED * WIDTH,
        "stride_vh": WIDTH, "stride_obs": HEADS * WIDTH, "stride_oh": WIDTH,
    },
    constexprs={
        "kv_group_num": SHARED, "BLOCK_M": 64, "BLOCK_DMODEL": WIDTH, "BLOCK_N": 64, "IS_CAUSAL": True, "Lk": WIDTH,
    },
    grid=lambda s: (BATCH, HEADS, cdiv(s.TOKENS // BATCH, 64)),
    make_inputs=prompts,
    num_warps=4,
    num_stages=1,
)  # fmt: skip

DRAFTED, SPLITS = 4, 8


def drafts(s, seed):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, s.SLOTS // s.SEQUENCES + 1, s.SEQUENCES)
    slots = np.pad(draw.permutation(s.SLOTS)[: lengths.sum()], (0, s.SLOTS - lengths.sum()))
    return {
        "qo_indptr": (np.arange(s.SEQUENCES + 1) * DRAFTED).astype(np.int32),
        "kv_indptr": np.cumsum([0, *lengths]).astype(np.int32), "kv_indices": slots.astype(np.int64),
    }  # fmt: skip


verify = Kernel(
    f"{OPS}.attention.verify_splitkv:_verify_prefix_stage1",
    sizes={"SEQUENCES": 8, "SLOTS": 16384},
    arguments=lambda s: {
        "Q": of_tokens(s.SEQUENCES * DRAFTED, HEADS), "K_Buffer": of_tokens(s.SLOTS, HEADS // SHARED),
        "V_Buffer": of_tokens(s.SLOTS, HEADS // SHARED), "sm_scale": WIDTH**-0.5, "k_scale": 1.0, "v_scale": 1.0,
        **starts("qo_indptr", s.SEQUENCES + 1), **starts("kv_indptr", s.SEQUENCES + 1),
        "kv_indices": Array(shape=(s.SLOTS,), dtype="int64", is_index=True),
        "Att_Out": Array(shape=(s.SEQUENCES, HEADS, SPLITS, 16, WIDTH), dtype="fp32", role="out"),
        "Att_Lse": Array(shape=(s.SEQUENCES, HEADS, SPLITS, 16), dtype="fp32", role="out"),
        "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH, "stride_buf_kbs": HEADS // SHARED * WIDTH,
        "stride_buf_kh": WIDTH, "stride_buf_vbs": HEADS // SHARED * WIDTH, "stride_buf_vh": WIDTH,
        "stride_ob": HEADS * SPLITS * 16 * WIDTH, "stride_oh": SPLITS * 16 * WIDTH, "stride_os": 16 * WIDTH,
        "stride_ol": WIDTH, "stride_lb": HEADS * SPLITS * 16, "stride_lh": SPLITS * 16, "stride_ls": 16,
    },
    constexprs={
        "kv_group_num": SHARED, "N_SPLITS": SPLITS, "L_EXT": 16, "HEAD_DIM": WIDTH, "V_HEAD_DIM": WIDTH,
        "BLOCK_DMODEL": WIDTH, "BLOCK_DV": WIDTH, "BLOCK_N": 64, "MIN_BLOCK_KV": 32,
    },
    grid=lambda s: (s.SEQUENCES, HEADS, SPLITS),
    make_inputs=drafts,
    num_warps=4,
    num_stages=1,
)  # fmt: skip

LORAS, RANK, SEGMENT = 4, 16, 32


def segments(s, seed):
    draw = np.random.default_rng(seed)
    many = s.TOKENS // SEGMENT
    return {
        "seg_indptr": (np.arange(many + 1) * SEGMENT).astype(np.int32),
        "weight_indices": draw.integers(0, LORAS, many).astype(np.int32),
        "lora_ranks": np.full(LORAS, RANK, np.int32), "permutation": draw.permutation(s.TOKENS).astype(np.int32),
    }  # fmt: skip


shrink = Kernel(
    f"{OPS}.lora.dense.chunked_sgmv_shrink:_chunked_lora_shrink_kernel",
    sizes={"TOKENS": 8192, "K": 4096},
    arguments=lambda s: {
        "x": Array(shape=(s.TOKENS, s.K), dtype="bf16"),
        "weights": Array(shape=(LORAS, 3 * RANK, s.K), dtype="bf16"),
        "output": Array(shape=(s.TOKENS, 3 * RANK), dtype="bf16", role="out"),
        **starts("seg_indptr", s.TOKENS // SEGMENT + 1), **starts("weight_indices", s.TOKENS // SEGMENT),
        **starts("lora_ranks", LORAS), **starts("permutation", s.TOKENS), "num_segs": s.TOKENS // SEGMENT,
    },
    constexprs=lambda s: {
        "N": 3 * RANK, "K": s.K, "NUM_SLICES": 3, "BLOCK_M": SEGMENT, "BLOCK_N": 16, "BLOCK_K": 256,
    },
    grid=lambda s: (3, s.TOKENS // SEGMENT),
    make_inputs=segments,
    num_warps=4,
    num_stages=2,
)  # fmt: skip

router = Kernel(
    f"{OPS}.moe.router:fused_moe_router_tensorcore_kernel",
    sizes={"TOKENS": 8192, "K": 4096},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"), "b_ptr": Array(shape=(64, s.K), dtype="bf16"),
        "topk_weights_ptr": Array(shape=(s.TOKENS, 2), dtype="fp32", role="out"),
        "topk_ids_ptr": Array(shape=(s.TOKENS, 2), dtype="int32", role="out"), "bs": s.TOKENS,
        "correction_bias_ptr": None,
    },
    constexprs=lambda s: {
        "num_experts": 64, "topk": 2, "moe_softcapping": 30, "moe_renormalize": False, "is_correction_bias": False,
        "K": s.K, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 256, "stride_am": s.K, "stride_bn": s.K,
        "dp_attn_workaround_flag": False,
    },
    grid=lambda s: (cdiv(s.TOKENS, 32),),
)  # fmt: skip


def chosen(s, seed):
    """Of each token its own neighbourhood of keys, as an indexer prefers, and how many."""
    draw = np.random.default_rng(seed)
    near = np.arange(s.TOKENS)[:, None] * s.KEYS // s.TOKENS + draw.integers(0, s.KEYS // 4, (s.TOKENS, s.TOP))
    return {"idx_ptr": (near % s.KEYS).astype(np.int32), "len_ptr": np.full(s.TOKENS, s.TOP, np.int32)}


sparse_mla = Kernel(
    f"{OPS}.attention.dsa.triton_sparse_mla_prefill:_sparse_mla_prefill_kernel",
    sizes={"TOKENS": 512, "KEYS": 8192, "TOP": 512},
    arguments=lambda s: {
        "q_ptr": Array(shape=(s.TOKENS, HEADS, 576), dtype="bf16"), "kv_ptr": Array(shape=(s.KEYS, 576), dtype="bf16"),
        "idx_ptr": Array(shape=(s.TOKENS, s.TOP), dtype="int32", is_index=True), **starts("len_ptr", s.TOKENS),
        "o_ptr": Array(shape=(s.TOKENS, HEADS, 512), dtype="bf16", role="out"), "sm_scale": 576**-0.5, "topk": s.TOP,
    },
    constexprs={"H": HEADS, "BLOCK_H": 16, "D_QK": 576, "D_V": 512, "BLOCK_N": 32, "IDX64": False},
    grid=lambda s: (s.TOKENS,),
    make_inputs=chosen,
    num_warps=4,
    num_stages=1,
)  # fmt: skip
