"""Slow oracles of the families: walk the grid and write down what comes when, with no arithmetic on ids.

A placement is the list of logical ids by hardware id, an order is the list of tiles by rank.
"""


def identity(num_pids, num_xcds):
    return list(range(num_pids))


def reverse(num_pids, num_xcds):
    return list(range(num_pids))[::-1]


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


def row_bands(num_pids, num_xcds, rows):
    """Deal bands of `rows` ids to the XCDs in turn while a whole turn is left, then one more run each."""
    left = [len(range(xcd, num_pids, num_xcds)) for xcd in range(num_xcds)]
    given = [[] for _ in range(num_xcds)]
    following = 0
    while True:
        whole = min(left) >= rows
        for xcd in range(num_xcds):
            run = rows if whole else left[xcd]
            given[xcd] += range(following, following + run)
            following += run
            left[xcd] -= run
        if not whole:
            return [given[pid % num_xcds][pid // num_xcds] for pid in range(num_pids)]


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


def longest_first(rows, cols, size):
    """Bands of columns; in each the rows, turned upside down."""
    walk = []
    for first in range(0, cols, size):
        walk += [(m, n) for m in reversed(range(rows)) for n in range(first, min(first + size, cols))]
    return walk


def paired(rows, cols, size):
    """Bands of columns; in each take a row from the end, then one from the beginning, until none is left."""
    walk = []
    for first in range(0, cols, size):
        left = list(range(rows))
        while left:
            for end in (-1, 0):
                if left:
                    m = left.pop(end)
                    walk += [(m, n) for n in range(first, min(first + size, cols))]
    return walk


def group_n(rows, cols, size):
    return [(m, n) for n, m in group_m(cols, rows, size)]


def wgm(rows, cols, size, xcc, group):
    """hipBLASLt's two maps: ids gathered by XCD group by group, then bands of the launch's list of tiles."""
    num_pids, launched = rows * cols, row(rows, cols)  # dimension 0, the columns, is the fast one
    gathered = list(range(num_pids))
    if xcc > 1:
        group = {0: num_pids, -1: 304}.get(group, group)
        for first in range(0, num_pids, group):
            ids = [pid for pid in range(first, min(first + group, num_pids)) if pid < num_pids - num_pids % xcc]
            turns, following = min(group, num_pids - first) // xcc, first
            for xcd in range(xcc) if turns else ():
                for pid in ids[xcd::xcc]:
                    gathered[pid] = following
                    following += 1
    place = dict(zip(launched, launched, strict=True))
    for band in bands(rows if size >= 0 else cols, max(abs(size), 1)):
        if size >= 0:
            asked, given = ([(m, n) for m in band for n in range(cols)], [(m, n) for n in range(cols) for m in band])
        else:
            asked, given = ([(m, n) for n in band for m in range(rows)], [(m, n) for m in range(rows) for n in band])
        place |= zip(asked, given, strict=True)
    return [place[launched[pid]] for pid in gathered]


def bands(length, size):
    return [range(first, min(first + size, length)) for first in range(0, length, size)]


def xcd_swizzle(rows, cols, group):
    """Launched down the columns; the ids that are dealt out are counted along the rows."""
    launched = column(rows, cols)
    if not group:
        return launched
    counted, walk = row(rows, cols), group_m(rows, cols, group)
    dealt = dict(zip(counted, (walk[rank] for rank in contiguous(rows * cols, 8)), strict=True))
    return [dealt[tile] for tile in launched]


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


def block_first(rows, cols):
    return row(rows, cols)


def head_first(rows, cols):
    return column(rows, cols)


def panel_snake(rows, cols, width):
    walk = []
    for index, first in enumerate(range(0, cols, width)):
        down = range(rows) if index % 2 == 0 else range(rows - 1, -1, -1)
        walk += [(m, n) for m in down for n in range(first, min(first + width, cols))]
    return walk


def blocks(num_m, num_n, rows, cols, size):
    return _in_blocks(num_m, num_n, rows, cols, lambda high, wide: group_m(high, wide, size))


def morton_blocks(num_m, num_n, rows, cols):
    return _in_blocks(num_m, num_n, rows, cols, morton)


def _in_blocks(num_m, num_n, rows, cols, inner):
    walk = []
    for m in range(0, num_m, rows):
        for n in range(0, num_n, cols):
            walk += [(m + i, n + j) for i, j in inner(min(rows, num_m - m), min(cols, num_n - n))]
    return walk


def boxes(sides, x, y, z):
    """Cells of a box, in the order z, y, x from slow to fast, box after box in the same order."""
    starts = [
        (cx, cy, cz) for cz in range(0, sides[2], z) for cy in range(0, sides[1], y) for cx in range(0, sides[0], x)
    ]
    walk = []
    for cx, cy, cz in starts:
        walk += [
            (i, j, k)
            for k in range(cz, min(cz + z, sides[2]))
            for j in range(cy, min(cy + y, sides[1]))
            for i in range(cx, min(cx + x, sides[0]))
        ]
    return walk


def morton_3d(sides):
    """Cells sorted by their interleaved bits, z above y above x."""

    def key(cell):
        return [(cell[axis] >> bit) & 1 for bit in reversed(range(16)) for axis in (2, 1, 0)]

    return sorted(boxes(sides, *sides), key=key)


def _with_xcds(name, rows, cols, num_xcds, params):
    """Tile by rank of the families that read ``num_xcds`` themselves."""
    num_pids = rows * cols
    if name == "windowed":
        walk, ids = group_m(rows, cols, params["window"]), chunked(num_pids, num_xcds, params["chunk"])
    elif name == "column_panels":
        panel = min(params["width"], cols) * rows
        walk, ids = group_n(rows, cols, params["width"]), row_bands(num_pids, num_xcds, panel)
    elif name == "row_panels":
        panel = min(params["height"], rows) * cols
        walk, ids = group_m(rows, cols, params["height"]), row_bands(num_pids, num_xcds, panel)
    elif name == "head_groups":
        walked = {1: group_n, 2: longest_first, 3: paired}[params["walk"]]
        walk, ids = walked(rows, cols, params["size"]), contiguous(num_pids, num_xcds)
    elif name == "head_first_swizzled":
        walk, ids = column(rows, cols), contiguous(num_pids, num_xcds)
    else:
        heads = contiguous(cols, num_xcds)
        return [(m, heads[n]) for m, n in row(rows, cols)]
    return [walk[rank] for rank in ids]


PLACEMENTS = ("identity", "reverse", "contiguous", "contiguous_naive", "chunked", "row_bands")
WITH_XCDS = ("windowed", "column_panels", "row_panels", "head_groups", "head_first_swizzled", "block_first_swizzled")


def tiles_of(parts, sides, num_xcds):
    """Tile of each hardware id under ``[(name, params), ...]``, or its logical id where no order is among them."""
    num_pids = 1
    for side in sides:
        num_pids *= side
    ids = list(range(num_pids))
    for name, params in parts:
        if name in PLACEMENTS:
            placed = globals()[name](num_pids, num_xcds, **params)
            ids = [placed[rank] for rank in ids]
        else:
            if name in WITH_XCDS:
                walk = _with_xcds(name, *sides, num_xcds, params)
            elif len(sides) == 3:
                walk = globals()[name](sides, **params)
            else:
                walk = globals()[name](*sides, **params)
            return [walk[rank] for rank in ids]
    return ids
