"""Oracles: slow, written to be read, sharing nothing with ``xcd_model`` but the fields of its dataclasses."""

import math
from collections import OrderedDict, defaultdict

from tests.naive_in_step import group_of

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
    "l1_requests",
    "l1_hits",
)


class Line(set):
    """The dirty pieces of a line that is held, and which pieces of it are ``there`` to be read."""

    def __init__(self):
        super().__init__()
        self.there = set()


class LruCache:
    """A cold set-associative LRU cache; each line carries the set of its dirty pieces."""

    def __init__(self, cache):
        self.cache = cache
        self.sets = defaultdict(OrderedDict)

    def touch(self, line, dirty=(), wanted=(0,)):
        """Make ``line`` the most recent.

        Returns how many of the wanted pieces were not there, and (line, dirty pieces) of what it drove out.
        """
        held = self.sets[set_of(line, self.cache)]
        driven_out = ()
        if line not in held:
            if len(held) == self.cache.ways:
                driven_out = held.popitem(last=False)
            held[line] = Line()
        lacking = len(set(wanted) - held[line].there)
        held[line].there |= set(wanted)
        held[line] |= set(dirty)
        held.move_to_end(line)
        return lacking, driven_out


def set_of(line, cache):
    """Set of a line: (channel, set in the channel).

    Pieces of ``index_interleave_bytes`` are dealt to channels by the XOR of all digits of the piece's number, base the
    number of channels. Within a channel, piece after piece, lines take the sets in turn. With ``index_rows`` a set is
    named by its bits, the parity of the address under each row; rows that are not as many are completed.
    """
    if cache.index == "modulo":
        return 0, line % cache.sets
    if cache.index == "xor":
        address = line * cache.line_bytes
        rows, n = list(cache.index_rows), len(f"{cache.sets:b}") - 1
        if len(rows) != n:
            rows = hashed_and_plain(rows, n, len(f"{cache.line_bytes:b}") - 1)
        return tuple(sum(address >> bit & row >> bit & 1 for bit in range(64)) % 2 for row in rows)
    lines_per_piece = cache.index_interleave_bytes // cache.line_bytes
    piece, within = divmod(line, lines_per_piece)
    channel, digits = 0, piece
    while digits and cache.index_channels > 1:
        digits, digit = divmod(digits, cache.index_channels)
        channel ^= digit
    place = piece // cache.index_channels * lines_per_piece + within
    return channel, place % (cache.sets // cache.index_channels)


def hashed_and_plain(rows, n, first):
    """Rows that are named by one of the ``n`` address bits from ``first`` on; then plain bits that name no row."""
    named = {next(bit for bit in range(64) if row >> bit & 1): row for row in rows}
    chosen = [row for bit, row in named.items() if bit < first + n]
    bit = first
    while len(chosen) < n:
        if bit not in named:
            chosen.append(1 << bit)
        bit += 1
    return chosen


def lru_hits(lines, cache):
    cache = LruCache(cache)
    return [not cache.touch(int(line))[0] for line in lines]


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


def wave_requests(trace, instruction):
    template = int(trace.template[instruction])
    return [int(n) for n in trace.wave_requests[int(trace.rel_start[template]) : int(trace.rel_start[template + 1])]]


def queues(n_workgroups, gpu):
    """Hardware ids of each XCD, in order: runs of ids are dealt to the XCDs in turn."""
    share = math.ceil(n_workgroups / gpu.xcds)
    run = {"round_robin": 1, "chunked": gpu.dispatch_chunk or gpu.cus_per_xcd, "one_after_another": share}[gpu.dispatch]
    of_xcd = [[] for _ in range(gpu.xcds)]
    xcd, left = gpu.dispatch_offset, run
    for w in range(n_workgroups):
        if not left:
            xcd, left = (xcd + 1) % gpu.xcds, run
        of_xcd[xcd].append(w)
        left -= 1
    return of_xcd


def workgroups_of(order, gpu, programs, claims=None):
    """For each XCD its queue of programs, in order, each the workgroups of the trace that it computes in turn."""
    if not programs:
        return [[iter([int(order[w])]) for w in mine] for mine in queues(len(order), gpu)]
    if claims:
        pools = [list(range(pool, claims.local, claims.pools)) for pool in range(claims.pools)]
        shared = list(range(claims.local, len(order)))
        others = claims.pools if claims.steals else 1
        tiles = [
            claimed(order, [pools[(p + i) % claims.pools] for i in range(others)] + [shared]) for p in range(programs)
        ]
    else:
        tiles = [iter([int(order[t]) for t in range(p, len(order), programs)]) for p in range(programs)]
    return [[tiles[p] for p in mine] for mine in queues(programs, gpu)]


def claimed(order, pools):
    """A program that asks for a tile when it has ended the last: the next of the first of its pools that has one."""
    while any(pools):
        yield int(order[next(pool for pool in pools if pool).pop(0)])


def turns(trace, order, gpu, workgroups_per_cu, programs=None, claims=None):
    """Lists of (XCD, CU, instruction), one list a turn: every resident workgroup issues one, slot by slot."""
    waiting = workgroups_of(order, gpu, programs, claims)
    slots = [(slot, xcd) for slot in range(gpu.cus_per_xcd * workgroups_per_cu) for xcd in range(gpu.xcds)]
    programs_of, todo_of = {at: iter(()) for at in slots}, {at: [] for at in slots}
    while True:
        turn = []
        for slot, xcd in slots:
            todo = todo_of[slot, xcd]
            while not todo:  # a workgroup that touches nothing is over at once
                workgroup = next(programs_of[slot, xcd], None)
                if workgroup is not None:
                    todo.extend(range(int(trace.start[workgroup]), int(trace.start[workgroup + 1])))
                elif waiting[xcd]:
                    programs_of[slot, xcd] = waiting[xcd].pop(0)
                else:
                    break
            if todo:
                turn.append((xcd, slot % gpu.cus_per_xcd, todo.pop(0)))
        if not turn:
            return
        yield turn


def finish(trace, order, gpu, workgroups_per_cu, programs=None, claims=None):
    """Nested lists (XCD, CU): the turn after a CU's last instruction, 0 for one that has none."""
    ends = [[0] * gpu.cus_per_xcd for _ in range(gpu.xcds)]
    for turn, issues in enumerate(turns(trace, order, gpu, workgroups_per_cu, programs, claims)):
        for xcd, cu, _ in issues:
            ends[xcd][cu] = turn + 1
    return ends


class L2:
    """The L2 of an XCD: a cache, or one for each of two sides. The sides keep copies of each other's lines, clean."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.parts = [LruCache(gpu.l2) for _ in range(2 if gpu.l2_partitions else 1)]

    def partition_of(self, cu):
        return group_of(cu, self.gpu) % 2

    def home_of(self, line):
        address, named = (
            line * self.gpu.l2.line_bytes,
            self.gpu.l2_partitions.coherence_bits if self.gpu.l2_partitions else 0,
        )
        return sum(address >> bit & named >> bit & 1 for bit in range(64)) % 2

    def touch(self, line, cu, dirty=(), wanted=(0,), *, writes=False):
        """Look a line up on the side of a CU and, unless that has all that a read wants, at home.

        Returns the pieces that nobody held, what was driven out, in order, who had all of it (a side, or None), and the
        sides that had not.
        """
        near, home = self.partition_of(cu), self.home_of(line)
        driven_out, brought = [], []
        if near != home:
            lacked, gone = self.parts[near].touch(line, (), wanted)
            driven_out.append(gone)
            brought += [near] if lacked else []
            if not lacked and not writes:
                return 0, driven_out, near, brought
        lacking, gone = self.parts[home].touch(line, dirty, wanted)
        driven_out.append(gone)
        brought += [home] if lacking else []
        return lacking, driven_out, None if lacking else home, brought


class Caches:
    """The caches of a GPU. ``begin`` is a launch: L1s are new, others stay or not as the GPU says, and clean."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.l2 = [L2(gpu) for _ in range(gpu.xcds)]
        self.mall = LruCache(gpu.mall) if gpu.mall else None
        self.begin()

    def begin(self):
        gpu = self.gpu
        self.l1 = {(x, cu): LruCache(gpu.l1) for x in range(gpu.xcds) for cu in range(gpu.cus_per_xcd) if gpu.l1}
        if not gpu.l2.kept_between_launches:
            self.l2 = [L2(gpu) for _ in range(gpu.xcds)]
        self.remote_hits = self.hits_under_miss = self.flushed = 0
        if gpu.mall and not gpu.mall.kept_between_launches:
            self.mall = LruCache(gpu.mall)


class Counts:
    """Counts by (when, XCD) and by (tensor, XCD)."""

    def __init__(self, trace, gpu):
        self.trace, self.gpu = trace, gpu
        self.when = defaultdict(lambda: [dict.fromkeys(COLUMNS, 0) for _ in range(gpu.xcds)])
        self.by_tensor = [[dict.fromkeys(COLUMNS, 0) for _ in range(gpu.xcds)] for _ in trace.tensors]

    def add(self, when, xcd, tensor, column, amount):
        self.when[when][xcd][column] += amount
        self.by_tensor[tensor][xcd][column] += amount

    def tensor_of(self, line):
        spans = [range(t.base_line, t.base_line + t.n_lines) for t in self.trace.tensors]
        return next(i for i, span in enumerate(spans) if line in span)

    def flush(self, when, caches):
        """What is dirty at the end is written back; the lines stay."""
        for xcd, part in [(xcd, part) for xcd, l2 in enumerate(caches.l2) for part in l2.parts]:
            for held in part.sets.values():
                for line, dirty in held.items():
                    self.add(when, xcd, self.tensor_of(line), "writebacks", len(dirty))
                    caches.flushed += len(dirty)
                    dirty.clear()


def replay(trace, order, gpu, workgroups_per_cu, programs=None, caches=None, claims=None):
    """Counts of every turn, and by tensor: two nested lists, (turn, XCD, column) and (tensor, XCD, column).

    L2s are written back, and allocate without a fetch on a write miss. L1s and the memory-side cache are looked up
    for reads only.
    """
    caches = caches or Caches(gpu)
    caches.begin()
    counts, turn = Counts(trace, gpu), 0
    for turn, issues in enumerate(turns(trace, order, gpu, workgroups_per_cu, programs, claims)):
        for xcd, cu, instruction in issues:
            _issue(trace, instruction, caches, xcd, cu, counts, turn)
    counts.flush(turn, caches)
    return as_table([counts.when[t] for t in range(turn + 1)]), as_table(counts.by_tensor)


def _issue(trace, instruction, caches, xcd, cu, counts, turn):
    lines, is_write = touches(trace, instruction)
    tensor = int(trace.tensor[trace.template[instruction]])
    gpu = caches.gpu

    def add(column, amount=1):
        counts.add(turn, xcd, tensor, column, amount)

    add("instructions")
    for (line, sectors), waves in zip(lines, wave_requests(trace, instruction), strict=True):
        wanted = pieces(sectors, gpu.l2.fetch_bytes)
        if is_write:
            dirty = pieces(sectors, gpu.l2.write_request_bytes)
            add("write_requests", len(dirty))
        else:
            dirty = set()
            if gpu.l1:
                held = not caches.l1[xcd, cu].touch(line, wanted=wanted)[0]
                add("l1_requests", waves)
                add("l1_hits", waves if held else waves - 1)
                if held:
                    continue
            add("read_requests", len(pieces(sectors, gpu.l2.read_request_bytes)))
        lacking, driven_out, _, lacked_at = caches.l2[xcd].touch(line, cu, dirty, wanted, writes=is_write)
        if not is_write and not lacking and lacked_at:
            caches.remote_hits += len(pieces(sectors, gpu.l2.read_request_bytes))
        for gone, its_dirty in filter(None, driven_out):
            counts.add(turn, xcd, counts.tensor_of(gone), "writebacks", len(its_dirty))
        add("write_misses" if is_write else "read_misses", lacking)
        if lacking and not is_write and caches.mall:
            add("mall_requests")
            add("mall_hits", int(not caches.mall.touch(line)[0]))


def as_table(timeline):
    """Nested lists (turn, XCD, column) of a replay's counts."""
    return [[[xcd[column] for column in COLUMNS] for xcd in turn] for turn in timeline]


def distinct_pieces(trace, order, gpu):
    """Number of distinct lines, or halves of lines where those are fetched, that the workgroups of each XCD touch."""
    counts = []
    for mine in queues(len(order), gpu):
        lines = set()
        for w in mine:
            lines |= pieces_of_workgroup(trace, int(order[w]), gpu.l2.fetch_bytes)
        counts.append(len(lines))
    return counts


def pieces_of_workgroup(trace, workgroup, fetch_bytes):
    span = range(int(trace.start[workgroup]), int(trace.start[workgroup + 1]))
    return {
        (line, piece) for i in span for line, sectors in touches(trace, i)[0] for piece in pieces(sectors, fetch_bytes)
    }


def rectangle(*, base_bytes, pitch_bytes, item_bytes, shape, row, col, rows, cols, line_bytes):
    """Lines of a rectangle clipped to an array, byte by byte: {line: set of sectors}, in the order first touched."""
    found = {}
    for r in range(row, min(row + rows, shape[0])):
        for c in range(col, min(col + cols, shape[1])):
            for byte in range(item_bytes):
                address = base_bytes + r * pitch_bytes + c * item_bytes + byte
                found.setdefault(address // line_bytes, set()).add(address % line_bytes // SECTOR_BYTES)
    return found


def totals(table):
    """Totals over turns: (XCD, column)."""
    return [[sum(turn[x][c] for turn in table) for c in range(len(COLUMNS))] for x in range(len(table[0]))]
