"""The section on how to add a row."""

from __future__ import annotations

from benchmarks.fidelity.contributed import COLUMNS, NEEDED
from benchmarks.fidelity.quantities import QUANTITIES

TEXT = """\
## Contribute a row

On a node with a MI300X or its kin, or with an NVIDIA GPU, any kernel of `swizzle-sim kernels` under any swizzle:

    swizzle-sim bundle gemm M=8192 --swizzle contiguous --swizzle 'group_m(size=8)' --gpu mi300x -o mine
    python mine/confirm.py                     # there: needs the driver, PyTorch, Triton, and rocprofv3 or ncu
    swizzle-sim agreement mine                 # writes mine/agreement-BUNDLE.csv, rows of what was counted
    python -m benchmarks.fidelity.contribute mine/agreement-BUNDLE.csv

The kernels of the H200 table under the orders of that table, or others, on an NVIDIA GPU:

    python -m benchmarks.fidelity.measure_nvidia --help

By hand, with any profiler, such as

    rocprofv3 --pmc TCC_HIT_sum TCC_MISS_sum TCC_EA0_RDREQ_sum --kernel-include-regex NAME \\
        -d DIR -o run --output-format csv -- COMMAND

a CSV with the columns

    {columns}

`contribute` checks every row and takes all of a file or none of it. A row whose {needed} is empty is refused, with
the field named: nobody could measure it again. So is one of a GPU or kernel that is not known here, or whose order is
not what it says. `kernel` and `problem` (JSON, integers by size name) are those of `swizzle-sim kernels`, or of a
kernel named in the tables above. `mapping` is the order: a swizzle in the closed language (docs/language.md), or a
formula, `def f(pid, n, X=8)` over a one-dimensional grid or `def f(pid, nm, nn, X=8)` over tiles, assignments of
integer arithmetic and one return. Left empty, `order` names it: row, col, grp8, scatter and so on. `bijective` is
True or False. `quantity` is one of {quantities}. On AMD the L2 hit rate is 100 TCC_HIT_sum / (TCC_HIT_sum +
TCC_MISS_sum), both from one pass. `low`, `high`, `baseline` (the same quantity of the order as launched, in the same
session) and `note` may be empty. `resources` (JSON: registers, shared_bytes) is what a workgroup of the compiled
kernel took; without it those of our own compile for AMD are used.
"""


def contribute_section() -> str:
    """Text of the section."""
    return TEXT.format(columns=", ".join(COLUMNS), needed=", ".join(NEEDED), quantities=", ".join(QUANTITIES))
