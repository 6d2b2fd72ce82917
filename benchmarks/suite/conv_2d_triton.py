"""Triton source of the suite's 2-D convolution: implicit GEMM over a patch of pixels and a block of output channels.

Source: the implicit-GEMM convolution of cuDNN (arXiv 1410.0759) and MIOpen, written anew for channels-last tensors,
without an order of its own.
"""

import triton
import triton.language as tl


@triton.jit
def conv_2d(
    x_ptr,
    w_ptr,
    y_ptr,
    H,
    W,
    C,
    K,
    R: tl.constexpr,
    S: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_W: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Y = X * W, stride 1, zeros around: X (N, H, W, C), W (R, S, C, K), Y (N, H, W, K), accumulated in fp32."""
    pid = tl.program_id(0)
    num_pid_k = tl.cdiv(K, BLOCK_K)
    patches_w = tl.cdiv(W, BLOCK_W)
    patches_h = tl.cdiv(H, BLOCK_H)
    patch = pid // num_pid_k
    channels = pid % num_pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    image = (patch // (patches_h * patches_w)).to(tl.int64)
    pixel = tl.arange(0, BLOCK_H * BLOCK_W)
    row = patch // patches_w % patches_h * BLOCK_H + pixel // BLOCK_W
    col = patch % patches_w * BLOCK_W + pixel % BLOCK_W
    x_base = image * H * W * C
    acc = tl.zeros((BLOCK_H * BLOCK_W, BLOCK_K), tl.float32)
    for r in range(R):
        for s in range(S):
            from_row = row + r - (R - 1) // 2
            from_col = col + s - (S - 1) // 2
            inside = (from_row >= 0) & (from_row < H) & (from_col >= 0) & (from_col < W)
            place = (from_row * W + from_col) * C
            for start in range(0, C, BLOCK_C):
                depth = start + tl.arange(0, BLOCK_C)
                x_mask = inside[:, None] & (depth[None, :] < C)
                w_mask = (depth[:, None] < C) & (channels[None, :] < K)
                weights = ((r * S + s) * C + depth[:, None]) * K + channels[None, :]
                x = tl.load(x_ptr + x_base + place[:, None] + depth[None, :], mask=x_mask, other=0.0)
                w = tl.load(w_ptr + weights, mask=w_mask, other=0.0)
                acc = tl.dot(x, w, acc)
    y_mask = ((row < H) & (col < W))[:, None] & (channels[None, :] < K)
    y_at = (row * W + col)[:, None] * K + channels[None, :]
    tl.store(y_ptr + image * H * W * K + y_at, acc.to(y_ptr.dtype.element_ty), mask=y_mask)
