"""What each workgroup of a suite kernel touches, item by item: the oracle of the access models.

``KERNELS[name]`` gives the tensors, ``{name: (items, item bytes)}`` in the order they lie in memory, and a function
``(problem, workgroup) -> [(tensor, writes, items of the tile or None)]`` in program order.
"""

from itertools import product

from swizzle_benchmarks.suite.spmv import structure
from swizzle_sim.workload.kernels import kernel

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


def power_of_two(n):
    return next(2**i for i in range(32) if 2**i >= n)


def piece(n, block, i, shift=0):
    """Items of the i-th block of a vector of n, each ``shift`` further on."""
    return cells((n,), (block,), (i * block + shift,))


def tile(shape, block, at, down=0, right=0):
    """Items of a tile of a matrix, each ``down`` and ``right`` of its place."""
    return cells(shape, block, (at[0] * block[0] + down, at[1] * block[1] + right))


def softmax(p, w):
    row = cells((p["M"], p["N"]), (1, power_of_two(p["N"])), (w, 0))
    return [("x", False, row), ("y", True, row)]


def layer_norm(p, w):
    shape, block = (p["M"], p["N"]), min(32768, power_of_two(p["N"]))
    starts = range(0, p["N"], block)
    out = [("x", False, cells(shape, (1, block), (w, start))) for start in starts]
    for start in starts:
        row, vector = cells(shape, (1, block), (w, start)), cells(shape[1:], (block,), (start,))
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


def megakernel_tensors(p):
    m, k, h, n = p["M"], p["K"], p["H"], p["N"]
    items = {"X": m * k, "W1": k * h, "H": m * h, "W2": h * n, "Y": m * n}
    flags = blocks(m, p["BLOCK_M"]) * blocks(h, p["BLOCK_N"])
    return {name: (many, 2) for name, many in items.items()} | {"done": (flags, 4), "counter": (p["POOLS"] + 1, 4)}


def mlp_megakernel(p, tile):
    m, k, h, n = p["M"], p["K"], p["H"], p["N"]
    of_h, of_y = blocks(h, p["BLOCK_N"]), blocks(n, p["BLOCK_N"])
    pid_m, pid_n = divmod(tile, of_h + of_y)
    row, flags, out = pid_m * p["BLOCK_M"], (blocks(m, p["BLOCK_M"]), of_h), []

    def multiply(names, inner, width, col):
        for start in range(0, inner, p["BLOCK_K"]):
            out.append((names[0], False, cells((m, inner), (p["BLOCK_M"], p["BLOCK_K"]), (row, start))))
            out.append((names[1], False, cells((inner, width), (p["BLOCK_K"], p["BLOCK_N"]), (start, col))))
        out.append((names[2], True, cells((m, width), (p["BLOCK_M"], p["BLOCK_N"]), (row, col))))

    if pid_n < of_h:
        multiply(("X", "W1", "H"), k, h, pid_n * p["BLOCK_N"])
        return [*out, ("done", True, cells(flags, (1, 1), (pid_m, pid_n)))]
    out.append(("done", False, cells(flags, (1, power_of_two(of_h)), (pid_m, 0))))  # the rest is masked out
    multiply(("H", "W2", "Y"), h, n, (pid_n - of_h) * p["BLOCK_N"])
    return out


def attention(p, w):
    s, d, block_m, block_n = p["S"], p["D"], p["BLOCK_M"], p["BLOCK_N"]
    hkv = p.get("HKV", p["H"])
    block, head = w % blocks(s, block_m), w // blocks(s, block_m)
    key_heads = [z * hkv + h for z in range(p["B"]) for h in range(hkv) for _ in range(p["H"] // hkv)]
    mine = cells((p["B"] * p["H"], s, d), (1, block_m, d), (head, block * block_m, 0))
    out = [("Q", False, mine)]
    for start in range(0, s, block_n):
        last_query = min(s, block * block_m + block_m) - 1
        if not p["CAUSAL"] or start <= last_query:
            keys = cells((p["B"] * hkv, s, d), (1, block_n, d), (key_heads[head], start, 0))
            out += [("K", False, keys), ("V", False, keys)]
    return [*out, ("O", True, mine)]


def attention_persistent(p, tile):
    """The tile that `attention` numbers head by head."""
    block, head = divmod(tile, p["B"] * p["H"])
    return attention(p, head * blocks(p["S"], p["BLOCK_M"]) + block)


def attention_tensors(p):
    queries, keys = (p["B"] * heads * p["S"] * p["D"] for heads in (p["H"], p.get("HKV", p["H"])))
    return {"Q": (queries, 2), "K": (keys, 2), "V": (keys, 2), "O": (queries, 2)}


def attention_decode(p, w):
    b, h, hkv, s, d = (p[name] for name in ("B", "H", "HKV", "S", "D"))
    batch, head, split = w % b, w // b % h, w // b // h
    length = blocks(s, p["SPLITS"])  # keys of a split: the splits share S, rounded up
    keys = [key for key in range(s) if key // length == split]
    share = h // hkv
    query = batch * h + head
    out = [("Q", False, cells((b * h, d), (1, d), (query, 0)))]
    for i in range(0, len(keys), p["BLOCK_N"]):
        tile = (batch * hkv + head // share, keys[i], 0)
        box = cells((b * hkv, s, d), (1, p["BLOCK_N"], d), tile, lambda place: place[1] not in keys)
        out += [("K", False, box), ("V", False, box)]
    place = query * p["SPLITS"] + split
    return [*out, ("part", True, [place * d + i for i in range(d)]), ("lse", True, [place])]


def decode_tensors(p):
    b, h, hkv, s, d, splits = (p[name] for name in ("B", "H", "HKV", "S", "D", "SPLITS"))
    keys = (b * hkv * s * d, 2)
    return {"Q": (b * h * d, 2), "K": keys, "V": keys, "part": (b * h * splits * d, 4), "lse": (b * h * splits, 4)}


def batched_gemm(p, w):
    batch, m, n, k = (p[name] for name in ("BATCH", "M", "N", "K"))
    cols, rows = blocks(n, p["BLOCK_N"]), blocks(m, p["BLOCK_M"])
    col, row, z = w % cols * p["BLOCK_N"], w // cols % rows * p["BLOCK_M"], w // cols // rows
    out = []
    for start in range(0, k, p["BLOCK_K"]):
        out.append(("A", False, cells((batch, m, k), (1, p["BLOCK_M"], p["BLOCK_K"]), (z, row, start))))
        out.append(("B", False, cells((batch, k, n), (1, p["BLOCK_K"], p["BLOCK_N"]), (z, start, col))))
    return [*out, ("C", True, cells((batch, m, n), (1, p["BLOCK_M"], p["BLOCK_N"]), (z, row, col)))]


def batched_tensors(p):
    return {name: (p["BATCH"] * p[a] * p[b], 2) for name, a, b in (("A", "M", "K"), ("B", "K", "N"), ("C", "M", "N"))}


def paged_tables(p):
    found = kernel("attention_paged", **p).make_inputs(0)
    return found["length"].tolist(), found["table"].tolist()


def attention_paged(p, w):
    b, h, hkv, d, page, splits = (p[name] for name in ("B", "H", "HKV", "D", "PAGE", "SPLITS"))
    batch, head, split = w % b, w // b % h, w // b // h
    lengths, table = paged_tables(p)
    pages, query, most = blocks(lengths[batch], page), batch * h + head, blocks(p["S"], page)
    own = [i for i in range(pages) if i // blocks(pages, splits) == split]
    out = [("length", False, [batch]), ("Q", False, cells((b * h, d), (1, d), (query, 0)))]
    for i in own:
        first = table[batch][i] * page
        box = cells(
            (b * most * page, hkv, d),
            (page, 1, d),
            (first, head // (h // hkv), 0),
            lambda at, i=i, first=first: i * page + at[0] - first >= lengths[batch],
        )
        out += [("table", False, [batch * most + i]), ("K", False, box), ("V", False, box)]
    place = query * splits + split
    return [*out, ("part", True, cells((b * h * splits, d), (1, d), (place, 0))), ("lse", True, [place])]


def paged_tensors(p):
    b, h, d, most = p["B"], p["H"], p["D"], blocks(p["S"], p["PAGE"])
    keys, places = (b * most * p["PAGE"] * p["HKV"] * d, 2), b * h * p["SPLITS"]
    sizes = {"Q": (b * h * d, 2), "K": keys, "V": keys, "part": (places * d, 4), "lse": (places, 4)}
    return sizes | {"length": (b, 4), "table": (b * most, 4)}


def mla_decode(p, w):
    b, h, s, latent, rope, block = (p[name] for name in ("B", "H", "S", "LATENT", "ROPE", "BLOCK_H"))
    of_heads = blocks(h, block)
    batch, head, split = w % b, w // b % of_heads * block, w // b // of_heads
    wide, length = latent + rope, blocks(s, p["SPLITS"])
    keys = [key for key in range(s) if key // length == split]
    parts = (0, latent), (latent, rope)
    out = [("Q", False, cells((b, h, wide), (1, block, width), (batch, head, col))) for col, width in parts]
    for start in keys[:: p["BLOCK_N"]]:
        for col, width in parts:
            box = cells((b, s, wide), (1, p["BLOCK_N"], width), (batch, start, col), lambda at: at[1] not in keys)
            out.append(("KV", False, box))
    partial = cells((b, h, p["SPLITS"], latent), (1, block, 1, latent), (batch, head, split, 0))
    return [
        *out,
        ("part", True, partial),
        ("lse", True, cells((b, h, p["SPLITS"]), (1, block, 1), (batch, head, split))),
    ]


def mla_tensors(p):
    wide, places = p["LATENT"] + p["ROPE"], p["B"] * p["H"] * p["SPLITS"]
    cached = {"Q": (p["B"] * p["H"] * wide, 2), "KV": (p["B"] * p["S"] * wide, 2)}
    return cached | {"part": (places * p["LATENT"], 4), "lse": (places, 4)}


def varlen_starts(p):
    return kernel("attention_varlen", **p).make_inputs(0)["cu_seqlens"].tolist()


def attention_varlen(p, w):
    h, hkv, d, block_m, block_n = (p[name] for name in ("H", "HKV", "D", "BLOCK_M", "BLOCK_N"))
    block, column = w % blocks(p["S"], block_m), w // blocks(p["S"], block_m)
    batch, head = column // h, column % h
    starts = varlen_starts(p)
    mine = range(starts[batch], starts[batch + 1])
    queries = list(mine)[block * block_m : (block + 1) * block_m]
    out = [("cu_seqlens", False, [batch]), ("cu_seqlens", False, [batch + 1])]
    if not queries:
        return out
    own = cells((starts[-1], h, d), (block_m, 1, d), (queries[0], head, 0), lambda at: at[0] not in queries)
    out.append(("Q", False, own))
    for start in mine[::block_n]:
        if not p["CAUSAL"] or start <= queries[-1]:
            at = (start, head // (h // hkv), 0)
            keys = cells((starts[-1], hkv, d), (block_n, 1, d), at, lambda at: at[0] not in mine)
            out += [("K", False, keys), ("V", False, keys)]
    return [*out, ("O", True, own)]


def varlen_tensors(p):
    tokens = varlen_starts(p)[-1]
    queries, keys = (tokens * heads * p["D"] for heads in (p["H"], p["HKV"]))
    return {"Q": (queries, 2), "K": (keys, 2), "V": (keys, 2), "O": (queries, 2), "cu_seqlens": (p["B"] + 1, 4)}


def gemm(p, tile):
    pid_m, pid_n = divmod(tile, blocks(p["N"], p["BLOCK_N"]))
    row, col = pid_m * p["BLOCK_M"], pid_n * p["BLOCK_N"]
    out = []
    for start in range(0, p["K"], p["BLOCK_K"]):
        out.append(("A", False, cells((p["M"], p["K"]), (p["BLOCK_M"], p["BLOCK_K"]), (row, start))))
        out.append(("B", False, cells((p["K"], p["N"]), (p["BLOCK_K"], p["BLOCK_N"]), (start, col))))
    return [*out, ("C", True, cells((p["M"], p["N"]), (p["BLOCK_M"], p["BLOCK_N"]), (row, col)))]


def gemm_tensors(p):
    return {"A": (p["M"] * p["K"], 2), "B": (p["K"] * p["N"], 2), "C": (p["M"] * p["N"], 2)}


def jagged_ends(p):
    return kernel("gemm_jagged", **p).make_inputs(0)["offset"].tolist()


def gemm_jagged(p, w):
    groups, n, k = p["GROUPS"], p["N"], p["K"]
    tile, pid_n = divmod(w, blocks(n, p["BLOCK_N"]))
    group, block = divmod(tile, blocks(p["S"], p["BLOCK_M"]))
    ends, col = jagged_ends(p), pid_n * p["BLOCK_N"]
    mine = list(range(ends[group], ends[group + 1]))[block * p["BLOCK_M"] :][: p["BLOCK_M"]]
    out = [("offset", False, [group]), ("offset", False, [group + 1])]
    if not mine:
        return out

    def panel(width, side, start):
        return cells((ends[-1], width), (p["BLOCK_M"], side), (mine[0], start), lambda place: place[0] not in mine)

    for start in range(0, k, p["BLOCK_K"]):
        out.append(("A", False, panel(k, p["BLOCK_K"], start)))
        out.append(("B", False, cells((groups, n, k), (1, p["BLOCK_N"], p["BLOCK_K"]), (group, col, start))))
    bias = cells((groups, n), (1, p["BLOCK_N"]), (group, col))
    return [*out, ("bias", False, bias), ("C", True, panel(n, p["BLOCK_N"], col))]


def jagged_tensors(p):
    rows, groups = jagged_ends(p)[-1], p["GROUPS"]
    sizes = {"A": rows * p["K"], "B": groups * p["N"] * p["K"], "bias": groups * p["N"], "C": rows * p["N"]}
    return {name: (items, 2) for name, items in sizes.items()} | {"offset": (groups + 1, 4)}


def gemm_splitk(p, u):
    m, n, k = p["M"], p["N"], p["K"]
    split, tile = u % p["SPLITS"], u // p["SPLITS"]
    pid_m, pid_n = divmod(tile, blocks(n, p["BLOCK_N"]))
    row, col = pid_m * p["BLOCK_M"], pid_n * p["BLOCK_N"]
    starts = list(range(0, k, p["BLOCK_K"]))
    each = blocks(len(starts), p["SPLITS"])
    out = []
    for start in starts[split * each : (split + 1) * each]:
        out.append(("A", False, cells((m, k), (p["BLOCK_M"], p["BLOCK_K"]), (row, start))))
        out.append(("B", False, cells((k, n), (p["BLOCK_K"], p["BLOCK_N"]), (start, col))))
    return [*out, ("part", True, cells((p["SPLITS"], m, n), (1, p["BLOCK_M"], p["BLOCK_N"]), (split, row, col)))]


def splitk_tensors(p):
    m, n, k = p["M"], p["N"], p["K"]
    return {"A": (m * k, 2), "B": (k * n, 2), "part": (p["SPLITS"] * m * n, 4)}


def row_tiles(p):
    """[(expert, rows)] of the tiles: rows are dealt to experts in proportion to 3E, 3E - 2, 3E - 4 ..., in order."""
    experts, rows = p["EXPERTS"], p["TOKENS"] * p["TOPK"]
    load = [3 * experts - 2 * e for e in range(experts)]
    out, first = [], 0
    for e in range(experts):
        end = rows * sum(load[: e + 1]) // sum(load)
        mine = list(range(first, end))
        out += [(e, mine[i : i + p["BLOCK_M"]]) for i in range(0, len(mine), p["BLOCK_M"])]
        first = end
    return out


def grouped_gemm(p, w):
    n, k, experts, rows = p["N"], p["K"], p["EXPERTS"], p["TOKENS"] * p["TOPK"]
    tile, pid_n = divmod(w, blocks(n, p["BLOCK_N"]))
    expert, mine = row_tiles(p)[tile]
    col = pid_n * p["BLOCK_N"]

    def panel(width, block, start):
        return cells((rows, width), (p["BLOCK_M"], block), (mine[0], start), lambda place: place[0] not in mine)

    out = [(name, False, [tile]) for name in ("expert", "first_row", "end_row")]
    for start in range(0, k, p["BLOCK_K"]):
        out.append(("A", False, panel(k, p["BLOCK_K"], start)))
        out.append(("B", False, cells((experts, k, n), (1, p["BLOCK_K"], p["BLOCK_N"]), (expert, start, col))))
    return [*out, ("C", True, panel(n, p["BLOCK_N"], col))]


def grouped_tensors(p):
    rows, tables = p["TOKENS"] * p["TOPK"], (len(row_tiles(p)), 4)
    tensors = {"A": (rows * p["K"], 2), "B": (p["EXPERTS"] * p["K"] * p["N"], 2), "C": (rows * p["N"], 2)}
    return tensors | dict.fromkeys(("expert", "first_row", "end_row"), tables)


def moe_blocks(p):
    """(expert, slots) of each block that has any: slot t * TOPK + j is the j-th expert of token t, in rising order."""
    tables = kernel("moe_gemm", **p).make_inputs(0)
    rows, found = p["TOKENS"] * p["TOPK"], []
    for block in range(int(tables["bound"][0]) // p["BLOCK_M"]):
        slots = tables["slot"][block * p["BLOCK_M"] : (block + 1) * p["BLOCK_M"]].tolist()
        found.append((int(tables["expert"][block]), [slot if slot < rows else None for slot in slots]))
    return found, tables["slot"].size, tables["expert"].size


def moe_gemm(p, w):
    n, k, block_m, experts = p["N"], p["K"], p["BLOCK_M"], p["EXPERTS"]
    tile, pid_n = divmod(w, blocks(n, p["BLOCK_N"]))
    valid, _, _ = moe_blocks(p)
    out = [("bound", False, [0])]
    if tile >= len(valid):
        return out
    expert, slots = valid[tile]

    def gathered(of, width, block, start):
        return [
            None if slot is None or col >= width else of(slot) * width + col
            for slot in slots
            for col in range(start, start + block)
        ]

    out += [("slot", False, list(range(tile * block_m, (tile + 1) * block_m))), ("expert", False, [tile])]
    col = pid_n * p["BLOCK_N"]
    for start in range(0, k, p["BLOCK_K"]):
        out.append(("A", False, gathered(lambda slot: slot // p["TOPK"], k, p["BLOCK_K"], start)))
        whole, tile, at = (k, n), (p["BLOCK_K"], p["BLOCK_N"]), (start, col)
        if p.get("K_FAST"):
            whole, tile, at = whole[::-1], tile[::-1], at[::-1]
        out.append(("B", False, cells((experts, *whole), (1, *tile), (expert, *at))))
    return [*out, ("C", True, gathered(lambda slot: slot, n, p["BLOCK_N"], col))]


def moe_tensors(p):
    _, slots, of_block = moe_blocks(p)
    rows = p["TOKENS"] * p["TOPK"]
    big = {"A": (p["TOKENS"] * p["K"], 2), "B": (p["EXPERTS"] * p["K"] * p["N"], 2), "C": (rows * p["N"], 2)}
    return big | {"bound": (1, 4), "slot": (slots, 4), "expert": (of_block, 4)}


def conv_2d(p, w):
    n, h, wide, c, k, r, s = (p[name] for name in ("N", "H", "W", "C", "K", "R", "S"))
    patches = list(product(range(n), range(0, h, p["BLOCK_H"]), range(0, wide, p["BLOCK_W"])))
    (image, row, col), channel = patches[w // blocks(k, p["BLOCK_K"])], w % blocks(k, p["BLOCK_K"]) * p["BLOCK_K"]
    box = (1, p["BLOCK_H"], p["BLOCK_W"])
    out = []
    for i, j, start in product(range(r), range(s), range(0, c, p["BLOCK_C"])):
        at = (image, row + i - (r - 1) // 2, col + j - (s - 1) // 2, start)
        out.append(("X", False, cells((n, h, wide, c), (*box, p["BLOCK_C"]), at)))
        weights = cells((r, s, c, k), (1, 1, p["BLOCK_C"], p["BLOCK_K"]), (i, j, start, channel))
        out.append(("W", False, weights))
    return [*out, ("Y", True, cells((n, h, wide, k), (*box, p["BLOCK_K"]), (image, row, col, channel)))]


def conv_tensors(p):
    pixels = p["N"] * p["H"] * p["W"]
    return {"X": (pixels * p["C"], 2), "W": (p["R"] * p["S"] * p["C"] * p["K"], 2), "Y": (pixels * p["K"], 2)}


def stencil_3d(p, w):
    shape, block = (p["NZ"], p["NY"], p["NX"]), (p["BLOCK_Z"], p["BLOCK_Y"], p["BLOCK_X"])
    starts = list(product(*(range(0, side, step) for side, step in zip(shape, block, strict=True))))
    at = starts[w]  # x fastest, as the hardware counts
    moves = product((-1, 0, 1), repeat=3)
    moved = [cells(shape, block, [a + d for a, d in zip(at, move, strict=True)]) for move in moves]
    return [*(("X", False, items) for items in moved), ("Y", True, cells(shape, block, at))]


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
    "attention": (attention_tensors, attention),
    "attention_gqa": (attention_tensors, attention),
    "attention_decode": (decode_tensors, attention_decode),
    "attention_paged": (paged_tensors, attention_paged),
    "attention_persistent": (attention_tensors, attention_persistent),
    "attention_varlen": (varlen_tensors, attention_varlen),
    "batched_gemm": (batched_tensors, batched_gemm),
    "gemm": (gemm_tensors, gemm),
    "gemm_cluster": (gemm_tensors, gemm),
    "gemm_dynamic": (lambda p: gemm_tensors(p) | {"counter": (p["POOLS"] + 1, 4)}, gemm),
    "gemm_jagged": (jagged_tensors, gemm_jagged),
    "gemm_splitk": (splitk_tensors, gemm_splitk),
    "grouped_gemm": (grouped_tensors, grouped_gemm),
    "mla_decode": (mla_tensors, mla_decode),
    "moe_gemm": (moe_tensors, moe_gemm),
    "mlp_megakernel": (megakernel_tensors, mlp_megakernel),
    "conv_2d": (conv_tensors, conv_2d),
    "stencil_3d": (lambda p: dict.fromkeys("XY", (p["NX"] * p["NY"] * p["NZ"], 4)), stencil_3d),
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
