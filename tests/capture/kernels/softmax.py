"""The Triton documentation's fused softmax, written anew: persistent programs that step through the rows."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Softmax of each row; a program takes every num_programs-th row."""
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(first, n_rows, step, num_stages=STAGES):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < n_cols
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        values = values - tl.max(values, axis=0)
        top = tl.exp(values)
        tl.store(out_ptr + row * out_stride + offsets, top / tl.sum(top, axis=0), mask=mask)


kernel = Kernel(
    softmax,
    sizes={"ROWS": 100, "COLS": 781, "PROGRAMS": 13},
    arguments=lambda s: {
        "out_ptr": Array(shape=(s.ROWS, s.COLS), dtype="fp32", role="out"),
        "in_ptr": Array(shape=(s.ROWS, s.COLS), dtype="fp32"),
        "in_stride": s.COLS,
        "out_stride": s.COLS,
        "n_rows": s.ROWS,
        "n_cols": s.COLS,
    },
    constexprs=lambda s: {"BLOCK": triton.next_power_of_2(s.COLS), "STAGES": 2},
    grid=lambda s: (min(s.PROGRAMS, s.ROWS),),
    programs="PROGRAMS",
)
