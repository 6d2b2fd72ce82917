"""Row kernels of liger-kernel: cross entropy, RMS norm, rotary embedding and SwiGLU."""

import numpy as np

from swizzle_sim.capture import Array, Kernel

OPS = "liger_kernel.ops"


def power(n):
    return 1 << (n - 1).bit_length()


cross_entropy = Kernel(
    f"{OPS}.cross_entropy:liger_cross_entropy_kernel",
    sizes={"ROWS": 1024, "VOCABULARY": 128256},
    arguments=lambda s: {
        "X_ptr": Array(shape=(s.ROWS, s.VOCABULARY), dtype="bf16", role="inout"), "X_stride": s.VOCABULARY,
        "Y_ptr": Array(shape=(s.ROWS,), dtype="int64", is_index=True), "Y_stride": 1, "weight_ptr": None,
        "loss_ptr": Array(shape=(s.ROWS,), dtype="fp32", role="out"), "z_loss_ptr": None, "loss_stride": 1,
        "token_accuracy_ptr": None, "token_accuracy_stride": 0, "predicted_tokens_ptr": None,
        "predicted_tokens_stride": 0, "n_cols": s.VOCABULARY, "n_non_ignore": float(s.ROWS),
        "sum_non_ignore_weight": float(s.ROWS), "weight_sum": 0.0, "ignore_index": -100, "softcap": None,
    },
    constexprs=lambda s: {
        "lse_square_scale": 0.0, "label_smoothing": 0.0, "reduction": "mean", "RETURN_Z_LOSS": False,
        "RETURN_TOKEN_ACCURACY": False, "RETURN_PREDICTED_TOKENS": False, "BLOCK_SIZE": min(32768, power(s.VOCABULARY)),
        "HAS_WEIGHT": False, "HAS_SOFTCAPPING": False, "HAS_GRADIENTS": True,
    },
    grid=lambda s: (s.ROWS,),
    num_warps=16,
    make_inputs=lambda s, seed: {
        "Y_ptr": np.random.default_rng(seed).integers(0, s.VOCABULARY, s.ROWS),
        "X_ptr": np.random.default_rng(seed).standard_normal((s.ROWS, s.VOCABULARY), np.float32),
    },
)  # fmt: skip

rms_norm = Kernel(
    f"{OPS}.rms_norm:_rms_norm_forward_kernel",
    sizes={"ROWS": 4096, "COLUMNS": 4096},
    arguments=lambda s: {
        "Y_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16", role="out"), "Y_row_stride": s.COLUMNS,
        "X_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"), "X_row_stride": s.COLUMNS,
        "W_ptr": Array(shape=(s.COLUMNS,), dtype="bf16"), "W_row_stride": 1,
        "RSTD_ptr": Array(shape=(s.ROWS,), dtype="fp32", role="out"), "RSTD_row_stride": 1,
        "n_cols": s.COLUMNS, "eps": 1e-6, "offset": 0.0,
    },
    constexprs=lambda s: {"casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": power(s.COLUMNS)},
    grid=lambda s: (s.ROWS,),
    num_warps=8,
)  # fmt: skip

rope = Kernel(
    f"{OPS}.rope:_triton_rope",
    sizes={"BATCH": 4, "CONTEXT": 2048},
    arguments=lambda s: {
        "q_ptr": Array(shape=(s.BATCH, s.CONTEXT, 32, 128), dtype="bf16", role="inout"), "q_row_stride": 32 * 128,
        "k_ptr": Array(shape=(s.BATCH, s.CONTEXT, 8, 128), dtype="bf16", role="inout"), "k_row_stride": 8 * 128,
        "cos": Array(shape=(1, s.CONTEXT, 128), dtype="bf16"), "cos_row_stride": 128,
        "sin": Array(shape=(1, s.CONTEXT, 128), dtype="bf16"), "sin_row_stride": 128, "sl": s.CONTEXT,
    },
    constexprs=lambda s: {
        "bs": s.BATCH, "cos_bs": 1, "n_qh": 32, "n_kh": 8, "hd": 128, "pad_n_qh": 32, "pad_n_kh": 8, "pad_hd": 128,
        "pad_rd": 128, "rd": 128, "BLOCK_SIZE": 32,
    },
    grid=lambda s: (s.BATCH * s.CONTEXT,),
)  # fmt: skip

swiglu = Kernel(
    f"{OPS}.swiglu:_swiglu_forward_kernel",
    sizes={"ROWS": 4096, "COLUMNS": 8192},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"),
        "b_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16"),
        "c_ptr": Array(shape=(s.ROWS, s.COLUMNS), dtype="bf16", role="out"),
        "stride": s.COLUMNS,
        "gate_multiplier": 1.0,
    },
    constexprs=lambda s: {"n_cols": s.COLUMNS, "BLOCK_SIZE": power(s.COLUMNS)},
    grid=lambda s: (s.ROWS,),
    num_warps=8,
)
