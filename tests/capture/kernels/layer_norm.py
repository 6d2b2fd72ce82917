"""The Triton documentation's layer norm, written anew: forward, and the input gradient with locks."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def forward(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, N, eps, BLOCK: tl.constexpr):
    """One row a program, in three passes over it."""
    row = tl.program_id(0)
    y_ptr += row * stride
    x_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        var += x * x
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def weight_gradient(dy_ptr, dw_ptr, lock_ptr, stride, N, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Partial sums of rows into GROUPS buffers, each under a lock."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    group = row % GROUPS
    part = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0)
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    count = tl.load(lock_ptr + GROUPS + group)
    if count == 0:
        tl.atomic_xchg(lock_ptr + GROUPS + group, 1)
    else:
        part += tl.load(dw_ptr + group * N + cols, mask=mask)
    tl.store(dw_ptr + group * N + cols, part, mask=mask)
    tl.atomic_xchg(lock_ptr + group, 0)


def _row_block(s):
    return {"BLOCK": min(256, triton.next_power_of_2(s.N))}


kernel = Kernel(
    forward,
    name="layer_norm",
    sizes={"M": 40, "N": 700},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.M, s.N), dtype="fp16"),
        "y_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "w_ptr": Array(shape=(s.N,), dtype="fp16"),
        "b_ptr": Array(shape=(s.N,), dtype="fp16"),
        "mean_ptr": Array(shape=(s.M,), dtype="fp32", role="out"),
        "rstd_ptr": Array(shape=(s.M,), dtype="fp32", role="out"),
        "stride": s.N,
        "N": s.N,
        "eps": 1e-5,
    },
    constexprs=_row_block,
    grid=lambda s: (s.M,),
)
locked = Kernel(
    weight_gradient,
    sizes={"M": 24, "N": 100, "GROUPS": 4},
    arguments=lambda s: {
        "dy_ptr": Array(shape=(s.M, s.N), dtype="fp32"),
        "dw_ptr": Array(shape=(s.GROUPS, s.N), dtype="fp32", role="inout"),
        "lock_ptr": Array(shape=(2 * s.GROUPS,), dtype="int32", role="inout"),
        "stride": s.N,
        "N": s.N,
    },
    constexprs=lambda s: {"GROUPS": s.GROUPS, "BLOCK": 128},
    grid=lambda s: (s.M,),
    make_inputs=lambda s, seed: {"lock_ptr": __import__("numpy").zeros(2 * s.GROUPS, "int32")},
)
