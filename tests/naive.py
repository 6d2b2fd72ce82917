"""Oracles: slow, written to be read, sharing nothing with ``xcd_model`` but the fields of its dataclasses."""

from collections import OrderedDict, defaultdict

SECTOR_BYTES = 32
ALIGN_BYTES = 2 * 1024 * 1024
COLUMNS = (
    "instructions",
    "read_requests",
    "write_requests",
    "read_misses",
    "write_misses",
    "writebacks",
    "mall_requests",
    "mall_hits",
)


class LruCache:
    """A cold set-associative LRU cache; each line carries the set of its dirty pieces."""

    def __init__(self, cache):
        self.cache = cache
        self.sets = defaultdict(OrderedDict)

    def touch(self, line, dirty=()):
        """Make ``line`` the most recent; return whether it was held, and the dirty pieces of the line it drove out."""
        held = self.sets[set_of(line, self.cache)]
        driven_out = set()
        hit = line in held
        if not hit:
            if len(held) == self.cache.ways:
                _, driven_out = held.popitem(last=False)
            held[line] = set()
        held[line] |= set(dirty)
        held.move_to_end(line)
        return hit, driven_out

    def dirty_pieces(self):
        return sum(len(pieces) for held in self.sets.values() for pieces in held.values())


def set_of(line, cache):
    """Set of a line: (channel, set in the channel).

    Pieces of ``index_interleave_bytes`` are dealt to channels by the XOR of all digits of the piece's number, base the
    number of channels. Within a channel, piece after piece, lines take the sets in turn.
    """
    if cache.index == "modulo":
        return 0, line % cache.sets
    lines_per_piece = cache.index_interleave_bytes // cache.line_bytes
    piece, within = divmod(line, lines_per_piece)
    channel, digits = 0, piece
    while digits and cache.index_channels > 1:
        digits, digit = divmod(digits, cache.index_channels)
        channel ^= digit
    place = piece // cache.index_channels * lines_per_piece + within
    return channel, place % (cache.sets // cache.index_channels)


def lru_hits(lines, cache):
    cache = LruCache(cache)
    return [cache.touch(int(line))[0] for line in lines]


def pieces(sector_bits, request_bytes):
    """Request-sized pieces of a line that hold one of the sectors whose bits are set."""
    sectors = [bit for bit in range(8) if int(sector_bits) >> bit & 1]
    return {sector * SECTOR_BYTES // request_bytes for sector in sectors}


def touches(trace, instruction):
    """(line, sector bits) of one instruction, in order, and whether it writes."""
    template = int(trace.template[instruction])
    entries = range(int(trace.rel_start[template]), int(trace.rel_start[template + 1]))
    base = int(trace.base[instruction])
    return [(base + int(trace.rel[e]), int(trace.sectors[e])) for e in entries], bool(trace.is_write[template])


def queues(n_workgroups, n_xcds, offset):
    """Hardware ids of each XCD, in order: round robin."""
    of_xcd = [[] for _ in range(n_xcds)]
    for w in range(n_workgroups):
        of_xcd[(w + offset) % n_xcds].append(w)
    return of_xcd


def turns(trace, order, gpu, workgroups_per_cu):
    """Lists of (XCD, instruction), one list a turn: every resident workgroup issues one, slot by slot."""
    waiting = queues(len(order), gpu.xcds, gpu.dispatch_offset)
    running = {(slot, xcd): [] for slot in range(gpu.cus_per_xcd * workgroups_per_cu) for xcd in range(gpu.xcds)}
    while True:
        turn = []
        for place, todo in running.items():  # in order of slot, then XCD
            if not todo and waiting[place[1]]:
                workgroup = int(order[waiting[place[1]].pop(0)])
                todo.extend(range(int(trace.start[workgroup]), int(trace.start[workgroup + 1])))
            if todo:
                turn.append((place[1], todo.pop(0)))
        if not turn:
            return
        yield turn


def replay(trace, order, gpu, workgroups_per_cu):
    """Counts of every turn: a list of turns, each a list of one dictionary an XCD.

    L2s are written back, and allocate without a fetch on a write miss. The memory-side cache is looked up for read
    misses only. What is dirty at the end is written back in the last turn.
    """
    l2 = [LruCache(gpu.l2) for _ in range(gpu.xcds)]
    mall = LruCache(gpu.mall) if gpu.mall else None
    timeline = []
    for turn in turns(trace, order, gpu, workgroups_per_cu):
        timeline.append([dict.fromkeys(COLUMNS, 0) for _ in range(gpu.xcds)])
        for xcd, instruction in turn:
            _issue(trace, instruction, gpu, l2[xcd], mall, timeline[-1][xcd])
    for xcd in range(gpu.xcds):
        timeline[-1][xcd]["writebacks"] += l2[xcd].dirty_pieces()
    return timeline


def _issue(trace, instruction, gpu, l2, mall, count):
    lines, is_write = touches(trace, instruction)
    count["instructions"] += 1
    for line, sectors in lines:
        if is_write:
            dirty = pieces(sectors, gpu.l2.write_request_bytes)
            count["write_requests"] += len(dirty)
        else:
            dirty = set()
            count["read_requests"] += len(pieces(sectors, gpu.l2.read_request_bytes))
        hit, driven_out = l2.touch(line, dirty)
        count["writebacks"] += len(driven_out)
        if hit:
            continue
        count["write_misses" if is_write else "read_misses"] += 1
        if not is_write and mall:
            count["mall_requests"] += 1
            count["mall_hits"] += mall.touch(line)[0]


def as_table(timeline):
    """Nested lists (turn, XCD, column) of a replay's counts."""
    return [[[xcd[column] for column in COLUMNS] for xcd in turn] for turn in timeline]


def distinct_lines(trace, order, gpu):
    """Number of distinct lines that the workgroups of each XCD touch."""
    counts = []
    for mine in queues(len(order), gpu.xcds, gpu.dispatch_offset):
        lines = set()
        for w in mine:
            lines |= lines_of_workgroup(trace, int(order[w]))
        counts.append(len(lines))
    return counts


def lines_of_workgroup(trace, workgroup):
    span = range(int(trace.start[workgroup]), int(trace.start[workgroup + 1]))
    return {line for i in span for line, _ in touches(trace, i)[0]}


def rectangle(*, base_bytes, pitch_bytes, item_bytes, shape, row, col, rows, cols, line_bytes):
    """Lines of a rectangle clipped to an array, byte by byte: {line: set of sectors}, in the order first touched."""
    found = {}
    for r in range(row, min(row + rows, shape[0])):
        for c in range(col, min(col + cols, shape[1])):
            for byte in range(item_bytes):
                address = base_bytes + r * pitch_bytes + c * item_bytes + byte
                found.setdefault(address // line_bytes, set()).add(address % line_bytes // SECTOR_BYTES)
    return found


def gemm_touches(problem, workgroup, line_bytes):
    """What one workgroup of the suite's GEMM touches: a list of (tensor, writes, {line: sectors}) in program order.

    From index arithmetic on the elements of ``C[i, j] += A[i, k] B[k, j]``; tensors lie one after the other, each
    from a multiple of `ALIGN_BYTES`.
    """
    m, n, k = problem["M"], problem["N"], problem["K"]
    block_m, block_n, block_k = problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"]
    base, at = {}, 0
    for name, items in (("A", m * k), ("B", k * n), ("C", m * n)):
        base[name] = at
        while at < base[name] + 2 * items:
            at += ALIGN_BYTES
    tiles_n = len(range(0, n, block_n))
    i = [x for x in range(m) if x // block_m == workgroup // tiles_n]
    j = [x for x in range(n) if x // block_n == workgroup % tiles_n]

    def lines(name, width, first, second):
        found = {}
        for x in first:
            for y in second:
                address = base[name] + 2 * (x * width + y)  # an item never straddles sectors: both are even
                found.setdefault(address // line_bytes, set()).add(address % line_bytes // SECTOR_BYTES)
        return found

    out = []
    for step in range(0, k, block_k):
        inner = [x for x in range(k) if x // block_k == step // block_k]
        out.append(("A", False, lines("A", k, i, inner)))
        out.append(("B", False, lines("B", n, inner, j)))
    out.append(("C", True, lines("C", n, i, j)))
    return out


def totals(timeline):
    """Totals over turns: (XCD, column)."""
    table = as_table(timeline)
    return [
        [sum(turn[x][c] for turn in table) for c in range(len(COLUMNS))] for x in range(len(table[0]) if table else 0)
    ]
