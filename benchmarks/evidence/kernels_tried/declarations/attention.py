"""Attention over paged or indexed key-value memory: sglang's decode and conch-triton-kernels' unified attention."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

SPLITS = 8


def cdiv(a, b):
    return -(-a // b)


def slots(s, seed):
    """Requests of different lengths, their tokens anywhere in the key-value memory."""
    draw = np.random.default_rng(seed)
    lengths = s.CONTEXT - draw.integers(0, s.CONTEXT // 4, s.BATCH)
    return {
        "kv_indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        "kv_indices": draw.permutation(s.BATCH * s.CONTEXT).astype(np.int64),
        "num_kv_splits": np.full(s.BATCH, SPLITS, np.int32),
    }


decode = Kernel(
    "sglang.kernels.ops.attention.decode_attention:_fwd_grouped_kernel_stage1",
    sizes={"BATCH": 16, "HEADS": 32, "KV_HEADS": 8, "CONTEXT": 1024},
    arguments=lambda s: {
        "Q": Array(shape=(s.BATCH, s.HEADS, 128), dtype="bf16"),
        "K_Buffer": Array(shape=(s.BATCH * s.CONTEXT, s.KV_HEADS, 128), dtype="bf16"),
        "V_Buffer": Array(shape=(s.BATCH * s.CONTEXT, s.KV_HEADS, 128), dtype="bf16"),
        "sm_scale_withk": 0.088,
        "kv_indptr": Array(shape=(s.BATCH + 1,), dtype="int32", is_index=True),
        "kv_indices": Array(shape=(s.BATCH * s.CONTEXT,), dtype="int64", is_index=True),
        "Att_Out": Array(shape=(s.BATCH, s.HEADS, SPLITS, 128), dtype="fp32", role="out"),
        "Att_Lse": Array(shape=(s.BATCH, s.HEADS, SPLITS), dtype="fp32", role="out"),
        "num_kv_splits": Array(shape=(s.BATCH,), dtype="int32", is_index=True),
        "stride_qbs": s.HEADS * 128, "stride_qh": 128, "stride_buf_kbs": s.KV_HEADS * 128, "stride_buf_kh": 128,
        "stride_buf_vbs": s.KV_HEADS * 128, "stride_buf_vh": 128, "stride_buf_kpage": 0, "stride_buf_ktok": 0,
        "stride_buf_vpage": 0, "stride_buf_vtok": 0, "stride_mid_ob": s.HEADS * SPLITS * 128,
        "stride_mid_oh": SPLITS * 128, "stride_mid_os": 128,
    },
    constexprs=lambda s: {
        "kv_group_num": s.HEADS // s.KV_HEADS, "q_head_num": s.HEADS, "BLOCK_DMODEL": 128, "BLOCK_DPE": 0,
        "BLOCK_DV": 128, "BLOCK_N": 32, "BLOCK_H": 16, "MIN_BLOCK_KV": 32, "logit_cap": 0.0,
        "xai_temperature_len": -1, "Lk": 128, "Lv": 128,
    },
    grid=lambda s: (s.BATCH, cdiv(s.HEADS, min(16, s.HEADS // s.KV_HEADS)), SPLITS),
    make_inputs=slots,
    num_stages=1, options={"waves_per_eu": 1, "matrix_instr_nonkdim": 16, "kpack": 2},
)  # fmt: skip

PAGE, QUERIES = 16, 4  # tokens of a page, query heads of a key-value head


def pages(s, seed):
    """Prompts of different lengths and their pages, anywhere in the cache."""
    draw = np.random.default_rng(seed)
    lengths = s.TOKENS - draw.integers(0, s.TOKENS // 4, s.SEQUENCES)
    starts = np.zeros(s.SEQUENCES + 1, np.int32)
    starts[1:] = np.minimum(np.cumsum(lengths), s.SEQUENCES * s.TOKENS)
    return {
        "block_tables_ptr": draw.permutation(s.SEQUENCES * cdiv(s.TOKENS, PAGE))
        .astype(np.int32)
        .reshape(s.SEQUENCES, -1),
        "seq_lens_ptr": lengths.astype(np.int32),
        "query_start_len_ptr": starts,
    }


def cache(s):
    return Array(shape=(s.SEQUENCES * cdiv(s.TOKENS, PAGE), PAGE, s.KV_HEADS, 128), dtype="bf16")


def cache_strides(s, letter):
    return {
        f"stride_{letter}_cache_0": PAGE * s.KV_HEADS * 128, f"stride_{letter}_cache_1": s.KV_HEADS * 128,
        f"stride_{letter}_cache_2": 128,
    }  # fmt: skip


unified = Kernel(
    "conch.third_party.vllm.unified_attention:kernel_unified_attention_2d",
    sizes={"SEQUENCES": 8, "TOKENS": 512, "KV_HEADS": 8},
    arguments=lambda s: {
        "output_ptr": Array(shape=(s.SEQUENCES * s.TOKENS, s.KV_HEADS * QUERIES, 128), dtype="bf16", role="out"),
        "query_ptr": Array(shape=(s.SEQUENCES * s.TOKENS, s.KV_HEADS * QUERIES, 128), dtype="bf16"),
        "key_cache_ptr": cache(s), "value_cache_ptr": cache(s),
        "block_tables_ptr": Array(shape=(s.SEQUENCES, cdiv(s.TOKENS, PAGE)), dtype="int32", is_index=True),
        "seq_lens_ptr": Array(shape=(s.SEQUENCES,), dtype="int32", is_index=True),
        "alibi_slopes_ptr": None, "scale": 0.088, "k_scale": None, "v_scale": None, "softcap": 0.0,
        "block_table_stride": cdiv(s.TOKENS, PAGE),
        "query_stride_0": s.KV_HEADS * QUERIES * 128, "query_stride_1": 128,
        "output_stride_0": s.KV_HEADS * QUERIES * 128, "output_stride_1": 128,
        **cache_strides(s, "k"), **cache_strides(s, "v"),
        "query_start_len_ptr": Array(shape=(s.SEQUENCES + 1,), dtype="int32", is_index=True),
        "num_seqs": s.SEQUENCES,
    },
    constexprs=lambda s: {
        "num_query_heads": s.KV_HEADS * QUERIES, "num_queries_per_kv": QUERIES, "BLOCK_SIZE": PAGE, "HEAD_SIZE": 128,
        "HEAD_SIZE_PADDED": 128, "USE_ALIBI_SLOPES": False, "USE_SOFTCAP": False, "SLIDING_WINDOW": 0,
        "stride_k_cache_3": 1, "stride_v_cache_3": 1, "BLOCK_Q": 16 // QUERIES,
    },
    grid=lambda s: (s.SEQUENCES * s.TOKENS // (16 // QUERIES) + s.SEQUENCES, s.KV_HEADS),
    make_inputs=pages,
)  # fmt: skip
