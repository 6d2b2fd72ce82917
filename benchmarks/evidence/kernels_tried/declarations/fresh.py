"""Kernels of eight packages that no list had: experts, late interaction, losses, scans, sparse convolution."""

import numpy as np

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


def rows(names, array):
    """Strides of a tensor that lies row by row, by parameter."""
    return dict(zip(names, array.item_strides, strict=True))


EXPERTS = 8


def offsets(s, seed):
    """Where the rows of each expert begin, uneven."""
    draw = np.random.default_rng(seed).integers(0, EXPERTS, s.TOKENS)
    return {"offsets": np.cumsum([0, *np.bincount(draw, minlength=EXPERTS)]).astype(np.int32)}


experts = Kernel(
    "moe_ops.grouped_gemm_ops:gmm_forward_kernel",
    sizes={"TOKENS": 2048, "N": 1024, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.TOKENS, s.K), dtype="bf16"), "b_ptr": Array(shape=(EXPERTS, s.N, s.K), dtype="bf16"),
        "c_ptr": Array(shape=(s.TOKENS, s.N), dtype="bf16", role="out"),
        "offsets": Array(shape=(EXPERTS + 1,), dtype="int32", is_index=True),
    },
    constexprs=lambda s: {
        "N": s.N, "K": s.K, "lda": s.K, "ldc": s.N, "TRANS_B": True, "BLOCK_DTYPE": "tl.bfloat16",
    },
    grid=lambda s: (cdiv(s.TOKENS, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N), EXPERTS),
    make_inputs=offsets,
)  # fmt: skip


def max_sim(s):
    q, d = Array(shape=(s.Q, 32, 128), dtype="fp16"), Array(shape=(s.D, s.WORDS, 128), dtype="fp16")
    scores = Array(shape=(s.Q, s.D), dtype="fp32", role="out")
    none = dict.fromkeys(
        ("stride_qm_n", "stride_qm_l", "stride_dm_n", "stride_dm_l", "stride_a_pair", "stride_a_lq"), 0
    )
    return {
        "Q_ptr": q, "D_ptr": d, "q_mask_ptr": None, "d_mask_ptr": None, "scores_ptr": scores, "argmax_ptr": None,
        "Nq": s.Q, "Nd": s.D, "Ld": s.WORDS, **rows(("stride_q_n", "stride_q_l", "stride_q_d"), q),
        **rows(("stride_d_n", "stride_d_l", "stride_d_d"), d), **rows(("stride_s_n", "stride_s_d"), scores), **none,
    }  # fmt: skip


late = Kernel(
    "late_interaction_kernels.forward:_maxsim_fwd_kernel",
    sizes={"Q": 16, "D": 64, "WORDS": 300},
    arguments=max_sim,
    constexprs={
        "Lq": 32, "d": 128, "d_pad": 128, "has_q_mask": False, "has_d_mask": False, "save_argmax": False,
        "normalize": True, "kd_layout": False, "COMPUTE_DTYPE": "tl.float16", "BLOCK_Q": 32, "BLOCK_D": 64,
    },
    grid=lambda s: (s.Q * s.D,),
    tiles=lambda s: (s.Q, s.D),
    num_warps=4,
    num_stages=2,
)  # fmt: skip

clip = Kernel(
    "memeff.clip_loss:clip_fa_grad_kernel",
    sizes={"OWN": 4096, "OTHER": 4096},
    arguments=lambda s: {
        "A_ptr": Array(shape=(s.OWN, 512), dtype="fp16"), "B_ptr": Array(shape=(s.OTHER, 512), dtype="fp16"),
        "div_own_ptr": Array(shape=(s.OWN,), dtype="fp32"), "div_other_ptr": Array(shape=(s.OTHER,), dtype="fp32"),
        "dA_ptr": Array(shape=(s.OWN, 512), dtype="fp32", role="out"), "inv_temperature": 0.1, "grad_scale": 1.0,
        "n_own": s.OWN, "n_other": s.OTHER,
    },
    constexprs={
        "BIDIR": True, "BLOCK_SIZE_I": 64, "BLOCK_SIZE_J": 64, "D_POW2": 512, "D_MODEL": 512,
        "INPUT_PRECISION": "ieee",
    },
    grid=lambda s: (cdiv(s.OWN, 64),),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

HEADS, GROUPS, WIDTH, STATE, CHUNK = 16, 2, 64, 128, 256


def scanned(s):
    chunks = cdiv(s.TOKENS, CHUNK)
    x = Array(shape=(s.BATCH, s.TOKENS, HEADS, WIDTH), dtype="bf16")
    cb = Array(shape=(s.BATCH, chunks, GROUPS, CHUNK, CHUNK), dtype="bf16")
    steps = Array(shape=(s.BATCH, HEADS, chunks, CHUNK), dtype="fp32")
    c = Array(shape=(s.BATCH, s.TOKENS, GROUPS, STATE), dtype="bf16")
    states = Array(shape=(s.BATCH, chunks, HEADS, WIDTH, STATE), dtype="bf16")
    letters = ("batch", "seqlen", "head")
    each = {"dt": steps, "dA_cs": steps}
    return {
        "cb_ptr": cb, "x_ptr": x, "z_ptr": None, "out_ptr": Array(shape=x.shape, dtype="bf16", role="out"),
        "out_x_ptr": None, "dt_ptr": steps, "dA_cumsum_ptr": steps, "seq_idx_ptr": None, "C_ptr": c,
        "prev_states_ptr": states, "D_ptr": Array(shape=(HEADS,), dtype="fp32"), "chunk_size": CHUNK, "hdim": WIDTH,
        "dstate": STATE, "batch": s.BATCH, "seqlen": s.TOKENS, "nheads_ngroups_ratio": HEADS // GROUPS,
        **rows([f"stride_cb_{one}" for one in ("batch", "chunk", "head", "csize_m", "csize_k")], cb),
        **rows([f"stride_x_{one}" for one in (*letters, "hdim")], x),
        **rows([f"stride_out_{one}" for one in (*letters, "hdim")], x),
        **{f"stride_z_{one}": 0 for one in (*letters, "hdim")},
        **{key: value for name, one in each.items()
           for key, value in rows([f"stride_{name}_{a}" for a in ("batch", "head", "chunk", "csize")], one).items()},
        "stride_seq_idx_batch": 0, "stride_seq_idx_seqlen": 0,
        **rows([f"stride_C_{one}" for one in (*letters, "dstate")], c),
        **rows([f"stride_states_{one}" for one in ("batch", "chunk", "head", "hdim", "dstate")], states),
        "stride_D_head": 1,
    }  # fmt: skip


scan = Kernel(
    "mamba_ssm.ops.triton.ssd_chunk_scan:_chunk_scan_fwd_kernel",
    sizes={"BATCH": 2, "TOKENS": 2048},
    arguments=scanned,
    constexprs={
        "IS_CAUSAL": True, "HAS_D": True, "D_HAS_HDIM": False, "HAS_Z": False, "HAS_SEQ_IDX": False,
        "BLOCK_SIZE_DSTATE": 128, "IS_TRITON_22": True, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32,
    },
    grid=lambda s: (cdiv(CHUNK, 64) * cdiv(WIDTH, 64), s.BATCH * cdiv(s.TOKENS, CHUNK), HEADS),
    num_warps=4,
    num_stages=2,
)  # fmt: skip

linear = Kernel(
    "flash_attn.ops.triton.linear:kernel_fwd",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "C": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "ACT_INPUT": None,
        "A": Array(shape=(s.M, s.K), dtype="fp16"), "B": Array(shape=(s.N, s.K), dtype="fp16"),
        "bias": Array(shape=(s.N,), dtype="fp16"), "M": s.M, "N": s.N, "K": s.K, "CACHE_KEY_M": s.M // 32,
        "CACHE_KEY_N": s.N // 32, "CACHE_KEY_K": s.K // 32, "stride_cm": s.N, "stride_am": s.K, "stride_ak": 1,
        "stride_bn": s.K, "stride_bk": 1,
    },
    constexprs={
        "GROUP_M": 8, "A_ROWMAJOR": True, "B_COLMAJOR": True, "BIAS": True, "SAVE_ACT_INPUT": False,
        "ACTIVATION": "squared_relu",
    },
    config={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "SPLIT_K": 1, "num_warps": 8, "num_stages": 3},
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
    tiles=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N)),
)  # fmt: skip

SLOTS = 512  # relative positions of a head


def disentangled(s):
    q = Array(shape=(s.BATCH, HEADS, s.TOKENS, 64), dtype="fp16")
    places = Array(shape=(s.BATCH, HEADS, s.TOKENS, SLOTS), dtype="fp16")
    return {
        "query": q, "key": q, "value": q, "c2p": places, "p2c": places,
        "delta_to_local_slot": Array(shape=(2 * s.TOKENS,), dtype="int32", is_index=True),
        "attention_mask": Array(shape=(s.BATCH, s.TOKENS), dtype="uint8"),
        "output": Array(shape=(s.BATCH, s.TOKENS, HEADS * 64), dtype="fp16", role="out"), "lse_log2": None,
        **{key: value for name in "qkv" for key, value in rows([f"stride_{name}{a}" for a in "bhld"], q).items()},
        **rows(["stride_rb", "stride_rh", "stride_rl"], Array(shape=(s.BATCH, HEADS, s.TOKENS * SLOTS), dtype="fp16")),
        "ACTIVE_SLOTS": SLOTS, "NUM_HEADS": HEADS, "SEQUENCE_LENGTH": s.TOKENS, "POSITION_OFFSET": s.TOKENS,
        "SCORE_SCALE_LOG2": 0.1,
    }  # fmt: skip


def slots(s, seed):
    """Slot of each distance between a query and a key, and which tokens are kept."""
    distance = np.clip(np.arange(2 * s.TOKENS) - s.TOKENS, -SLOTS // 2, SLOTS // 2 - 1) + SLOTS // 2
    kept = np.ones((s.BATCH, s.TOKENS), np.uint8)
    kept[-1, -s.TOKENS // 4 :] = 0
    return {"delta_to_local_slot": distance.astype(np.int32), "attention_mask": kept}


deberta = Kernel(
    "disentangled_flash.kernel:_deberta_attention_forward_kernel",
    sizes={"BATCH": 2, "TOKENS": 1024},
    arguments=disentangled,
    constexprs={
        "HEAD_DIM": 64, "LENGTH_REGIME": 1024, "HAS_C2P": True, "HAS_P2C": True, "USE_PADDING_MASK": True,
        "IS_BF16": False, "IS_FP32": False, "STRICT_FP32": False, "STORE_LSE": False, "BLOCK_M": 64, "BLOCK_N": 64,
    },
    grid=lambda s: (cdiv(s.TOKENS, 64), s.BATCH * HEADS),
    make_inputs=slots,
    num_warps=4,
    num_stages=2,
)  # fmt: skip

TAPS = 27


def neighbours(s, seed):
    """Input row of each tap of each output row, a third of them missing."""
    draw = np.random.default_rng(seed)
    missing = draw.random((TAPS, s.M)) < 0.33
    return {"pairs_ptr": np.where(missing, -1, draw.integers(0, s.M, (TAPS, s.M))).astype(np.int32)}


sparse_conv = Kernel(
    "spconv_triton.pytorch._impl.gemm:_gather_gemm_kernel",
    sizes={"M": 8192, "N": 128, "C": 64},
    arguments=lambda s: {
        "feats_ptr": Array(shape=(s.M, s.C), dtype="fp16"), "weight_ptr": Array(shape=(s.N, TAPS, s.C), dtype="fp16"),
        "pairs_ptr": Array(shape=(TAPS, s.M), dtype="int32", is_index=True),
        "out_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "bias_ptr": None, "pmask_ptr": None,
        "argsort_ptr": None, "M": s.M, "s_fr": s.C, "s_fc": 1, "s_wkv": s.C, "s_wr": 1, "s_wn": TAPS * s.C,
        "s_pk": s.M, "s_pm": 1, "s_or": s.N, "s_oc": 1,
    },
    constexprs=lambda s: {
        "N_dim": s.N, "R_dim": s.C, "kv": TAPS, "HAS_BIAS": False, "IEEE": False, "ALLOW_TF32": False,
        "FP16_ACC": False, "USE_MASK": False,
    },
    config=0,
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
    tiles=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N)),
    make_inputs=neighbours,
)  # fmt: skip


def correlated(s):
    f = Array(shape=(s.BATCH, s.C, s.HIGH, s.WIDE), dtype="fp32")
    out = Array(shape=(s.BATCH, 3, 3, s.HIGH, s.WIDE), dtype="fp32", role="out")
    return {
        "f1_ptr": f, "f2_ptr": f, "out_ptr": out, "B": s.BATCH, "C": s.C, "H": s.HIGH, "W": s.WIDE, "md": 1, "dil": 1,
        **{k: v for name in ("f1", "f2") for k, v in rows([f"stride_{name}_{a}" for a in "bchw"], f).items()},
        **rows([f"stride_out_{a}" for a in ("b", "d1", "d2", "h", "w")], out),
    }  # fmt: skip


correlation = Kernel(
    "localcorr.triton.spatial_corr:_correlation_forward_kernel",
    sizes={"BATCH": 4, "C": 96, "HIGH": 64, "WIDE": 96},
    arguments=correlated,
    constexprs={"BLOCK_H": 16, "BLOCK_W": 16, "BLOCK_C": 16},
    grid=lambda s: (s.BATCH, cdiv(s.HIGH, 16), cdiv(s.WIDE, 16)),
    num_warps=4,
    num_stages=2,
)
