"""Families that choose an order on the tile grid: they map ``pid`` to ``pid_m, pid_n``.

They read ``pid`` as a rank, so a placement in front of them decides which ranks an XCD gets. Panel orders suit stencils
and transposes, whose tiles share lines with their neighbours only: a panel is as many tiles wide as an L2 can hold two
rows of, and walked along its length it touches shared lines while they are still resident. The dealt panels also decide
which XCD gets which panel.
"""

from __future__ import annotations

from swizzle_sim.swizzle.families.family import Family, Parameter
from swizzle_sim.swizzle.families.placement import CHUNK, chunked_text, dealt_text


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


def _grouped(size: int, along: str, across: str) -> str:
    # min(size, ...) keeps group_pids within the grid, hence within 32 bits; a larger group is the same order.
    return f"""\
group = min({size}, num_{along})
group_pids = group * num_{across}
first = (pid // group_pids) * group
length = min(num_{along} - first, group)
step = pid % group_pids
{along} = first + step % length
{across} = step // length
"""


def group_m_text(size: int) -> str:
    """Text of ``group_m``."""
    return _grouped(size, "pid_m", "pid_n")


def group_n_text(size: int) -> str:
    """Text of ``group_n``."""
    return _grouped(size, "pid_n", "pid_m")


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
