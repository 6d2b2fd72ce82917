"""tritonBLAS's persistent and stream-K GEMMs; it is in no package, so ``PYTHONPATH`` has to hold its ``include``."""

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


def tiles(s):
    return cdiv(s.M, 256), cdiv(s.N, 256)


def arguments(s):
    return {
        "A": Array(shape=(s.M, s.K), dtype="fp16"),
        "B": Array(shape=(s.K, s.N), dtype="fp16"),
        "C": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "A_scale_ptr": None, "B_scale_ptr": None, "bias_ptr": None,
        "M": s.M, "N": s.N, "K": s.K, "stride_am": s.K, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
        "stride_bias": 0,
    }  # fmt: skip


def constants(s):
    return {
        "BLOCK_SIZE_M": 256, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_SMS": s.PROGRAMS,
        "NUM_XCDS": 8, "CHUNK_SIZE": min(64, max(1, s.PROGRAMS // 8)), "CACHE_MODIFIER_A": None,
        "CACHE_MODIFIER_B": None, "BIAS": False, "EVEN_K": s.K % 64 == 0, "QUANTIZED": False,
    }  # fmt: skip


OPTIONS = {"waves_per_eu": 0, "matrix_instr_nonkdim": 16, "kpack": 1}

persistent = Kernel(
    "tritonblas.kernels.persistent_gemm:persistent_matmul",
    sizes={"M": 4096, "N": 4096, "K": 512, "PROGRAMS": 256},
    arguments=lambda s: {**arguments(s), "stride_ak": 1, "stride_bk": s.N},
    constexprs=constants,
    grid=lambda s: (s.PROGRAMS,),
    num_warps=8,
    options=OPTIONS,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)

stream_k = Kernel(
    "tritonblas.kernels.streamk_gemm:streamk_matmul",
    sizes={"M": 4096, "N": 4864, "K": 512, "PROGRAMS": 304},
    arguments=lambda s: {
        **arguments(s),
        "P": Array(shape=(s.PROGRAMS, 256 * 256), dtype="fp32", role="inout"),
        "locks": Array(shape=(s.PROGRAMS,), dtype="uint8", role="inout"),
    },
    constexprs=lambda s: {**constants(s), "stride_ak": 1, "stride_bk": s.N, "STREAMK_TILES": 0},
    grid=lambda s: (s.PROGRAMS,),
    num_warps=8,
    options=OPTIONS,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)
