"""Triton's tutorials as its repository has them; no package holds them: ``TRITON_TUTORIALS`` names their folder."""

import os

import numpy as np

from swizzle_sim.capture import Array, Kernel

FOLDER = os.environ.get("TRITON_TUTORIALS", ".")


def cdiv(a, b):
    return -(-a // b)


def gemm_arguments(s):
    return {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="fp16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
    }  # fmt: skip


def tiles(s):
    return cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)


def grid(s):
    rows, columns = tiles(s)
    return (rows * columns,)


def flops(s):
    return 2.0 * s.M * s.N * s.K


softmax = Kernel(
    f"{FOLDER}/02-fused-softmax.py:softmax_kernel",
    sizes={"ROWS": 4096, "COLS": 1024, "PROGRAMS": 1216},
    arguments=lambda s: {
        "output_ptr": Array(shape=(s.ROWS, s.COLS), dtype="fp32", role="out"),
        "input_ptr": Array(shape=(s.ROWS, s.COLS), dtype="fp32"),
        "input_row_stride": s.COLS, "output_row_stride": s.COLS, "n_rows": s.ROWS, "n_cols": s.COLS,
    },
    constexprs=lambda s: {"BLOCK_SIZE": 1 << (s.COLS - 1).bit_length(), "num_stages": 2},
    grid=lambda s: (min(s.ROWS, s.PROGRAMS),),
    num_warps=8,
    programs="PROGRAMS",
)  # fmt: skip

matmul = Kernel(
    f"{FOLDER}/03-matrix-multiplication.py:matmul_kernel",
    sizes={"M": 2048, "N": 2048, "K": 2048},
    arguments=gemm_arguments,
    constexprs={"ACTIVATION": ""},
    grid=grid,
    tiles=tiles,
    flops=flops,
)

layer_norm = Kernel(
    f"{FOLDER}/05-layer-norm.py:_layer_norm_fwd_fused",
    sizes={"M": 4096, "N": 2048},
    arguments=lambda s: {
        "X": Array(shape=(s.M, s.N), dtype="fp16"),
        "Y": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "W": Array(shape=(s.N,), dtype="fp16"),
        "B": Array(shape=(s.N,), dtype="fp16"),
        "Mean": Array(shape=(s.M,), dtype="fp32", role="out"),
        "Rstd": Array(shape=(s.M,), dtype="fp32", role="out"),
        "stride": s.N, "N": s.N, "eps": 1e-5,
    },
    constexprs=lambda s: {"BLOCK_SIZE": 1 << (s.N - 1).bit_length()},
    grid=lambda s: (s.M,),
    num_warps=8,
)  # fmt: skip

HEADS_SIZES = {"BATCH": 2, "HEADS": 16, "CONTEXT": 2048}


def heads(s):
    return (s.BATCH * s.HEADS * s.CONTEXT, 64)


attention = Kernel(
    f"{FOLDER}/06-fused-attention.py:_attn_fwd",
    sizes=HEADS_SIZES,
    arguments=lambda s: {
        "sm_scale": 0.125,
        "M": Array(shape=(s.BATCH, s.HEADS, s.CONTEXT), dtype="fp32", role="out"),
        "Z": s.BATCH, "H": s.HEADS,
        "desc_q": Array(shape=heads(s), dtype="fp16"),
        "desc_k": Array(shape=heads(s), dtype="fp16"),
        "desc_v": Array(shape=heads(s), dtype="fp16"),
        "desc_o": Array(shape=heads(s), dtype="fp16", role="out"),
        "N_CTX": s.CONTEXT,
    },
    constexprs={"HEAD_DIM": 64, "FP8_OUTPUT": False, "STAGE": 3, "warp_specialize": False, "IS_HOPPER": False},
    grid=lambda s: (cdiv(s.CONTEXT, s.BLOCK_M), s.BATCH * s.HEADS, 1),
)  # fmt: skip

GROUP = ((1024, 1024, 512), (512, 2048, 512), (256, 256, 1024), (768, 512, 256))  # M, N, K of each product


def group_arrays():
    found = {}
    for i, (m, n, k) in enumerate(GROUP):
        found[f"a{i}"] = Array(shape=(m, k), dtype="fp16")
        found[f"b{i}"] = Array(shape=(k, n), dtype="fp16")
        found[f"c{i}"] = Array(shape=(m, n), dtype="fp16", role="out")
    return found


def pointers(letter):
    return Array(shape=(len(GROUP),), dtype="int64", points_to=tuple(f"{letter}{i}" for i in range(len(GROUP))))


def group_inputs(s, seed):
    return {
        "group_gemm_sizes": np.array(GROUP, np.int32).reshape(-1),
        "g_lds": np.array([(k, n, n) for _, n, k in GROUP], np.int32).reshape(-1),
    }


grouped = Kernel(
    f"{FOLDER}/08-grouped-gemm.py:grouped_matmul_kernel",
    sizes={"PROGRAMS": 128},
    arguments=lambda s: {
        "group_a_ptrs": pointers("a"), "group_b_ptrs": pointers("b"), "group_c_ptrs": pointers("c"),
        "group_gemm_sizes": Array(shape=(3 * len(GROUP),), dtype="int32", is_index=True),
        "g_lds": Array(shape=(3 * len(GROUP),), dtype="int32", is_index=True),
        "group_size": len(GROUP),
        **group_arrays(),
    },
    constexprs=lambda s: {"NUM_SM": s.PROGRAMS},
    grid=lambda s: (s.PROGRAMS,),
    make_inputs=group_inputs,
)  # fmt: skip

persistent = Kernel(
    f"{FOLDER}/09-persistent-matmul.py:matmul_kernel_persistent",
    sizes={"M": 4096, "N": 2048, "K": 512, "PROGRAMS": 304},
    arguments=gemm_arguments,
    constexprs=lambda s: {"NUM_SMS": s.PROGRAMS},
    grid=lambda s: (min(s.PROGRAMS, grid(s)[0]),),
    tiles=tiles,
    programs="PROGRAMS",
    flops=flops,
)

BLOCKS = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}

descriptors = Kernel(
    f"{FOLDER}/09-persistent-matmul.py:matmul_kernel_tma",
    sizes={"M": 2048, "N": 2048, "K": 512},
    arguments=lambda s: {
        "a_desc": Array(shape=(s.M, s.K), dtype="fp16", block=(128, 64)),
        "b_desc": Array(shape=(s.N, s.K), dtype="fp16", block=(128, 64)),
        "c_desc": Array(shape=(s.M, s.N), dtype="fp16", role="out", block=(128, 128)),
        "M": s.M, "N": s.N, "K": s.K,
    },
    constexprs={**BLOCKS, "FP8_OUTPUT": False, "WARP_SPECIALIZE": False},
    grid=grid,
    tiles=tiles,
    flops=flops,
)  # fmt: skip
