"""Orders of three-dimensional launches: they take ``pid`` to ``pid_x, pid_y, pid_z``.

A box one tile deep is a tile of one plane (a GEMM of a batch), a box as deep as the grid is a pillar (a stencil that
marches along z).
"""

from __future__ import annotations

from swizzle_sim.swizzle.families.nouns import Family, Parameter


def _boxes(x: int, y: int, z: int) -> str:
    return f"""\
thick = min({z}, num_pid_z)
slab_pids = thick * num_pid_x * num_pid_y
first_z = pid // slab_pids * thick
deep = min(num_pid_z - first_z, thick)
rank = pid % slab_pids
height = min({y}, num_pid_y)
band_pids = height * num_pid_x * deep
first_y = rank // band_pids * height
high = min(num_pid_y - first_y, height)
rank = rank % band_pids
width = min({x}, num_pid_x)
box_pids = width * high * deep
first_x = rank // box_pids * width
wide = min(num_pid_x - first_x, width)
rank = rank % box_pids
pid_x = first_x + rank % wide
pid_y = first_y + rank // wide % high
pid_z = first_z + rank // (wide * high)
"""


def _morton_3d() -> str:
    # As `curves._MORTON`, with a third halving: the counts of tiles inside the grid say which half a rank is in.
    return """\
side = max(num_pid_x, num_pid_y, num_pid_z) - 1
bits = 0
for i in range(5):
    jump = 16 >> i
    if (side >> (bits + jump)) > 0:
        bits = bits + jump
rank = pid
pid_x = 0
pid_y = 0
pid_z = 0
wide = num_pid_x
high = num_pid_y
deep = num_pid_z
for level in range(bits + 1):
    half = 1 << (bits - level)
    near = min(deep, half)
    upper = rank >= near * high * wide
    rank = rank - upper * near * high * wide
    pid_z = pid_z + upper * half
    deep = deep - near if upper else near
    near = min(high, half)
    lower = rank >= deep * near * wide
    rank = rank - lower * deep * near * wide
    pid_y = pid_y + lower * half
    high = high - near if lower else near
    near = min(wide, half)
    right = rank >= deep * high * near
    rank = rank - right * deep * high * near
    pid_x = pid_x + right * half
    wide = wide - near if right else near
"""


BOXES = (
    Family(
        name="boxes",
        summary="Boxes of `x` x `y` x `z` workgroups, x fastest inside a box and from box to box; clipped to the grid.",
        text=_boxes,
        source="3-D blocking of stencils (Rivera and Tseng, SC 2000)",
        parameters={
            "x": Parameter(4, 1, 65536, "workgroups of a box along x"),
            "y": Parameter(4, 1, 65536, "workgroups of a box along y"),
            "z": Parameter(4, 1, 65536, "workgroups of a box along z"),
        },
        axes=3,
    ),
    Family(
        name="morton_3d",
        summary="Z order in three dimensions: eighths of eighths; clipped to the grid.",
        text=_morton_3d,
        source="Morton, IBM technical report, 1966",
        axes=3,
    ),
)
