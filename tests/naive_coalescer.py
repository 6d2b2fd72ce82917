"""Oracle of the L2 request coalescer: who on a GPC wants the same tile, one load at a time."""

from fractions import Fraction

from tests import naive
from tests.naive_in_step import group_of, loads_of, windows


def read_time(trace, order, gpu, *, running, alone):
    """Time of a read request at the L2 [fs]."""
    sides = gpu.l2_partitions
    if sides is None or sides.reads_as_one is None:
        return alone
    asked = sent = Fraction(0)
    for window in windows(trace, order, running):
        wants = {}  # (XCD, group, tile): workgroups
        loads = []
        for i, one in enumerate(window):
            cu = i // gpu.xcds % gpu.cus_per_xcd
            where = (i % gpu.xcds, group_of(cu, gpu))
            for instruction, _, tile in loads_of(trace, one):
                wants.setdefault((where, tile), set()).add(i)
                lines, _ = naive.touches(trace, instruction)
                loads.append((where, tile, sum(len(naive.pieces(s, gpu.l2.read_request_bytes)) for _, s in lines)))
        for where, tile, requests in loads:
            together = 1 + (len(wants[where, tile]) - 1) * Fraction(sides.under_way)
            asked += requests
            sent += requests / min(Fraction(sides.reads_as_one), together)
    return round(alone * sent / asked) if asked else alone
