"""Declarations of `product_steps_triton.py` for the model: 8-bit and 16-bit floats in four waves, 16-bit in eight."""

from swizzle_benchmarks.lab.product_steps import COLUMNS, SMS, K
from swizzle_sim.capture import Array, Kernel


def declared(dtype, waves):
    """Tiles by ``BLOCK_M``, ``BLOCK_N`` and ``BLOCK_K``, ``HELD`` workgroups for each SM."""

    def rows(s):
        return SMS // COLUMNS * s.HELD * s.BLOCK_M

    return Kernel(
        "product_steps_triton.py:product_steps",
        sizes={"HELD": 1, "STEPS": 64, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "SCALES": 1},
        arguments=lambda s: {
            "a_ptr": Array(shape=(rows(s), K), dtype=dtype),
            "b_ptr": Array(shape=(COLUMNS * s.BLOCK_N, K), dtype=dtype),
            "a_scale_ptr": Array(shape=(K // s.BLOCK_K, rows(s)), dtype="fp32"),
            "b_scale_ptr": Array(shape=(COLUMNS * s.BLOCK_N // 128 + 1, K // s.BLOCK_K), dtype="fp32"),
            "c_ptr": Array(shape=(rows(s), COLUMNS * s.BLOCK_N), dtype="bf16", role="out"),
            "M": rows(s), "STEPS": s.STEPS,
        },
        constexprs=lambda s: {
            "N": COLUMNS * s.BLOCK_N, "K": K, "BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N, "BLOCK_K": s.BLOCK_K,
            "SCALED": s.SCALES == 2,
        },
        grid=lambda s: (SMS * s.HELD,),
        flops=lambda s: 2.0 * SMS * s.HELD * s.STEPS * s.BLOCK_M * s.BLOCK_N * s.BLOCK_K,
        num_warps=waves,
        num_stages=2,
    )  # fmt: skip


fp8_4, bf16_4, bf16_8 = declared("fp8e4", 4), declared("bf16", 4), declared("bf16", 8)
