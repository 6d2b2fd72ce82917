"""Panel orders for stencils and transposes, whose tiles share lines with their neighbours only.

A panel is as many tiles wide as an L2 can hold two rows of; walked along its length, it touches what is shared across
the walk while that is still in the cache. The dealt forms also say which XCD gets which panel.
"""

from __future__ import annotations

from swizzle_sim.swizzle.families.nouns import Family, Parameter
from swizzle_sim.swizzle.families.order import group_m_text, group_n_text
from swizzle_sim.swizzle.families.placement import dealt_text


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
