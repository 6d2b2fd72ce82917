"""Listings of SwizzlePerf, arXiv 2508.20258, sections A.3 and A.4, letter by letter as printed.

The printed formulas with the runs they were measured in, where they hold, and a bijection in the same spirit.

Measured hit rates are those of the public experiment logs behind the paper (AMDResearch/intelliperf, branch
hardware-aware-swizzling), at the sizes of those runs; the paper itself prints no table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

FIGURE_6 = """
pid_m = tl.program_id(0)
num_xcds = 8
num_blocks = M

blocks_per_xcd = (num_blocks + num_xcds - 1) // num_xcds
xcd_id = (pid_m // num_xcds) % num_xcds

local_block_id = pid_m % num_xcds
offset = (local_block_id // num_xcds) * num_xcds + xcd_id

pid = offset * blocks_per_xcd + local_block_id
"""
FIGURE_7 = """
num_xcds = 8
num_blocks = tl.num_programs(0)

pid = tl.program_id(0)

blocks_per_xcd = (num_blocks + num_xcds - 1) // num_xcds
xcd_id = (pid // num_xcds) % num_xcds
block_in_xcd = pid % num_xcds
new_pid = xcd_id * blocks_per_xcd + block_in_xcd
pid = new_pid
"""
FIGURE_8 = """
pid_x = tl.program_id(0)
pid_y = tl.program_id(1)

num_XCD = 8
num_blocks_x = (Nx + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X
num_blocks_y = (Ny + BLOCK_SIZE_Y - 1) // BLOCK_SIZE_Y
num_blocks = num_blocks_x * num_blocks_y

# Calculate new block index using a different swizzling pattern
block_id = pid_y * num_blocks_x + pid_x
xcd_id = (block_id // num_blocks_x) % num_XCD
new_block_id = (block_id % num_blocks_x) * num_XCD + xcd_id

# Map new block id back to 2D grid
pid_x = new_block_id // num_blocks_x
pid_y = new_block_id % num_blocks_x
"""
FIGURE_9 = """
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

num_blocks_m = (M + BLOCK_SIZE_M - 1) // BLOCK_SIZE_M
num_blocks_n = (N + BLOCK_SIZE_N - 1) // BLOCK_SIZE_N
total_blocks = num_blocks_m * num_blocks_n

block_id = pid_m * num_blocks_n + pid_n
xcd_id = (block_id // num_blocks_m) % 8
round_id = block_id // (8 * num_blocks_m)
new_block_id = round_id * 8 + xcd_id

pid_m = new_block_id // num_blocks_n
pid_n = new_block_id % num_blocks_n
"""
# The formula is wrapped without a bracket in print.
FIGURE_10 = """
num_xcds = 8
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

pid = pid_m * (N // BLOCK_SIZE_N) + pid_n
xcd_idx = (pid // num_xcds) % num_xcds
pid = xcd_idx * (N // BLOCK_SIZE_N) * (M // BLOCK_SIZE_M) // num_xcds + pid //
    num_xcds

pid_m = pid // (N // BLOCK_SIZE_N)
pid_n = pid % (N // BLOCK_SIZE_N)
"""
FIGURE_11 = """
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

num_xcds = 8
num_blocks_m = (M + BLOCK_SIZE_M - 1) // BLOCK_SIZE_M
num_blocks_n = (N + BLOCK_SIZE_N - 1) // BLOCK_SIZE_N
total_blocks = num_blocks_m * num_blocks_n

original_block_index = pid_m * num_blocks_n + pid_n

xcd_id = original_block_index % num_xcds
round_id = original_block_index // num_xcds
new_block_index = round_id + xcd_id * (total_blocks // num_xcds)

pid_m = new_block_index // num_blocks_n
pid_n = new_block_index % num_blocks_n
"""
FIGURE_12 = """
pid = tl.program_id(0)

# Swizzle the program IDs to improve cache locality
pid_m = pid // (N // BLOCK_SIZE_N)
pid_n = pid % (N // BLOCK_SIZE_N)
"""
FIGURE_13 = """
pid = tl.program_id(0)

# Swizzle the pid to improve cache locality
pid = ((pid >> 1) & 0x55555555) | ((pid & 0x55555555) << 1)
"""

LISTINGS = {
    6: FIGURE_6,
    7: FIGURE_7,
    8: FIGURE_8,
    9: FIGURE_9,
    10: FIGURE_10,
    11: FIGURE_11,
    12: FIGURE_12,
    13: FIGURE_13,
}


_LINEAR = "tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)"
_SWAP = "((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1)"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """One formula of the paper."""

    label: str  # figure, such as ``"6"``; ``"13, as run"`` is what was measured in place of what is printed
    kernel: str
    sizes: Mapping[str, int] = field(default_factory=dict)  # at which it was measured, where they are not the suite's
    text: str
    intent: str  # what it is meant to do, in short
    computes: str  # what it does compute at the measured size
    baseline_pct: float | None  # [%]: L2 hit rates in launch order and with the formula; None where no log has them
    measured_pct: float | None
    claim: str  # the paper's own words about the gain
    condition: str  # grids on which it is a bijection
    # the same as ``holds(num_pid_m, num_pid_n) -> bool``; a one-dimensional grid has one column
    holds: Callable[[int, int], bool]
    repair: str  # A bijection in the same spirit, in the language
    repaired_by: str  # what was changed


REPAIR_ROWS = """
num_xcds = 8
num_blocks = tl.num_programs(0)
pid = tl.program_id(0)

xcd_id = pid % num_xcds
block_in_xcd = pid // num_xcds
pid = xcd_id * (num_blocks // num_xcds) + min(xcd_id, num_blocks % num_xcds) + block_in_xcd
"""
REPAIR_8 = """
num_XCD = 8
num_blocks_x = (Nx + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X
num_blocks_y = (Ny + BLOCK_SIZE_Y - 1) // BLOCK_SIZE_Y

block_id = tl.program_id(1) * num_blocks_x + tl.program_id(0)
xcd_id = block_id % num_XCD
local_id = block_id // num_XCD

pid_x = local_id // num_blocks_y * num_XCD + xcd_id
pid_y = local_id % num_blocks_y
"""
REPAIR_9 = """
num_blocks_m = (M + BLOCK_SIZE_M - 1) // BLOCK_SIZE_M

block_id = tl.program_id(1) * num_blocks_m + tl.program_id(0)
xcd_id = block_id % 8
local_id = block_id // 8
rows_per_xcd = num_blocks_m // 8

pid_m = xcd_id * rows_per_xcd + local_id % rows_per_xcd
pid_n = local_id // rows_per_xcd
"""
REPAIR_10 = LISTINGS[10].replace("xcd_idx = (pid // num_xcds) % num_xcds", "xcd_idx = pid % num_xcds")
REPAIR_11 = LISTINGS[11].replace(
    "new_block_index = round_id + xcd_id * (total_blocks // num_xcds)",
    "new_block_index = round_id + xcd_id * (total_blocks // num_xcds) + min(xcd_id, total_blocks % num_xcds)",
)
REPAIR_12 = f"""
pid = {_LINEAR}

pid_m = pid // tl.cdiv(N, BLOCK_SIZE_N)
pid_n = pid % tl.cdiv(N, BLOCK_SIZE_N)
"""
REPAIR_13 = f"""
v = {_LINEAR}
pid = {_SWAP}
"""
AS_RUN_13 = f"""
v = tl.program_id(0)
pid_m = {_SWAP}
pid_n = pid_m
"""


def _few_rows(m: int, n: int) -> bool:
    return n == 1 and (m <= 8 or 57 <= m <= 64)


def _one_tile(m: int, n: int) -> bool:
    return m == n == 1


def _swaps(bound: int) -> bool:
    """Whether swapping neighbouring bits keeps the numbers below a bound below it."""
    return all(((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1) < bound for v in range(bound))


_LAYER_NORM = Formula(
    label="6",
    kernel="layer_norm",
    text=LISTINGS[6],
    intent="rows spread over the XCDs, what belongs together on one",
    computes="64 rows of 20480, each 320 times",
    baseline_pct=66.2,
    measured_pct=99.9,
    claim="improves hit rate by the observed 34%",
    condition="at most 8 workgroups, or 57 to 64",
    holds=_few_rows,
    repair=REPAIR_ROWS,
    repaired_by="XCD from the id's remainder, as the hardware deals ids; the quotient kept; the uneven rest dealt out.",
)
_BIT_SWAP = Formula(
    label="13",
    kernel="transpose",
    text=LISTINGS[13],
    intent="neighbouring bits of the id swapped",
    computes="1024 tiles of 1048576, one column of tiles, each 1024 times: only the first id of the launch is read",
    baseline_pct=None,
    measured_pct=None,
    claim="up to 70% higher L2 hit rate than SwizzlePerf",
    condition="one column of tiles, a power of four of them (or 3, 12, 13, 15, ...)",
    holds=lambda m, n: n == 1 and _swaps(m),
    repair=REPAIR_13,
    repaired_by="The whole linear id is swapped; needs a power of four of tiles.",
)

FORMULAS = (
    _LAYER_NORM,
    replace(
        _LAYER_NORM,
        label="7",
        kernel="softmax",
        text=LISTINGS[7],
        computes="64 rows of 32768, each 512 times",
        baseline_pct=33.4,
        claim="a 66% lift in L2 hit rate",
    ),
    Formula(
        label="8",
        kernel="fdtd_2d",
        sizes={"Nx": 4096, "Ny": 4096},
        text=LISTINGS[8],
        intent="tiles of one x range on one XCD, the ranges dealt round robin (so the prose; the code deals pid_y)",
        computes="1024 tiles of 16384 (8 tile rows of 128), each 16 times",
        baseline_pct=79.4,
        measured_pct=99.1,
        claim="improves L2 hit rate by 20%",
        condition="8 x n tiles with n up to 8, or one tile",
        holds=lambda m, n: (m == 8 and n <= 8) or _one_tile(m, n),
        repair=REPAIR_8,
        repaired_by="As the prose says, and the position along y is kept; needs tile rows in multiples of 8.",
    ),
    Formula(
        label="9",
        kernel="stencil_2d",
        text=LISTINGS[9],
        intent="neighbouring tiles on one XCD",
        computes="256 tiles of 65536, one row of tiles, each 256 times",
        baseline_pct=None,
        measured_pct=None,
        claim="improves L2 hit rate by 70%",
        condition="one row of tiles",
        holds=lambda m, n: m == 1,
        repair=REPAIR_9,
        repaired_by="A band of tile rows an XCD, walked column by column; needs tile rows in multiples of 8.",
    ),
    Formula(
        label="10",
        kernel="transpose",
        text=LISTINGS[10],
        intent="bands of row-major tiles, one an XCD",
        computes="131072 tiles of 1048576 (one in eight), each 8 times",
        baseline_pct=None,
        measured_pct=None,
        claim="a 34% improvement in hit rate",
        condition="one tile",
        holds=_one_tile,
        repair=REPAIR_10,
        repaired_by="`(pid // num_xcds) % num_xcds` reads `pid % num_xcds`: with that it is figure 11.",
    ),
    Formula(
        label="11",
        kernel="transpose",
        text=LISTINGS[11],
        intent="bands of row-major tiles, one an XCD",
        computes="every tile once",
        baseline_pct=3.5,
        measured_pct=24.2,
        claim="code of the hardware-aware loop; no figure of its own",
        condition="tiles in multiples of 8, or one tile",
        holds=lambda m, n: m * n % 8 == 0 or _one_tile(m, n),
        repair=REPAIR_11,
        repaired_by="Nothing at this size; the uneven rest is dealt out, so that it holds on every grid.",
    ),
    Formula(
        label="12",
        kernel="transpose",
        text=LISTINGS[12],
        intent="row-major decoding of one id",
        computes="1024 tiles of 1048576, one row of tiles, each 1024 times: only the first id of the launch is read",
        baseline_pct=3.5,
        measured_pct=48.3,
        claim="code of the hardware-unaware baseline",
        condition="one column of tiles",
        holds=lambda m, n: n == 1,
        repair=REPAIR_12,
        repaired_by="Both ids of the launch are read.",
    ),
    _BIT_SWAP,
    replace(
        _BIT_SWAP,
        label="13, as run",
        text=AS_RUN_13,
        intent="the measured kernel used the swapped id for both axes",
        computes="1024 tiles of 1048576, the diagonal, each 1024 times",
        baseline_pct=3.8,
        measured_pct=99.9,
        condition="one tile",
        holds=_one_tile,
        repaired_by="As above.",
    ),
)
