"""Kernels with more than sixty parameters: AOTriton's attention, products of experts in triton_kernels."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

HEADS, WIDTH = 16, 224  # three parts, 128, 64 and 32: Triton 3.9 compiles AOTriton's text for no fewer


def cdiv(a, b):
    return -(-a // b)


def tensors(s, names, role="in"):
    """Tensors of batch, head, token and width."""
    return {name: Array(shape=(s.BATCH, HEADS, s.TOKENS, WIDTH), dtype="bf16", role=role) for name in names}


def strides(s, **letters):
    """Strides of each tensor along its axes, which the kernel names by letters."""
    steps = (HEADS * s.TOKENS * WIDTH, s.TOKENS * WIDTH, WIDTH, 1)
    return {f"stride_{name}{axes[i]}": step for name, axes in letters.items() for i, step in enumerate(steps)}


def rows(s, name, role="in"):
    return {name: Array(shape=(s.BATCH * HEADS, s.TOKENS), dtype="fp32", role=role)}


NO_BIAS = dict.fromkeys(("stride_bz", "stride_bh", "stride_bm", "stride_bn"), 0)
UNEVEN = {
    name: Array(shape=(1,), dtype="int32")  # null pointers at a launch: with num_seqlens = 0 none is read
    for name in ("cu_seqlens_q", "cu_seqlens_k", "seq_strides_q", "seq_strides_k")
}

forward = Kernel(
    "fwd_kernel:attn_fwd",
    sizes={"BATCH": 2, "TOKENS": 2048},
    arguments=lambda s: {
        **tensors(s, "QKV"), **tensors(s, ["Out"], "out"), **rows(s, "L", "out"), "Sm_scale": WIDTH**-0.5,
        **dict.fromkeys(("B", "A", "Q_descale", "K_descale", "P_scale", "P_descale", "V_descale")), **UNEVEN, **NO_BIAS,
        **strides(s, q="zhmk", k="zhnk", v="zhkn", o="zhmn"), "stride_az": 0, "stride_ah": 0, "Num_head_q": HEADS,
        "Num_head_k": HEADS, "Num_seqlens": 0, "Max_seqlen_q": s.TOKENS, "Max_seqlen_k": s.TOKENS, "Hdim_qk": WIDTH,
        "Hdim_vo": WIDTH, "dropout_p": 0.0, "philox_offset2": 0, "Window_left": 0, "Window_right": 0, "Num_CU": 304,
        "Batch": s.BATCH,
        **dict.fromkeys(("philox_seed_ptr", "philox_offset1", "philox_seed_output", "philox_offset_output")),
        "encoded_softmax": None, "persistent_atomic_counter": None,
    },
    constexprs={
        "BLOCK_DMODEL": WIDTH, "PADDED_HEAD": False, "ENABLE_DROPOUT": False, "RETURN_ENCODED_SOFTMAX": False,
        "CAUSAL_TYPE": 1, "BIAS_TYPE": 0, "USE_ALIBI": False, "INT8": False, "INT8_KV": False, "USE_P_SCALE": False,
        "PERSISTENT_TYPE": 0, "GRID_CU_MULTIP": 2, "BLOCK_M": 128, "BLOCK_N": 64, "PRE_LOAD_V": False, "NUM_XCDS": 1,
    },
    grid=lambda s: (cdiv(s.TOKENS, 128), HEADS, s.BATCH),
    num_warps=4,
    num_stages=1,
    options={"waves_per_eu": 2},
)  # fmt: skip


def backward(s):
    return {
        **tensors(s, ("Q", "K", "V", "DO")), **rows(s, "L"), **rows(s, "D"), "B": None, "sm_scale": WIDTH**-0.5,
        **strides(s, q="zhmk", k="zhnk", v="zhkn", do="zhmk"), **NO_BIAS, **UNEVEN, "num_head_q": HEADS,
        "num_head_k": HEADS, "num_seqlens": 0, "max_seqlen_q": s.TOKENS, "max_seqlen_k": s.TOKENS, "hdim_qk": WIDTH,
        "hdim_vo": WIDTH, "dropout_p": 0.0, "philox_seed_ptr": None, "philox_offset1": None, "philox_offset2": 0,
        "Window_left": 0, "Window_right": 0,
    }  # fmt: skip


BLOCKS = {
    "BLOCK_DMODEL": WIDTH, "BLOCK_M": 64, "BLOCK_N": 64, "CAUSAL_TYPE": 1, "ENABLE_DROPOUT": False,
    "PADDED_HEAD": False, "BIAS_TYPE": 0, "NUM_XCDS": 1,
}  # fmt: skip

backward_kv = Kernel(
    "bwd_kernel_dk_dv:bwd_kernel_dk_dv",
    sizes={"BATCH": 2, "TOKENS": 1024},
    arguments=lambda s: {
        **backward(s), **tensors(s, ("DK", "DV"), "out"), **strides(s, dk="zhnk", dv="zhkn"),
    },
    constexprs=BLOCKS,
    grid=lambda s: (cdiv(s.TOKENS, 64), HEADS, s.BATCH),
    num_warps=4,
    num_stages=1,
    options={"waves_per_eu": 1},
)  # fmt: skip

backward_q = Kernel(
    "bwd_kernel_dq:bwd_kernel_dq",
    sizes={"BATCH": 2, "TOKENS": 1024},
    arguments=lambda s: {
        **backward(s), **tensors(s, ["DQ"], "out"), "DB": None, **strides(s, dq="zhmk"),
        **dict.fromkeys(("stride_dbz", "stride_dbh", "stride_dbm", "stride_dbn"), 0),
    },
    constexprs=BLOCKS,
    grid=lambda s: (cdiv(s.TOKENS, 64), HEADS, s.BATCH),
    num_warps=4,
    num_stages=1,
    options={"waves_per_eu": 1},
)  # fmt: skip

EXPERTS, TILE = 8, 128


def tiles(s):
    """Tiles of rows at most: those of all tokens, and a ragged one of each expert."""
    return cdiv(s.TOKENS, TILE) + EXPERTS - 1


def experts(s, seed):
    """Tokens of each expert, where they begin, their tiles (expert below, block above 16 bits), and their order."""
    draw = np.random.default_rng(seed).integers(0, EXPERTS, s.TOKENS)
    many = np.bincount(draw, minlength=EXPERTS)
    data = [expert | block << 16 for expert, n in enumerate(many) for block in range(cdiv(int(n), TILE))]
    return {
        "ExptHist": many.astype(np.int32), "ExptOffs": (np.cumsum(many) - many).astype(np.int32),
        "ExptOffsSum": np.array([len(data)], np.int32),
        "ExptData": np.array(data + [-1] * (tiles(s) - len(data)), np.int32),
        "GatherIndx": np.argsort(draw, kind="stable").astype(np.int32),
    }  # fmt: skip


def product(s, x, w, y):
    """Arguments that both products have; each tensor is given twice, once for its descriptor."""
    return {
        "X": x, "XPtr": x, "W": w, "WPtr": w, "Y": y, "YPtr": y, "B": None, "N": s.N, "K": s.K, "batch_size": 1,
        "stride_y_k": 0, "stride_y_z": s.TOKENS * s.N, "stride_y_m": s.N, "stride_y_n": 1,
        "stride_x_z": s.TOKENS * s.K, "stride_x_m": s.K, "stride_x_k": 1, "stride_w_e": s.K * s.N, "stride_w_k": s.N,
        "stride_w_n": 1, "stride_b_e": 0, "NRows": s.TOKENS, "num_idxs": s.TOKENS, "writeback_size": s.TOKENS,
        "grid_n": cdiv(s.N, TILE),
        **dict.fromkeys(("YExpectedScale", "YActualScale", "YChecksumScale", "XScale", "XMxScale", "WScale")),
        **dict.fromkeys(f"stride_{name}" for name in ("y_mx_z", "y_mx_m", "y_mx_n", "x_mx_z", "x_mx_m", "x_mx_k")),
        **dict.fromkeys(("Betas", "Gammas", "ScatterSrcIndx", "WriteBackIndx", "out_alpha")),
        **dict.fromkeys(("activation_fn_args", "epilogue_fn_args"), None),
    }  # fmt: skip


OPTIONS = {
    "W_TRANSPOSE": False, "ACTIVATION_FN": None, "ACTIVATION_REDUCTION_N": 1, "EPILOGUE_FN": None,
    "N_EXPTS_TOT": EXPERTS, "N_EXPTS_ACT": 1, "MAX_NUM_IMPRECISE_ACC": None, "ALLOW_TF32": True,
    "FLEXPOINT_SATURATE_INF": False, "PER_BATCH_SCALE": False, "BLOCK_M": TILE, "BLOCK_N": TILE, "BLOCK_K": 64,
    "GROUP_M": 8, "SWIZZLE_MX_VALUE": None, "SWIZZLE_MX_SCALE": None, "EPILOGUE_SUBTILE": None, "EVEN_K": True,
    "SPLIT_K": 1, "W_CACHE_MODIFIER": "",
}  # fmt: skip

matmul = Kernel(
    "triton_kernels.matmul_ogs_details._matmul_ogs:_matmul_ogs",
    sizes={"TOKENS": 4096, "N": 2048, "K": 1024},
    arguments=lambda s: {
        **product(
            s, Array(shape=(s.TOKENS, s.K), dtype="bf16"), Array(shape=(EXPERTS, s.K, s.N), dtype="bf16"),
            Array(shape=(s.TOKENS, s.N), dtype="bf16", role="out"),
        ),
        "M": None, "WMxScale": None, **dict.fromkeys(("stride_w_mx_e", "stride_w_mx_k", "stride_w_mx_n")),
        "GatherIndx": Array(shape=(s.TOKENS,), dtype="int32", is_index=True),
        "ExptHist": Array(shape=(EXPERTS,), dtype="int32", is_index=True),
        "ExptOffs": Array(shape=(EXPERTS,), dtype="int32", is_index=True),
        "ExptOffsSum": Array(shape=(1,), dtype="int32", is_index=True),
        "ExptData": Array(shape=(tiles(s),), dtype="int32", is_index=True), "grid_m": tiles(s),
    },
    constexprs={**OPTIONS, "XCD_SWIZZLE": 8, "NUM_SMS": 304, "X_TMA_MODE": None, "Y_TMA_MODE": None},
    grid=lambda s: (tiles(s) * cdiv(s.N, TILE),),
    make_inputs=experts,
    num_warps=8,
    num_stages=2,
)  # fmt: skip

persistent = Kernel(
    "triton_kernels.matmul_ogs_details._p_matmul_ogs:_p_matmul_ogs",
    sizes={"TOKENS": 4096, "N": 4096, "K": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        **product(
            s, Array(shape=(1, s.TOKENS, s.K), dtype="bf16", block=(1, TILE, 64)),
            Array(shape=(1, s.K, s.N), dtype="bf16", block=(1, 64, TILE)),
            Array(shape=(1, s.TOKENS, s.N), dtype="bf16", role="out", block=(1, TILE, TILE)),
        ),
        "XPtr": Array(shape=(1, s.TOKENS, s.K), dtype="bf16", same_as="X"),
        "WPtr": Array(shape=(1, s.K, s.N), dtype="bf16", same_as="W"),
        "YPtr": Array(shape=(1, s.TOKENS, s.N), dtype="bf16", role="out", same_as="Y"),
        "M": s.TOKENS, "MxScale": None, **dict.fromkeys(("stride_mx_e", "stride_mx_k", "stride_mx_n")),
        **dict.fromkeys(("GatherIndx", "ExptHist", "ExptOffs", "ExptOffsSum", "ExptData")),
        "grid_m": cdiv(s.TOKENS, TILE),
    },
    constexprs=lambda s: {
        **OPTIONS, "XCD_SWIZZLE": 1, "NUM_SMS": s.PROGRAMS, "X_TMA_MODE": "dense", "Y_TMA_MODE": "dense",
    },
    grid=lambda s: (min(s.PROGRAMS, cdiv(s.TOKENS, TILE) * cdiv(s.N, TILE)),),
    tiles=lambda s: (cdiv(s.TOKENS, TILE), cdiv(s.N, TILE)),
    programs="PROGRAMS",
    num_warps=8,
    num_stages=2,
)  # fmt: skip
