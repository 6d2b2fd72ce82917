"""Remaps and kernels as people write them. Nothing may import this file: it ends the process."""

import sys

import triton
import triton.language as tl

sys.exit("this file was run")

GROUP: tl.constexpr = 4


# Each XCD gets one run of ids; where the division leaves a rest, the first runs are one longer.
# swizzle-check: GRID_MN=num_pids
@triton.jit
def remap_xcd(pid, GRID_MN, NUM_XCDS: tl.constexpr = 8):
    per_xcd = tl.cdiv(GRID_MN, NUM_XCDS)
    tall = GRID_MN % NUM_XCDS
    tall = NUM_XCDS if tall == 0 else tall
    xcd = pid % NUM_XCDS
    local = pid // NUM_XCDS
    if xcd < tall:
        return xcd * per_xcd + local
    return tall * per_xcd + (xcd - tall) * (per_xcd - 1) + local


# swizzle-check: GRID_MN=num_pids
@triton.jit
def remap_naive(pid, GRID_MN, NUM_XCDS: tl.constexpr = 8):
    return pid % NUM_XCDS * (GRID_MN // NUM_XCDS) + pid // NUM_XCDS


# swizzle-check: ROWS=1,3
@triton.jit
def grouped(pid, num_pid_m, num_pid_n, ROWS: tl.constexpr = 1):
    if ROWS == 1:
        pid_m = pid // num_pid_n
        pid_n = pid % num_pid_n
    else:
        in_group = ROWS * num_pid_n
        first = pid // in_group * ROWS
        rows = min(num_pid_m - first, ROWS)
        tl.assume(rows > 0)
        pid_m = first + pid % in_group % rows
        pid_n = pid % in_group // rows
    return pid_m, pid_n


@triton.jit
def gemm(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_XCDS: tl.constexpr = 8, ACTIVATION: tl.constexpr = "",
):  # fmt: skip
    pid = tl.program_id(axis=0).to(tl.int64)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid = remap_xcd(pid, num_pid_m * num_pid_n, NUM_XCDS=NUM_XCDS)
    pid_m, pid_n = grouped(pid, num_pid_m, num_pid_n, GROUP)
    tl.assume(pid_m >= 0)
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    acc = tl.load(a_ptr + rows * stride_am)
    pid_k = pid_n * 2
    tl.store(c_ptr + rows * N + pid_n, acc + pid_k)


# The count of columns is rounded down, so the last, ragged column is nobody's.
# swizzle-check: BLOCK_M=16 BLOCK_N=16
@triton.jit
def rounded_down(c_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)  # noqa: F841 - what the launch is made of
    num_pid_n = tl.cdiv(N, BLOCK_N)  # noqa: F841
    columns = max(N // BLOCK_N, 1)
    pid_m = pid // columns
    pid_n = pid % columns
    tl.store(c_ptr + pid_m * N + pid_n, 1)


@triton.jit
def planes(c_ptr, N, ROWS: tl.constexpr = 3):
    column = tl.program_id(0)
    row = tl.program_id(1)
    pid_m, pid_n = tl.swizzle2d(column, row, tl.num_programs(0), tl.num_programs(1), ROWS)
    tl.store(c_ptr + pid_m * N + pid_n, 1)


@triton.jit
def softmax(x_ptr, N):
    row = tl.program_id(0)
    tl.store(x_ptr + row * N, 1)


@triton.jit
def persistent(c_ptr, M, N, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(N, BLOCK)
    for tile in tl.range(pid, tl.cdiv(M, BLOCK) * num_pid_n, PROGRAMS):
        pid_m, pid_n = grouped(tile, tl.cdiv(M, BLOCK), num_pid_n)
        tl.store(c_ptr + pid_m * N + pid_n, 1)


@triton.jit
def by_table(x_ptr, table_ptr):
    pid = tl.program_id(0)
    pid = tl.load(table_ptr + pid)
    tl.store(x_ptr + pid, 1)


@triton.jit
def leaves_early(x_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    pid = pid % 8 * (n // 8) + pid // 8
    tl.store(x_ptr + pid, 1)


@triton.jit
def by_float(x_ptr, n):
    pid = tl.program_id(0)
    pid = (pid * 1.5).to(tl.int32)
    tl.store(x_ptr + pid, 1)


@triton.jit
def as_it_came(x_ptr, n):
    pid = tl.program_id(0)
    tl.store(x_ptr + pid, 1)


# swizzle-check: off
@triton.jit
def switched_off(pid):
    return 0
