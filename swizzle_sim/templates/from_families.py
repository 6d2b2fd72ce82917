"""The published families as templates: their texts with variables where a spec has numbers."""

from __future__ import annotations

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle.families import FAMILIES, Family
from swizzle_sim.templates.ranges import MOST_VALUES, Range
from swizzle_sim.templates.template import Template
from xcd_model import Gpu
from xcd_model.errors import UnknownName

# Placements and orders that are combined. Left out is what repeats a combination: windowed is chunked+group_m,
# contiguous_naive is contiguous where it holds, block_first is row and head_first column.
PLACING = ("", "contiguous", "chunked", "row_bands")
ORDERING = (
    "row",
    "column",
    "snake",
    "morton",
    "hilbert",
    "group_m",
    "group_n",
    "panel_snake",
    "blocks",
    "morton_blocks",
)
DEALING = ("head_first_swizzled", "block_first_swizzled", "head_groups", "column_panels", "row_panels")
BOXING = ("boxes", "morton_3d")
# Axis of the tile grid that bounds a parameter.
_ROWS = {
    ("group_m", "size"),
    ("blocks", "rows"),
    ("blocks", "size"),
    ("morton_blocks", "rows"),
    ("row_panels", "height"),
}


def family_template(names: str, kernel: Kernel, gpu: Gpu) -> Template:
    """Template of families joined by ``+``, with ranges that end where the grid does.

    Parameters
    ----------
    names : str
        Such as ``"chunked+group_m"``; no parameters, as those are searched.
    kernel : Kernel
    gpu : Gpu

    Returns
    -------
    template : Template
        Parameters are called ``family_parameter``, as in ``chunked_chunk``.

    Raises
    ------
    UnknownName
        If there is no such family.
    """
    parts = []
    for name in names.split("+"):
        if name not in FAMILIES:
            raise UnknownName("swizzle family", name, FAMILIES)
        parts.append(FAMILIES[name])
    ranges, texts, called, requires = [], [], [], []
    for one in parts:
        own = {key: f"{one.name}_{key}" for key in one.parameters}
        for key, rule in one.parameters.items():
            high = max(rule.low, min(rule.high, _longest(one, key, kernel, gpu), MOST_VALUES))
            ranges.append(Range(own[key], tuple(range(rule.low, high + 1)), f"{rule.low}..{high}"))
        texts.append(one.text(**own))
        given = ", ".join(f"{key}={{{name}}}" for key, name in own.items())
        called.append(f"{one.name}({given})" if given else one.name)
        requires += [] if one.condition == "always" else [one.condition]
    return Template(
        "_".join(one.name for one in parts), tuple(ranges), tuple(requires), "".join(texts), "+".join(called)
    )


def _longest(one: Family, key: str, kernel: Kernel, gpu: Gpu) -> int:
    """Largest value of a parameter that still changes something on the grid."""
    grid = kernel.grid
    if one.axes == 0:
        return grid.num_pids // gpu.xcds
    if one.axes == 3:
        return grid.launch["xyz".index(key)] if len(grid.launch) == 3 else grid.num_pids
    rows, cols = grid.shape or (grid.num_pids, grid.num_pids)
    return rows if (one.name, key) in _ROWS else cols


def family_templates(kernel: Kernel, gpu: Gpu) -> list[Template]:
    """Every combination of families that makes sense on a kernel's grid."""
    grid = kernel.grid
    if len(grid.launch) == 3:
        orders, more = list(BOXING), ["contiguous", "chunked", "row_bands"]
    elif grid.shape:
        orders, more = list(ORDERING), list(DEALING)
    else:
        return [family_template(name, kernel, gpu) for name in PLACING if name]
    names = ["+".join(part for part in (placement, order) if part) for placement in PLACING for order in orders]
    return [family_template(name, kernel, gpu) for name in [*names, *more]]
