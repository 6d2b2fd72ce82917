"""What each workgroup of the paper's kernels touches, element by element: the oracle of the access models.

``KERNELS[name]`` gives the tensors, ``{name: (items, item bytes)}`` in the order they lie in memory, and a function
``(problem, workgroup) -> [(tensor, writes, items of the tile or None)]`` in program order.
"""

from swizzle_benchmarks.suite.spmv import structure

ALIGN_BYTES = 2 * 1024 * 1024


def power_of_two(n):
    size = 1
    while size < n:
        size *= 2
    return size


def blocks(n, block):
    return len(range(0, n, block))


def row_of(n, block, row):
    """Items of one row of an array of width n, padded to a block."""
    return [row * n + c if c < n else None for c in range(block)]


def piece(n, block, i, shift=0):
    """Items of the i-th block of a vector of n, each ``shift`` further on."""
    return [j + shift if 0 <= j + shift < n else None for j in range(i * block, (i + 1) * block)]


def tile(shape, block, at, down=0, right=0):
    """Items of a tile of a row-major array, each ``down`` and ``right`` of its place."""
    out = []
    for r in range(at[0] * block[0], (at[0] + 1) * block[0]):
        for c in range(at[1] * block[1], (at[1] + 1) * block[1]):
            r2, c2 = r + down, c + right
            out.append(r2 * shape[1] + c2 if 0 <= r2 < shape[0] and 0 <= c2 < shape[1] else None)
    return out


def softmax(p, w):
    row = row_of(p["N"], power_of_two(p["N"]), w)
    return [("x", False, row), ("y", True, row)]


def layer_norm(p, w):
    n = p["N"]
    block = min(32768, power_of_two(n))
    rows, vectors = [], []
    for start in range(0, n, block):
        vectors.append([c if c < n else None for c in range(start, start + block)])
        rows.append([None if c is None else w * n + c for c in vectors[-1]])
    out = [("x", False, row) for row in rows]
    for row, vector in zip(rows, vectors, strict=True):
        out += [("x", False, row), ("w", False, vector), ("b", False, vector), ("y", True, row)]
    return out


def fused_elementwise(p, w):
    items = piece(p["n_elements"], p["BLOCK_SIZE"], w)
    return [*((name, False, items) for name in "xyz"), ("out", True, items)]


def black_scholes(p, w):
    moved = {shift: piece(p["n_assets"], p["BLOCK_SIZE"], w, shift) for shift in (-1, 0, 1)}
    return [("s", False, moved[0]), *(("v", False, items) for items in moved.values()), ("price", True, moved[0])]


def of_grid(shape, block, w):
    """Tile of hardware id w, first axis fastest."""
    return w % blocks(shape[0], block[0]), w // blocks(shape[0], block[0])


def smith_waterman(p, w):
    shape, block = (p["M"], p["N"]), (p["BLOCK_SIZE_M"], p["BLOCK_SIZE_N"])
    m, n = of_grid(shape, block, w)
    return [
        ("seq1", False, piece(shape[0], block[0], m)),
        ("seq2", False, piece(shape[1], block[1], n)),
        ("score", True, tile(shape, block, (m, n))),
    ]


def transpose(p, w):
    shape, block = (p["M"], p["N"]), (p["BLOCK_SIZE_M"], p["BLOCK_SIZE_N"])
    m, n = of_grid(shape, block, w)
    return [("x", False, tile(shape, block, (m, n))), ("y", True, tile(shape[::-1], block[::-1], (n, m)))]


def stencil_2d(p, w):
    shape, block = (p["M"], p["N"]), (p["BLOCK_SIZE_M"], p["BLOCK_SIZE_N"])
    at = of_grid(shape, block, w)
    moves = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
    return [*(("x", False, tile(shape, block, at, *move)) for move in moves), ("y", True, tile(shape, block, at))]


def fdtd_2d(p, w):
    shape, block = (p["Nx"], p["Ny"]), (p["BLOCK_SIZE_X"], p["BLOCK_SIZE_Y"])
    at = of_grid(shape, block, w)
    moved = {move: tile(shape, block, at, *move) for move in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))}
    here = moved[0, 0]
    return [
        ("ex", False, moved[0, 1]),
        ("ex", False, here),
        ("ey", False, moved[1, 0]),
        ("ey", False, here),
        ("hz", False, here),
        ("hz", True, here),
        ("hz", False, here),
        ("hz", False, moved[0, -1]),
        ("ex", False, here),
        ("ex", True, here),
        ("hz", False, here),
        ("hz", False, moved[-1, 0]),
        ("ey", False, here),
        ("ey", True, here),
    ]


def spmv_touches(p, w):
    indptr, indices = structure(p["M"], p["N"], p["NNZ_PER_ROW"])
    out = [("indptr", False, [w]), ("indptr", False, [w + 1])]
    for start in range(indptr[w], indptr[w + 1], p["BLOCK_SIZE"]):
        at = [i if i < indptr[w + 1] else None for i in range(start, start + p["BLOCK_SIZE"])]
        out += [
            ("indices", False, at),
            ("values", False, at),
            ("x", False, [None if i is None else int(indices[i]) for i in at]),
        ]
    return [*out, ("y", True, [w])]


def gemm_streamk(p, w):
    """K steps are dealt out one by one, and the tile each belongs to is looked up in the grouped order."""
    shape, block = (p["M"], p["N"]), (p["BLOCK_SIZE_M"], p["BLOCK_SIZE_N"])
    k, block_k, programs = p["K"], p["BLOCK_SIZE_K"], p["PROGRAMS"]
    tiles_m, tiles_n, steps = blocks(shape[0], block[0]), blocks(shape[1], block[1]), blocks(k, block_k)
    order = [
        (m, n)
        for first in range(0, tiles_m, p["GROUP_M"])
        for n in range(tiles_n)
        for m in range(first, min(first + p["GROUP_M"], tiles_m))
    ]
    whole = len(order) - len(order) % programs
    left = [(t, s) for t in range(whole, len(order)) for s in range(steps)]
    share = [len(left) // programs + (q < len(left) % programs) for q in range(programs)]
    owner = [q for q in range(programs) for _ in range(share[q])]

    def step(t, s):
        m, n = order[t]
        return [
            ("a", False, tile((shape[0], k), (block[0], block_k), (m, s))),
            ("b", False, tile((k, shape[1]), (block_k, block[1]), (s, n))),
        ]

    store = [("c", True, tile(shape, block, order[t])) for t in range(len(order))]
    out = []
    for t in range(w, whole, programs):
        for s in range(steps):
            out += step(t, s)
        out.append(store[t])
    mine = [x for x, q in zip(left, owner, strict=True) if q == w]
    for t in dict.fromkeys(t for t, _ in mine):
        for _, s in (x for x in mine if x[0] == t):
            out += step(t, s)
        size = block[0] * block[1]
        if (t, 0) in mine:
            others = dict.fromkeys(q for x, q in zip(left, owner, strict=True) if x[0] == t and q != w)
            for q in others:
                out += [("lock", False, [q]), ("partial", False, list(range(q * size, (q + 1) * size)))]
            out.append(store[t])
        else:
            out += [("partial", True, list(range(w * size, (w + 1) * size))), ("lock", True, [w])]
    return out


def _spmv_tensors(p):
    items = structure(p["M"], p["N"], p["NNZ_PER_ROW"])[1].size
    return {"indptr": (p["M"] + 1, 4), "indices": (items, 4), "values": (items, 2), "x": (p["N"], 2), "y": (p["M"], 2)}


def _streamk_tensors(p):
    tile_items = p["BLOCK_SIZE_M"] * p["BLOCK_SIZE_N"]
    return {
        "a": (p["M"] * p["K"], 2),
        "b": (p["K"] * p["N"], 2),
        "c": (p["M"] * p["N"], 2),
        "partial": (p["PROGRAMS"] * tile_items, 4),
        "lock": (p["PROGRAMS"], 4),
    }


KERNELS = {
    "softmax": (lambda p: dict.fromkeys("xy", (p["M"] * p["N"], 2)), softmax),
    "layer_norm": (
        lambda p: {"x": (p["M"] * p["N"], 2), "w": (p["N"], 2), "b": (p["N"], 2), "y": (p["M"] * p["N"], 2)},
        layer_norm,
    ),
    "fused_elementwise": (lambda p: dict.fromkeys(("x", "y", "z", "out"), (p["n_elements"], 2)), fused_elementwise),
    "black_scholes": (lambda p: dict.fromkeys(("s", "v", "price"), (p["n_assets"], 4)), black_scholes),
    "smith_waterman": (
        lambda p: {"seq1": (p["M"], 1), "seq2": (p["N"], 1), "score": (p["M"] * p["N"], 4)},
        smith_waterman,
    ),
    "transpose": (lambda p: dict.fromkeys("xy", (p["M"] * p["N"], 2)), transpose),
    "stencil_2d": (lambda p: dict.fromkeys("xy", (p["M"] * p["N"], 2)), stencil_2d),
    "fdtd_2d": (lambda p: dict.fromkeys(("ex", "ey", "hz"), (p["Nx"] * p["Ny"], 4)), fdtd_2d),
    "spmv": (_spmv_tensors, spmv_touches),
    "gemm_streamk": (_streamk_tensors, gemm_streamk),
}


def touches(name, problem, workgroup):
    """[(tensor, writes, byte addresses or None, item bytes)] of one workgroup; instructions without items left out."""
    tensors, of_workgroup = KERNELS[name]
    base, at = {}, 0
    for tensor, (items, item_bytes) in tensors(problem).items():
        base[tensor] = (at, item_bytes)
        at += -(-items * item_bytes // ALIGN_BYTES) * ALIGN_BYTES
    out = []
    for tensor, writes, items in of_workgroup(problem, workgroup):
        if any(i is not None for i in items):
            first, item_bytes = base[tensor]
            out.append((tensor, writes, [None if i is None else first + i * item_bytes for i in items], item_bytes))
    return out
