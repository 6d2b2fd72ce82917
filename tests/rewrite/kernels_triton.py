"""Kernels as people write them: comments, decorators, helpers, persistent loops. Only workers import this file."""

# Layouts of many hands are what is tested.
# fmt: off

import triton
from triton import language as tl

BLOCK = 16  # a constant of the module, beside the kernels


@triton.jit
def row_of(ROWS: tl.constexpr):
    # the rows of this program
    return tl.program_id(axis=1) * ROWS + tl.arange(0, ROWS)


@triton.jit
def place(width, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = row_of(ROWS)
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    return rows[:, None] * width + cols[None, :], cols[None, :] < width, rows[:, None]


@triton.jit
def add_2d(x_ptr, y_ptr, height, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Add one to every item; where it is comes from a helper of a helper."""
    at, inside, rows = place(width, ROWS, COLS)  # x is fastest
    mask = inside & (rows < height)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) + 1, mask=mask)


@triton.jit
def copy_3d(
    x_ptr, y_ptr,
    nx, ny, nz,  # extents, x fastest
    BX: tl.constexpr,  # items of a program along x
):
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    if tl.program_id(2) < nz:
        at = (tl.program_id(2) * ny + tl.program_id(1)) * nx + x
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=x < nx), mask=x < nx)


@triton.autotune(
    configs=[triton.Config({"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}, num_warps=4)],  # one, for the test
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def persistent(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    NUM_SMS: tl.constexpr  # programs
):
    """C = A B, a program walking over tiles, the stores one tile behind."""
    start_pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_tiles = num_pid_m * num_pid_n
    tile_id_c = start_pid - NUM_SMS

    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS):  # tiles of this program
        pid_m = tile_id // num_pid_n
        pid_n = tile_id % num_pid_n
        rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            inner = k + tl.arange(0, BLOCK_K)
            a_mask = (rows[:, None] < M) & (inner[None, :] < K)
            b_mask = (inner[:, None] < K) & (cols[None, :] < N)
            a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc)
        # the epilogue computes its place anew
        tile_id_c += NUM_SMS
        rows_c = tile_id_c // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)
        cols_c = (tile_id_c % num_pid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (rows_c[:, None] < M) & (cols_c[None, :] < N)
        tl.store(c_ptr + rows_c[:, None] * N + cols_c[None, :], acc.to(tl.float16), mask=mask)


@triton.jit
def rows_while(x_ptr, y_ptr, n_rows, width, COLS: tl.constexpr):
    row = tl.program_id(0)
    while row < n_rows:
        cols = tl.arange(0, COLS)
        x = tl.load(x_ptr + row * width + cols, mask=cols < width)
        tl.store(y_ptr + row * width + cols, x * 2, mask=cols < width)
        row += tl.num_programs(0)


@triton.jit
def histogram(x_ptr, sums_ptr, n, BLOCK_SIZE: tl.constexpr):
    items = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    values = tl.load(x_ptr + items, mask=items < n, other=0.0)
    tl.atomic_add(sums_ptr + items % 3, values, mask=items < n)  # order of float sums: that of the tiles


@triton.jit
def behind(x_ptr, y_ptr, spare_ptr, n_rows, width, COLS: tl.constexpr, NUM_SMS: tl.constexpr, LATE: tl.constexpr):
    """Rows of a program; where they are stored is counted anew, or handed on."""
    cols = tl.arange(0, COLS)
    if spare_ptr is not None:
        spare = tl.load(spare_ptr)
        for row in range(NUM_SMS - tl.program_id(0) - 1, n_rows, NUM_SMS):
            tl.store(y_ptr + row * width + cols, 0.0, mask=cols < width)
    else:
        spare: tl.constexpr = 0
    num_rows = n_rows - spare
    if LATE:
        row_c = tl.program_id(0) - NUM_SMS
    for row in tl.range(tl.program_id(0), num_rows, NUM_SMS):
        x = tl.load(x_ptr + row * width + cols, mask=cols < width)
        if LATE:
            row_c += NUM_SMS
            first = row_c * width
        else:
            row_c, first = row, row * width
        tl.store(y_ptr + first + cols, x + row_c, mask=cols < width)


@triton.jit
def flat_last(x_ptr, y_ptr, n_rows, width, COLS: tl.constexpr, NUM_SMS: tl.constexpr):
    """As `flat`, with the row as program id at first, which goes on behind its last step."""
    row = tl.program_id(0)
    steps = tl.cdiv(width, COLS)
    step = 0
    for _ in range(tl.cdiv(n_rows - row, NUM_SMS) * steps):
        cols = step * COLS + tl.arange(0, COLS)
        x = tl.load(x_ptr + row * width + cols, mask=cols < width)
        tl.store(y_ptr + row * width + cols, x * 2, mask=cols < width)
        step += 1
        if step == steps:
            step = 0
            row += NUM_SMS


@triton.jit
def flat(x_ptr, y_ptr, n_rows, width, COLS: tl.constexpr, NUM_SMS: tl.constexpr):
    """Rows in steps of COLS items, one loop over the steps of all rows of a program."""
    pid = tl.program_id(0).to(tl.int32)
    steps = tl.cdiv(width, COLS)
    mine = n_rows // NUM_SMS
    if pid < n_rows % NUM_SMS:
        mine += 1
    row = pid - NUM_SMS
    step = -1
    base = 0
    for _ in range(0, steps * mine):
        step = tl.where(step == steps - 1, 0, step + 1)
        if step == 0:
            row += NUM_SMS
            base = row * width
        cols = step * COLS + tl.arange(0, COLS)
        x = tl.load(x_ptr + base + cols, mask=cols < width)
        tl.store(y_ptr + base + cols, x * 2, mask=cols < width)


@triton.jit
def fill(y_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = rows[:, None] < m and not cols[None, :] >= n  # joined elementwise by the compiler
    tl.store(y_ptr + rows[:, None] * n + cols[None, :], 1.0, mask=inside)
