"""What each tile of the megakernel touches, item by item, and the schedule of its queues: written plainly."""

from tests.suite.boxes import blocks, cells


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
    loaded = min(2**i for i in range(32) if 2**i >= of_h)  # the rest is masked out
    out.append(("done", False, cells(flags, (1, loaded), (pid_m, 0))))
    multiply(("H", "W2", "Y"), h, n, (pid_n - of_h) * p["BLOCK_N"])
    return out


def schedule(lengths, xcds, programs, pools, local):
    """When each id of a queue is handed out, and on which XCD, if id t takes lengths[t] and a CU runs one program."""
    queues = [list(range(pool, local, pools)) for pool in range(pools)]
    rest = list(range(local, len(lengths)))
    free = [(0, program) for program in range(programs)]
    begin, xcd = [None] * len(lengths), [None] * len(lengths)
    while free:
        now, program = min(free)
        free.remove((now, program))
        queue = queues[program % pools] or rest
        if queue:
            tile = queue.pop(0)
            begin[tile], xcd[tile] = now, program % xcds
            free.append((now + lengths[tile], program))
    return begin, xcd
