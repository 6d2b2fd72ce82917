"""Slow oracles of the families: walk the grid and write down what comes when, with no arithmetic on ids.

A placement is the list of logical ids by hardware id, an order is the list of tiles by rank.
"""


def identity(num_pids, num_xcds):
    return list(range(num_pids))


def contiguous(num_pids, num_xcds):
    """Deal the ids out XCD by XCD: each takes as many as the hardware will ask it for."""
    answer, following = [None] * num_pids, 0
    for xcd in range(num_xcds):
        for pid in range(xcd, num_pids, num_xcds):
            answer[pid] = following
            following += 1
    return answer


def contiguous_naive(num_pids, num_xcds):
    return contiguous(num_pids, num_xcds)  # where it is a bijection it is the same one


def chunked(num_pids, num_xcds, chunk):
    """Deal ids out `chunk` at a time, XCD after XCD, block after block."""
    answer = list(range(num_pids))
    block = num_xcds * chunk
    for first in range(0, num_pids - block + 1, block):
        following = first
        for xcd in range(num_xcds):
            for turn in range(chunk):
                answer[first + turn * num_xcds + xcd] = following
                following += 1
    return answer


def row(rows, cols):
    return [(m, n) for m in range(rows) for n in range(cols)]


def column(rows, cols):
    return [(m, n) for n in range(cols) for m in range(rows)]


def snake(rows, cols):
    walk = []
    for m in range(rows):
        line = [(m, n) for n in range(cols)]
        walk += line if m % 2 == 0 else line[::-1]
    return walk


def group_m(rows, cols, size):
    walk = []
    for first in range(0, rows, size):
        walk += [(m, n) for n in range(cols) for m in range(first, min(first + size, rows))]
    return walk


def group_n(rows, cols, size):
    return [(m, n) for n, m in group_m(cols, rows, size)]


def windowed(rows, cols, num_xcds, chunk, window):
    walk = group_m(rows, cols, window)
    return [walk[rank] for rank in chunked(rows * cols, num_xcds, chunk)]


def morton(rows, cols):
    """Tiles sorted by their interleaved bits, rows above columns."""

    def key(tile):
        return [(tile[axis] >> bit) & 1 for bit in reversed(range(16)) for axis in (0, 1)]

    return sorted(row(rows, cols), key=key)


def hilbert(rows, cols):
    """A turtle draws the L-system A -> +BF-AFA-FB+, B -> -AF+BFB+FA-; tiles outside the grid are skipped."""
    bits = 1
    while 2**bits < max(rows, cols):
        bits += 1
    path = "A"
    for _ in range(bits):
        path = "".join({"A": "+BF-AFA-FB+", "B": "-AF+BFB+FA-"}.get(letter, letter) for letter in path)
    m, n, dm, dn = 0, 0, 1, 0
    walk = [(0, 0)]
    for letter in path:
        if letter == "+":
            dm, dn = -dn, dm
        elif letter == "-":
            dm, dn = dn, -dm
        elif letter == "F":
            m, n = m + dm, n + dn
            walk.append((m, n))
    return [(m, n) for m, n in walk if m < rows and n < cols]


def tiles_of(parts, rows, cols, num_xcds):
    """Tile of each hardware id under ``[(name, params), ...]``, or its logical id where no order is among them."""
    ids = list(range(rows * cols))
    for name, params in parts:
        if name == "windowed":
            walk = windowed(rows, cols, num_xcds, **params)
            return [walk[rank] for rank in ids]
        if name in ("identity", "contiguous", "contiguous_naive", "chunked"):
            placed = globals()[name](rows * cols, num_xcds, **params)
            ids = [placed[rank] for rank in ids]
        else:
            walk = globals()[name](rows, cols, **params)
            return [walk[rank] for rank in ids]
    return ids
