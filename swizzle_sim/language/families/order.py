"""Families that choose an order on the tile grid: they map ``pid`` to ``pid_m, pid_n``.

They read ``pid`` as a rank, so a placement in front of them decides which ranks an XCD gets. Panel orders suit stencils
and transposes, whose tiles share lines with their neighbours only: a panel is as many tiles wide as an L2 can hold two
rows of, and walked along its length it touches shared lines while they are still resident. The dealt panels also decide
which XCD gets which panel.
"""

from __future__ import annotations

from swizzle_sim.language.families.placement import CHUNK, Family, Parameter, chunked_text, contiguous_text, dealt_text


def _row() -> str:
    return "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n\n"


def _column() -> str:
    return "pid_m = pid % num_pid_m\npid_n = pid // num_pid_m\n"


def _snake() -> str:
    return """\
step = pid % num_pid_n
pid_m = pid // num_pid_n
pid_n = step if pid_m % 2 == 0 else num_pid_n - 1 - step
"""


def _grouped(size: int, along: str, across: str, walk: int | str = 1) -> str:
    # min(size, ...) keeps group_pids within the grid, hence within 32 bits; a larger group is the same order.
    return f"""\
group = min({size}, num_{along})
group_pids = group * num_{across}
first = (pid // group_pids) * group
length = min(num_{along} - first, group)
step = pid % group_pids
{along} = first + step % length
{_across(across, walk)}"""


def _across(across: str, walk: int | str) -> str:
    """Last lines of a band: 1 the first row first, 2 the last row first, 3 the last and the first in turn.

    In a template ``walk`` is a name, and one text serves every value.
    """
    if walk == 1:
        return f"{across} = step // length\n"
    turned = f"num_{across} - 1 - row"
    in_turn = f"num_{across} - 1 - row // 2 if row % 2 == 0 else row // 2"
    if isinstance(walk, int):
        return f"row = step // length\n{across} = {turned if walk == 2 else in_turn}\n"
    return f"row = step // length\n{across} = row if {walk} == 1 else {turned} if {walk} == 2 else {in_turn}\n"


def group_m_text(size: int) -> str:
    """Text of ``group_m``."""
    return _grouped(size, "pid_m", "pid_n")


def group_n_text(size: int, walk: int | str = 1) -> str:
    """Text of ``group_n``, its rows in the order of `_across`."""
    return _grouped(size, "pid_n", "pid_m", walk)


def _longest_first(size: int) -> str:
    return group_n_text(size, walk=2)


def _paired(size: int) -> str:
    return group_n_text(size, walk=3)


def _windowed(chunk: int, window: int) -> str:
    return chunked_text(chunk) + group_m_text(window)


def _column_panels(width: int) -> str:
    return dealt_text(f"min({width}, num_pid_n) * num_pid_m") + group_n_text(width)


def _row_panels(height: int) -> str:
    return dealt_text(f"min({height}, num_pid_m) * num_pid_n") + group_m_text(height)


def _panel_snake(width: int) -> str:
    return f"""\
panel = min({width}, num_pid_n)
panel_pids = panel * num_pid_m
index = pid // panel_pids
length = min(num_pid_n - index * panel, panel)
step = pid % panel_pids
row = step // length
pid_m = row if index % 2 == 0 else num_pid_m - 1 - row
pid_n = index * panel + step % length
"""


BAND = Parameter(65536, 1, 65536, "columns walked side by side; all of them by default")

ORDERS = (
    Family(
        name="row",
        summary="Row by row.",
        text=_row,
        source="Triton tutorial 03-matrix-multiplication with GROUP_SIZE_M = 1",
        axes=2,
    ),
    Family(
        name="column",
        summary="Column by column.",
        text=_column,
        source="AMD tessera sweep (COL)",
        axes=2,
    ),
    Family(
        name="snake",
        summary="Row by row, every other row backwards (boustrophedon).",
        text=_snake,
        source="AMD tessera sweep (SNAKE)",
        axes=2,
    ),
    Family(
        name="group_m",
        summary="Bands of `size` rows, each walked column by column (GROUP_SIZE_M).",
        text=group_m_text,
        source="Triton tutorial 03-matrix-multiplication (GROUP_SIZE_M)",
        parameters={"size": Parameter(8, 1, 65536, "rows of tiles in a band")},
        axes=2,
    ),
    Family(
        name="group_n",
        summary="Bands of `size` columns, each walked row by row: the mirror of group_m.",
        text=group_n_text,
        source="Triton tutorial 03-matrix-multiplication, mirrored; hipBLASLt WGM groups along this axis",
        parameters={"size": Parameter(8, 1, 65536, "columns of tiles in a band")},
        axes=2,
    ),
    Family(
        name="longest_first",
        summary="Bands of `size` columns, each walked row by row from the last row: the longest first if work grows.",
        text=_longest_first,
        source="longest processing time first (Graham, SIAM J. Appl. Math. 17, 1969), along the rows of the grid",
        parameters={"size": BAND},
        axes=2,
    ),
    Family(
        name="paired",
        summary="As longest_first, but the last and the first row in turn: a light workgroup after each heavy one.",
        text=_paired,
        source="heavy and light query blocks of causal attention paired (ROCm/rocm-libraries PR 9480)",
        parameters={"size": BAND},
        axes=2,
    ),
    Family(
        name="windowed",
        summary="HipKittens Algorithm 1: chunked, then windows of `window` rows walked column by column.",
        text=_windowed,
        source="HipKittens Algorithm 1 (arXiv 2511.08083)",
        parameters={"chunk": CHUNK, "window": Parameter(8, 1, 65536, "rows of tiles in a window")},
        axes=2,
    ),
)

PANELS = (
    Family(
        name="column_panels",
        summary="Each XCD gets panels of `width` columns in turn and walks them row by row.",
        text=_column_panels,
        source="panel blocking of stencils (Rivera and Tseng, SC 2000), one panel an XCD",
        parameters={"width": Parameter(8, 1, 65536, "columns of tiles in a panel")},
        axes=2,
    ),
    Family(
        name="row_panels",
        summary="Each XCD gets panels of `height` rows in turn and walks them column by column.",
        text=_row_panels,
        source="panel blocking of stencils (Rivera and Tseng, SC 2000), turned",
        parameters={"height": Parameter(8, 1, 65536, "rows of tiles in a panel")},
        axes=2,
    ),
    Family(
        name="panel_snake",
        summary="Panels of `width` columns walked row by row, every other panel from the last row back.",
        text=_panel_snake,
        source="group_n with the turn of a boustrophedon (AMD tessera sweep, SNAKE)",
        parameters={"width": Parameter(8, 1, 65536, "columns of tiles in a panel")},
        axes=2,
    ),
)


# Orders for attention: query blocks are the rows of the tile grid, heads its columns.
#
# That is FlashAttention-2's launch, ``(cdiv(S, BLOCK_M), batch * heads)``. The workgroups of one head share its K and
# V, so the L2 hit rate depends on the number of heads that one L2 serves at a time. Heads of a batch are consecutive
# columns.


def _block_first() -> str:
    return "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n\n"


def _block_first_swizzled() -> str:
    # The remap of `contiguous` on the head alone; it names an XCD only where ids of a block start at XCD 0.
    return """\
head = pid % num_pid_n
xcd = head % num_xcds
pid_m = pid // num_pid_n
pid_n = xcd * (num_pid_n // num_xcds) + min(xcd, num_pid_n % num_xcds) + head // num_xcds
"""


def _head_first() -> str:
    return "pid_m = pid % num_pid_m\npid_n = pid // num_pid_m\n"


def _head_first_swizzled() -> str:
    return """\
local = pid // num_xcds
pid_m = local % num_pid_m
pid_n = (pid % num_xcds) * (num_pid_n // num_xcds) + local // num_pid_m
"""


def _head_groups(size: int, walk: int | str) -> str:
    return contiguous_text() + group_n_text(size, walk)


PAPER = "arXiv 2511.02132"

ATTENTION = (
    Family(
        name="block_first",
        summary="Block 0 of every head, then block 1: an XCD serves every num_xcds-th head at once. The same as row.",
        text=_block_first,
        source=f"{PAPER} (naive block-first); AITER attention, head = id % heads",
        axes=2,
    ),
    Family(
        name="block_first_swizzled",
        summary="As block_first, but the heads of one XCD are neighbours, if num_pid_n is a multiple of num_xcds.",
        text=_block_first_swizzled,
        source=f"{PAPER} (swizzled block-first); AITER attention, remap_xcd on the head",
        axes=2,
    ),
    Family(
        name="head_first",
        summary="All blocks of head 0, then of head 1: every XCD serves every running head. The same as column.",
        text=_head_first,
        source=f"{PAPER} (naive head-first); launch of FlashAttention-2 and Triton tutorial 06",
        axes=2,
    ),
    Family(
        name="head_first_swizzled",
        summary="Consecutive heads on one XCD, one after the other. Elsewhere contiguous+column is exact.",
        text=_head_first_swizzled,
        source=f"{PAPER} (swizzled head-first); AITER pull requests 864 and 3936",
        axes=2,
        # Otherwise some XCD gets more heads than its share, and two XCDs compute the same tile.
        condition="num_pid_n % num_xcds == 0 or num_pids == 1",
    ),
    Family(
        name="head_groups",
        summary="Consecutive heads on one XCD, `size` of them at a time, block by block: the heads that share K and V.",
        text=_head_groups,
        source="AITER pull request 3936 (grouped-query path), made exact for any number of heads",
        parameters={
            "size": Parameter(8, 1, 65536, "query heads that share one K and V"),
            "walk": Parameter(
                1, 1, 3, "1 first block first, 2 last first: longest first if causal, 3 last and first in turn"
            ),
        },
        axes=2,
    ),
)
