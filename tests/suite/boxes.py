"""Items of boxes of arrays, one by one, and how arrays lie in memory: what the oracles of access models share."""

from itertools import product

ALIGN_BYTES = 2 * 1024 * 1024


def cells(shape, block, at, outside=lambda place: False):
    """Items of a box of a row-major array that begins at ``at``; None outside the array or where ``outside`` says."""
    out = []
    for step in product(*(range(side) for side in block)):
        place = [a + s for a, s in zip(at, step, strict=True)]
        item = 0
        for p, side in zip(place, shape, strict=True):
            item = item * side + p
        inside = all(0 <= p < side for p, side in zip(place, shape, strict=True))
        out.append(item if inside and not outside(place) else None)
    return out


def blocks(n, block):
    return len(range(0, n, block))
