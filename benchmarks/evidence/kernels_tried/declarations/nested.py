"""A kernel of torchao that is defined inside a function, alone in its file: others do not fail with it."""

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


block_fp8 = Kernel(
    "torchao.kernel.blockwise_quantization:blockwise_fp8_gemm_kernel",
    sizes={"M": 1024, "N": 2048, "K": 2048},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp8e4b8"), "b_ptr": Array(shape=(s.N, s.K), dtype="fp8e4b8"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "a_s_ptr": Array(shape=(s.M, s.K // 128), dtype="fp32"),
        "b_s_ptr": Array(shape=(s.N // 128, s.K // 128), dtype="fp32"), "M": s.M,
    },
    constexprs=lambda s: {"N": s.N, "K": s.K, "M_BUCKET": 10, "BLOCK_SIZE_K": 128},
    grid=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)),
)  # fmt: skip
