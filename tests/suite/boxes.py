"""Items of boxes of arrays, one by one, and how arrays lie in memory: what the oracles of access models share."""

from itertools import product

ALIGN_BYTES = 2 * 1024 * 1024


def cells(shape, block, at, outside=lambda place: False):
    """Items of a box of a row-major array that begins at ``at``; None outside the array or where ``outside`` says."""
    out = []
    for place in product(*(range(a, a + side) for a, side in zip(at, block, strict=True))):
        item, inside = 0, True
        for p, side in zip(place, shape, strict=True):
            item = item * side + p
            inside &= 0 <= p < side
        out.append(item if inside and not outside(place) else None)
    return out


def blocks(n, block):
    return len(range(0, n, block))
