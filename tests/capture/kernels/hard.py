"""Hard but legal: tensor descriptors, 3-D grids, atomics, persistent tiles, bit tricks, index reductions."""

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from swizzle_sim.capture import Array, Kernel


@triton.jit
def described(a_ptr, b_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Copy by tensor descriptors, edges clipped by them."""
    a = tl.make_tensor_descriptor(a_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    b = tl.make_tensor_descriptor(b_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    row, col = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    b.store([row, col], a.load([row, col]) * 2)


descriptors = Kernel(
    described,
    sizes={"M": 100, "N": 72},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.N), dtype="fp16"),
        "b_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "M": s.M,
        "N": s.N,
    },
    constexprs={"BLOCK_M": 32, "BLOCK_N": 16},
    grid=lambda s: (triton.cdiv(s.M, 32), triton.cdiv(s.N, 16)),
)


@triton.jit
def cube(x_ptr, y_ptr, X, Y, Z, B: tl.constexpr):
    """Transpose of the first two axes over a 3-D grid; one program in eight copies nothing but its first item."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    offs = tl.arange(0, B)
    rows, cols = x * B + offs, y * B + offs
    mask = (rows[:, None] < X) & (cols[None, :] < Y)
    if (x ^ y ^ z) & 7 == 5:
        tl.store(y_ptr + z * X * Y, 1.0)
    else:
        v = tl.load(x_ptr + z * X * Y + rows[:, None] * Y + cols[None, :], mask=mask)
        tl.store(y_ptr + z * X * Y + tl.trans(cols[None, :]) * X + rows[None, :], tl.trans(v), mask=tl.trans(mask))


threed = Kernel(
    cube,
    sizes={"X": 50, "Y": 70, "Z": 3},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.Z, s.X, s.Y), dtype="fp32"),
        "y_ptr": Array(shape=(s.Z, s.Y, s.X), dtype="fp32", role="out"),
        **s,
    },
    constexprs={"B": 16},
    grid=lambda s: (triton.cdiv(s.X, 16), triton.cdiv(s.Y, 16), s.Z),
)


@triton.jit
def count(x_ptr, bins_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    """Atomics at addresses that do not depend on data: a sum a block of 4 programs, and one for all."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(bins_ptr + tl.arange(0, BLOCK) % 8, x, mask=offs < n)
    tl.atomic_add(sums_ptr + pid // 4, tl.sum(x, axis=0))


atomics = Kernel(
    count,
    sizes={"n": 1000},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.n,), dtype="fp32"),
        "bins_ptr": Array(shape=(8,), dtype="fp32", role="inout"),
        "sums_ptr": Array(shape=(triton.cdiv(s.n, 256),), dtype="fp32", role="inout"),
        "n": s.n,
    },
    constexprs={"BLOCK": 64},
    grid=lambda s: (triton.cdiv(s.n, 64),),
)


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, B: tl.constexpr):
    """GEMM whose programs step through the tiles, each tile found by shifts and masks of a padded order."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, B)
    tiles = tl.cdiv(M, B) * tiles_n
    offs = tl.arange(0, B)
    for tile in range(pid, tiles, PROGRAMS):
        rows = (tile // tiles_n) * B + offs
        cols = (tile % tiles_n) * B + offs
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = tl.load(
                a_ptr + rows[:, None] * K + (k + offs)[None, :], mask=(rows < M)[:, None] & (k + offs < K)[None, :]
            )
            b = tl.load(
                b_ptr + (k + offs)[:, None] * N + cols[None, :], mask=(k + offs < K)[:, None] & (cols < N)[None, :]
            )
            acc = tl.dot(a, b, acc)
        tl.store(
            c_ptr + rows[:, None] * N + cols[None, :],
            acc.to(tl.float16),
            mask=(rows < M)[:, None] & (cols < N)[None, :],
        )


steps = Kernel(
    persistent,
    sizes={"M": 100, "N": 150, "K": 70, "PROGRAMS": 9},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="fp16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        **{name: s[name] for name in "MNK"},
    },
    constexprs=lambda s: {"PROGRAMS": s.PROGRAMS, "B": 16},
    grid=lambda s: (s.PROGRAMS,),
    tiles=lambda s: (triton.cdiv(s.M, 16), triton.cdiv(s.N, 16)),
    programs="PROGRAMS",
)


@triton.jit
def routed(expert_ptr, x_ptr, y_ptr, n, EXPERTS: tl.constexpr, B: tl.constexpr):
    """Rows go where an index tensor says, shifted by how many rows before go to the same expert."""
    pid = tl.program_id(0)
    offs = tl.arange(0, B)
    mine = tl.load(expert_ptr + offs, mask=offs < n, other=-1)
    own = tl.load(expert_ptr + pid)
    before = tl.sum(((mine == own) & (offs < pid)).to(tl.int32), axis=0)
    seen = tl.cumsum((mine == own).to(tl.int32), axis=0)
    last = tl.max(seen, axis=0)
    to = (own * n + before) if last > 1 else own * n
    tl.store(y_ptr + to * 32 + tl.arange(0, 32), tl.load(x_ptr + pid * 32 + tl.arange(0, 32)))


experts = Kernel(
    routed,
    sizes={"n": 23, "EXPERTS": 4},
    arguments=lambda s: {
        "expert_ptr": Array(shape=(s.n,), dtype="int64", is_index=True),
        "x_ptr": Array(shape=(s.n, 32), dtype="bf16"),
        "y_ptr": Array(shape=(s.EXPERTS * s.n, 32), dtype="bf16", role="out"),
        "n": s.n,
    },
    constexprs=lambda s: {"EXPERTS": s.EXPERTS, "B": 32},
    grid=lambda s: (s.n,),
    make_inputs=lambda s, seed: {"expert_ptr": np.random.default_rng(seed).integers(0, s.EXPERTS, s.n)},
)


@triton.jit
def gelu(x_ptr, y_ptr, n, B: tl.constexpr):
    """Elementwise, with a function of the device library."""
    offs = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, 0.5 * x * (1 + libdevice.tanh(x)), mask=offs < n)


library = Kernel(
    gelu,
    sizes={"n": 1000},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.n,), dtype="fp32"),
        "y_ptr": Array(shape=(s.n,), dtype="fp32", role="out"),
        "n": s.n,
    },
    constexprs={"B": 128},
    grid=lambda s: (triton.cdiv(s.n, 128),),
)


@triton.jit
def flagged(flag_ptr, x_ptr, y_ptr, n, B: tl.constexpr):
    """Waits for the flag that a launch before left and sets it again; programs beyond the end touch nothing."""
    pid = tl.program_id(0)
    offs = pid * B + tl.arange(0, B)
    if pid * B < n:
        while tl.load(flag_ptr + pid) == 0:
            pass
        tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)
        tl.store(flag_ptr + pid, 1)


flags = Kernel(
    flagged,
    sizes={"n": 500},
    arguments=lambda s: {
        "flag_ptr": Array(shape=(triton.cdiv(s.n, 64),), dtype="int32", role="inout", is_index=True),
        "x_ptr": Array(shape=(s.n,), dtype="fp16"),
        "y_ptr": Array(shape=(s.n,), dtype="fp16", role="out"),
        "n": s.n,
    },
    constexprs={"B": 64},
    grid=lambda s: (triton.cdiv(s.n, 64) + 3,),
    make_inputs=lambda s, seed: {"flag_ptr": np.ones(triton.cdiv(s.n, 64), np.int32)},
)
