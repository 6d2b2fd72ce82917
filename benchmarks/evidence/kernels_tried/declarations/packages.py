"""Kernels of sixteen packages: quantised, grouped, jagged and tiled products, attention, clustering, a scan."""

import numpy as np

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


def shape(s, *names):
    return tuple(getattr(s, name) for name in names)


def a_b_c(s, names, dtype, out="fp16", columns=True):
    """A by rows, B by columns as weights are or by rows, C by rows, with the strides of all three."""
    a, b, c = names
    strides = (1, s.K) if columns else (s.N, 1)
    return {
        a: Array(shape=(s.M, s.K), dtype=dtype), b: Array(shape=(s.K, s.N), dtype=dtype, strides=strides),
        c: Array(shape=(s.M, s.N), dtype=out, role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": strides[0], "stride_bn": strides[1],
        "stride_cm": s.N, "stride_cn": 1,
    }  # fmt: skip


awq_dequant = Kernel(
    "awq.modules.triton.gemm:awq_dequantize_kernel",
    sizes={"COLUMNS": 512, "ROWS": 4096},
    arguments=lambda s: {
        "qweight_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="int32"),
        "scales_ptr": Array(shape=(s.ROWS // 128, s.COLUMNS * 8), dtype="fp16"),
        "zeros_ptr": Array(shape=(s.ROWS // 128, s.COLUMNS), dtype="int32"), "group_size": 128,
        "result_ptr": Array(shape=(s.ROWS, s.COLUMNS * 8), dtype="fp16", role="out"),
        "num_cols": s.COLUMNS, "num_rows": s.ROWS,
    },
    constexprs={"BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32},
    grid=lambda s: (cdiv(s.COLUMNS, 32), cdiv(s.ROWS, 32)),
)  # fmt: skip

int8_matmul = Kernel(
    "bitsandbytes.triton.int8_matmul_rowwise_dequantize:_int8_matmul_rowwise_dequantize",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        **a_b_c(s, "ABC", "int8"), "bias": None, "state_x_ptr": Array(shape=(s.M,), dtype="fp16"),
        "state_w_ptr": Array(shape=(s.N,), dtype="fp16"), "divfactor": 1.0 / 127**2,
    },
    constexprs={"has_bias": 0, "GROUP_M": 8, "ACC_TYPE": "tl.float32"},
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N), s.SPLIT_K),
)  # fmt: skip

quantize_rows = Kernel(
    "bitsandbytes.triton.quantize_rowwise:_quantize_rowwise",
    sizes={"ROWS": 4096, "COLUMNS": 4096},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="fp16"),
        "output_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="int8", role="out"),
        "output_maxs": Array(shape=(s.ROWS,), dtype="fp16", role="out"), "n_elements": s.ROWS * s.COLUMNS,
    },
    constexprs=lambda s: {"BLOCK_SIZE": s.COLUMNS, "P2": 1 << (s.COLUMNS - 1).bit_length()},
    grid=lambda s: (s.ROWS,),
)  # fmt: skip

lse = Kernel(
    "cut_cross_entropy.cce_lse_forward:_cce_lse_forward_kernel",
    sizes={"B": 2048, "V": 8192, "D": 1024},
    arguments=lambda s: {
        "E": Array(shape=(s.B, s.D), dtype="bf16"), "C": Array(shape=(s.V, s.D), dtype="bf16"),
        "LSE": Array(shape=(s.B,), dtype="fp32", role="inout"), "LA": None,
        "Locks": Array(shape=(cdiv(s.B, 128),), dtype="uint32", role="inout"), "Valids": None, "softcap": None,
        "B": s.B, "V": s.V, "D": s.D, "stride_eb": s.D, "stride_ed": 1, "stride_cv": s.D, "stride_cd": 1,
        "stride_lse_b": 1, "stride_vb": 1, "num_locks": cdiv(s.B, 128), "B_BIN": 11,
    },
    constexprs={"BLOCK_B": 128, "BLOCK_V": 128, "BLOCK_D": 32, "GROUP_B": 8, "DOT_PRECISION": "ieee"},
    grid=lambda s: (cdiv(s.B, 128) * cdiv(s.V, 128),),
)  # fmt: skip

fp8_row = Kernel(
    "fbgemm_gpu.experimental.gemm.triton_gemm.fp8_gemm:_kernel_matmul_fp8_row",
    sizes={"M": 2048, "N": 2048, "K": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        **a_b_c(s, ("A_ptr", "B_ptr", "C_ptr"), "fp8e4b8", "bf16"), "m_key": s.M, "n_key": s.N, "k_key": s.K,
        "A_scale": Array(shape=(s.M,), dtype="fp32"), "B_scale": Array(shape=(s.N,), dtype="fp32"), "Bias": None,
    },
    constexprs=lambda s: {
        "dot_out_dtype": "tl.float32", "allow_tf32": True, "fp8_fast_accum": True, "skip_scaling_a": False,
        "GROUP_M": 8, "USE_BIAS": False, "AB_DTYPE": False, "NUM_SMS": s.PROGRAMS,
    },
    config={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "SPLIT_K": 1},
    grid=lambda s: (min(s.PROGRAMS, cdiv(s.M, 128) * cdiv(s.N, 128)),),
    tiles=lambda s: (cdiv(s.M, 128), cdiv(s.N, 128)),
    programs="PROGRAMS",
)  # fmt: skip

GROUPS = 8


def shares(s, seed):
    """Rows of each group, uneven."""
    draw = np.random.default_rng(seed).integers(0, GROUPS, s.M)
    return np.bincount(draw, minlength=GROUPS)


grouped = Kernel(
    "fbgemm_gpu.experimental.gemm.triton_gemm.grouped_gemm:_fbgemm_grouped_gemm",
    sizes={"M": 2048, "N": 2048, "K": 1024, "PROGRAMS": 304},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="bf16"), "b_ptr": Array(shape=(GROUPS, s.N, s.K), dtype="bf16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"), "scatter_add_indices": None,
        "m_sizes": Array(shape=(GROUPS,), dtype="int32", is_index=True), "M_BUCKET": s.M,
    },
    constexprs=lambda s: {
        "G": GROUPS, "N": s.N, "K": s.K, "NUM_SMS": s.PROGRAMS, "FUSE_SCATTER_ADD": False, "USE_TMA_LOAD": False,
        "USE_TMA_STORE": False, "USE_FAST_ACCUM": False, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64,
        "NUM_CONSUMER_GROUPS": 1,
    },
    grid=lambda s: (s.PROGRAMS,),
    make_inputs=lambda s, seed: {"m_sizes": shares(s, seed).astype(np.int32)},
    num_warps=4,
    num_stages=2,
)  # fmt: skip

jagged_bmm = Kernel(
    "fbgemm_gpu.sll.triton.triton_jagged_bmm:jagged_dense_bmm_kernel",
    sizes={"M": 4096, "N": 512, "K": 512, "LONGEST": 1024, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="bf16"),
        "a_offset_ptr": Array(shape=(GROUPS + 1,), dtype="int64", is_index=True),
        "b_ptr": Array(shape=(GROUPS, s.K, s.N), dtype="bf16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"), "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bl": s.K * s.N, "stride_bk": s.N, "stride_bn": 1,
        "stride_cm": s.N, "stride_cn": 1, "max_seq_len": s.LONGEST,
    },
    constexprs=lambda s: {
        "allow_tf32": True, "BLOCK_SIZE_M": s.BLOCK_M, "BLOCK_SIZE_N": s.BLOCK_N, "BLOCK_SIZE_K": s.BLOCK_K,
    },
    grid=lambda s: (GROUPS, cdiv(s.LONGEST, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N)),
    make_inputs=lambda s, seed: {"a_offset_ptr": np.cumsum([0, *shares(s, seed)]).astype(np.int64)},
)  # fmt: skip


def four_bits(function):
    """GPTQ's matmul4_kernel, eight weights a word along K."""
    return Kernel(
        function,
        sizes={"M": 512, "N": 4096, "K": 1024},
        arguments=lambda s: {
            "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"), "b_ptr": Array(shape=(s.K // 8, s.N), dtype="int32"),
            "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
            "scales_ptr": Array(shape=(s.K // 128, s.N), dtype="fp16"),
            "zeros_ptr": Array(shape=(s.K // 128, s.N // 8), dtype="int32"), "M": s.M, "N": s.N, "K": s.K,
            "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
            "stride_scales_g": s.N, "stride_scales_n": 1, "stride_zeros_g": s.N // 8, "stride_zeros_n": 1,
            "groupsize": 128,
        },
        constexprs={"NO_GROUPS": False},
        grid=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M) * cdiv(s.N, s.BLOCK_SIZE_N),),
    )  # fmt: skip


int4 = four_bits("lightllm.common.basemodel.triton_kernel.dequantize_gemm_int4:matmul4_kernel")
gptq = four_bits("gptq_triton.quant_linear:matmul4_kernel")

BATCH, HEADS, SHARED, WIDTH = 4, 16, 4, 128


def prompts(s, seed):
    lengths = np.random.default_rng(seed).integers(1, s.TOKENS // BATCH + 1, BATCH)
    lengths[0] = s.TOKENS // BATCH
    return {"B_Seqlen": lengths.astype(np.int32), "B_Start_Loc": (np.cumsum(lengths) - lengths).astype(np.int32)}


flash = Kernel(
    "lightllm.models.llama.triton_kernel.context_flashattention_nopad:_fwd_kernel_no_prompt_cache",
    sizes={"TOKENS": 4096, "BLOCK_M": 64, "BLOCK_N": 64},
    arguments=lambda s: {
        "Q": Array(shape=(s.TOKENS, HEADS, WIDTH), dtype="fp16"),
        "K": Array(shape=(s.TOKENS, HEADS // SHARED, WIDTH), dtype="fp16"),
        "V": Array(shape=(s.TOKENS, HEADS // SHARED, WIDTH), dtype="fp16"), "sm_scale": WIDTH**-0.5,
        "B_Start_Loc": Array(shape=(BATCH,), dtype="int32", is_index=True),
        "B_Seqlen": Array(shape=(BATCH,), dtype="int32", is_index=True),
        "Out": Array(shape=(s.TOKENS, HEADS, WIDTH), dtype="fp16", role="out"),
        "stride_qbs": HEADS * WIDTH, "stride_qh": WIDTH, "stride_qd": 1,
        "stride_kbs": HEADS // SHARED * WIDTH, "stride_kh": WIDTH, "stride_kd": 1,
        "stride_vbs": HEADS // SHARED * WIDTH, "stride_vh": WIDTH, "stride_vd": 1,
        "stride_obs": HEADS * WIDTH, "stride_oh": WIDTH, "stride_od": 1, "kv_group_num": SHARED,
    },
    constexprs=lambda s: {"BLOCK_M": s.BLOCK_M, "BLOCK_DMODEL": WIDTH, "BLOCK_N": s.BLOCK_N},
    grid=lambda s: (BATCH, HEADS, cdiv(s.TOKENS // BATCH, s.BLOCK_M)),
    make_inputs=prompts,
    num_warps=8,
    num_stages=1,
)  # fmt: skip

awq_linear = Kernel(
    "lmdeploy.pytorch.kernels.cuda.awq_kernels:awq_linear_kernel",
    sizes={"M": 128, "N": 4096, "K": 4096},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"), "qw_ptr": Array(shape=(s.K, s.N // 8), dtype="int32"),
        "s_ptr": Array(shape=(s.K // 128, s.N), dtype="fp16"),
        "qz_ptr": Array(shape=(s.K // 128, s.N // 8), dtype="int32"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "M": s.M, "stride_am": s.K, "stride_cm": s.N,
    },
    constexprs=lambda s: {
        "N": s.N, "K": s.K, "stride_ak": 1, "stride_wk": s.N // 8, "stride_wn": 1, "stride_sk": s.N, "stride_sn": 1,
        "stride_zk": s.N // 8, "stride_zn": 1, "stride_cn": 1, "SPLIT_K": max(1, s.K // 4096), "NUM_STAGES": 2,
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_K": 128,
    },
    grid=lambda s: (cdiv(s.M, 128) * cdiv(s.N, s.BLOCK_SIZE_N), max(1, s.K // 4096)),
)  # fmt: skip

gemm_fp8 = Kernel(
    "lmdeploy.pytorch.kernels.cuda.blocked_gemm_fp8:_gemm_fp8_kernel",
    sizes={"M": 1024, "N": 2048, "K": 2048},
    arguments=lambda s: {
        "A": Array(shape=(s.M, s.K), dtype="fp8e4b8"), "a_scale_ptr": Array(shape=(s.M, s.K // 128), dtype="fp32"),
        "B": Array(shape=(s.K, s.N), dtype="fp8e4b8", strides=(1, s.K)),
        "b_scale_ptr": Array(shape=(s.K // 128, s.N // 128), dtype="fp32"),
        "C": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "M": s.M, "stride_am": s.K, "stride_ask": 1,
        "stride_cm": s.N,
    },
    constexprs=lambda s: {
        "N": s.N, "K": s.K, "group_ak": 128, "group_bk": 128, "group_bn": 128, "stride_ak": 1,
        "stride_asm": s.K // 128, "stride_bk": 1, "stride_bn": s.K, "stride_bsk": s.N // 128, "stride_bsn": 1,
        "stride_cn": 1, "BLOCK_K": 128, "GROUP_M": 8,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
)  # fmt: skip

mhc = Kernel(
    "transformer_engine.common.triton.mhc:_mhc_projection_fwd_fused",
    sizes={"M": 4096, "K": 8192},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.M, s.K), dtype="bf16"), "phi_ptr": Array(shape=(24, s.K), dtype="bf16"),
        "h_ptr": Array(shape=(s.M, 32), dtype="fp32", role="inout"),
        "ms_ptr": Array(shape=(s.M,), dtype="fp32", role="inout"), "M": s.M, "N": 24, "K": s.K,
        "stride_xm": s.K, "stride_phin": s.K,
    },
    constexprs={
        "stride_xk": 1, "stride_phik": 1, "stride_hm": 32, "stride_hn": 1, "stride_ms": 1, "stride_norm_weight": 1,
        "BLOCK_SIZE_N": 32, "precision": "ieee", "USE_SPLIT_K": True, "USE_TMA": False,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.K, s.BLOCK_SIZE_K)),
)  # fmt: skip


def tiles_of_two(s):
    """A given once, B and C each as two parts along N, as a fused pair of projections calls it."""
    found = {}
    for i in "123":
        for j in "123":
            first = (i, j) == ("1", "1")
            found[f"A{i}{j}"] = Array(shape=(s.M, s.K), dtype="bf16", same_as=None if first else "A11")
            for name, rows, role in (("B", s.K, "in"), ("C", s.M, "out")):
                same = None if i == "1" and j in "12" else f"{name}1{min(int(j), 2)}"
                found[f"{name}{i}{j}"] = Array(shape=(rows, s.N), dtype="bf16", role=role, same_as=same)
    for letter, sizes in (("M", (s.M, 0, 0)), ("N", (s.N, s.N, 0)), ("K", (s.K, 0, 0))):
        found |= {f"{letter}{i}": size for i, size in enumerate(sizes, 1)}
    for name, stride in (("am", s.K), ("ak", 1), ("bk", s.N), ("bn", 1), ("cm", s.N), ("cn", 1)):
        found |= {f"stride_{name}{i}": stride for i in (1, 2, 3)}
    return found


tiled_matmul = Kernel(
    "xformers.ops._triton.tiled_matmul_kernels:_xformers_tiled_matmul_kernel",
    sizes={"M": 2048, "N": 1024, "K": 1024},
    arguments=tiles_of_two,
    constexprs={"ACC_TYPE": "tl.float32"},
    config={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "SPLIT_K": 1, "GROUP_M": 8},
    grid=lambda s: (cdiv(s.M, 128) * 2 * cdiv(s.N, 128), 1),
)  # fmt: skip

kmeans = Kernel(
    "flash_kmeans.assign_euclid_triton:_euclid_assign_kernel",
    sizes={"BATCHES": 2, "POINTS": 16384, "CENTROIDS": 1024, "BLOCK_N": 128, "BLOCK_K": 64},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.BATCHES, s.POINTS, WIDTH), dtype="fp16"),
        "c_ptr": Array(shape=(s.BATCHES, s.CENTROIDS, WIDTH), dtype="fp16"),
        "x_sq_ptr": Array(shape=(s.BATCHES, s.POINTS), dtype="fp32"),
        "c_sq_ptr": Array(shape=(s.BATCHES, s.CENTROIDS), dtype="fp32"),
        "out_ptr": Array(shape=(s.BATCHES, s.POINTS), dtype="int32", role="out"),
    },
    constexprs=lambda s: {
        "B": s.BATCHES, "N": s.POINTS, "K": s.CENTROIDS, "D": WIDTH, "stride_x_b": s.POINTS * WIDTH,
        "stride_x_n": WIDTH, "stride_x_d": 1, "stride_c_b": s.CENTROIDS * WIDTH, "stride_c_k": WIDTH,
        "stride_c_d": 1, "stride_xsq_b": s.POINTS, "stride_xsq_n": 1, "stride_csq_b": s.CENTROIDS,
        "stride_csq_k": 1, "stride_out_b": s.POINTS, "stride_out_n": 1, "BLOCK_N": s.BLOCK_N, "BLOCK_K": s.BLOCK_K,
        "D_PAD": WIDTH,
    },
    grid=lambda s: (cdiv(s.POINTS, s.BLOCK_N), s.BATCHES),
    num_warps=4,
    num_stages=1,
)  # fmt: skip

sinkhorn = Kernel(
    "flash_sinkhorn.kernels.sinkhorn_flashstyle_sqeuclid:_flashsinkhorn_lse_fused_kernel_impl",
    sizes={"N": 8192, "M": 2048},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.N, 64), dtype="fp32"), "y_ptr": Array(shape=(s.M, 64), dtype="fp32"),
        "g_hat_ptr": Array(shape=(s.M,), dtype="fp32"), "log_w_ptr": Array(shape=(s.M,), dtype="fp32"),
        "out_ptr": Array(shape=(s.N,), dtype="fp32", role="out"), "n": s.N, "m": s.M, "stride_x0": 64,
        "stride_x1": 1, "stride_y0": 64, "stride_y1": 1, "stride_out": 1, "coord_scale": 2.0, "eps": 0.1,
        "damping": 1.0, "CACHE_KEY_N": 13, "CACHE_KEY_M": 11,
    },
    constexprs={
        "D": 64, "ALLOW_TF32": True, "DTYPE_ID": 2, "USE_EXP2": True, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64,
    },
    grid=lambda s: (cdiv(s.N, 64),),
    num_warps=4,
    num_stages=2,
)  # fmt: skip

a8w8 = Kernel(
    "flashnn.triton_kernels.gemm_a8w8:_triton_gemm_a8w8_kernel",
    sizes={"M": 1024, "N": 2048, "K": 2048, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    arguments=lambda s: {
        **a_b_c(s, "ABC", "int8"), "alpha_row_ptr": Array(shape=(s.M,), dtype="fp16"),
        "alpha_col_ptr": Array(shape=(s.N,), dtype="fp16"),
    },
    constexprs=lambda s: {"BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N, "BLOCK_K": s.BLOCK_K, "GROUP_SIZE_M": 8},
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

grouped_mm = Kernel(
    "grouped_mm_bf16.kernels:_grouped_mm_3d3d_kernel",
    sizes={"GROUPS": GROUPS, "M": 512, "N": 512, "K": 512, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32},
    arguments=lambda s: {
        "A_ptr": Array(shape=(s.GROUPS, s.M, s.K), dtype="bf16"),
        "B_ptr": Array(shape=(s.GROUPS, s.K, s.N), dtype="bf16"),
        "C_ptr": Array(shape=(s.GROUPS, s.M, s.N), dtype="bf16", role="out"), "M": s.M, "N": s.N,
    },
    constexprs=lambda s: {
        "K": s.K, "stride_ag": s.M * s.K, "stride_am": s.K, "stride_ak": 1, "stride_bg": s.K * s.N,
        "stride_bk": s.N, "stride_bn": 1, "stride_cg": s.M * s.N, "stride_cm": s.N, "stride_cn": 1,
        "OUT_DTYPE": "tl.bfloat16", "ALLOW_TF32": False, "BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N,
        "BLOCK_K": s.BLOCK_K,
    },
    grid=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N), s.GROUPS),
    num_warps=4,
)  # fmt: skip

pairwise = Kernel(
    "flashlib.kernels.distance.triton.pairwise:_pairwise_l2_kernel",
    sizes={"N": 4096, "D": 256},
    arguments=lambda s: {
        "X_ptr": Array(shape=(s.N, s.D), dtype="fp32"), "X_sq_ptr": Array(shape=(s.N,), dtype="fp32"),
        "OUT_ptr": Array(shape=(s.N, s.N), dtype="fp32", role="out"), "GAMMA_ptr": Array(shape=(1,), dtype="fp32"),
        "N": s.N, "D": s.D, "stride_xn": s.D, "stride_xd": 1, "stride_on": s.N, "stride_om": 1,
    },
    constexprs=lambda s: {"N_KEY": s.N, "D_KEY": s.D, "FUSE_OP": 0},
    grid=lambda s: (cdiv(s.N, s.BLOCK_I), cdiv(s.N, s.BLOCK_J)),
)  # fmt: skip

scan = Kernel(
    "accelerated_scan.scalar:forward_scan",
    sizes={"BATCHES": 2, "CHANNELS": 1024, "LENGTH": 8192},
    arguments=lambda s: {
        "forget": Array(shape=shape(s, "BATCHES", "CHANNELS", "LENGTH"), dtype="fp32"),
        "inputs": Array(shape=shape(s, "BATCHES", "CHANNELS", "LENGTH"), dtype="fp32"),
        "states": Array(shape=shape(s, "BATCHES", "CHANNELS", "LENGTH"), dtype="fp32", role="out"),
        "seqlen": s.LENGTH,
    },
    constexprs={"BLOCK": 2048},
    grid=lambda s: (s.BATCHES, s.CHANNELS),
)  # fmt: skip
