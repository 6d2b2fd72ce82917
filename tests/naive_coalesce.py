"""Lines, sectors, waves and L1 passes of one tensor instruction, item by item and byte by byte."""

import itertools

from tests import naive

WAVE = 64


def lanes_of(addresses, item_bytes):
    """Items of a lane: the most, halving from 16 bytes, that lie side by side in every lane."""
    items = max(1, 16 // item_bytes)
    while items > 1:
        lanes = [addresses[i : i + items] for i in range(0, len(addresses), items)]
        together = all(
            a is None or b is None or b == a + item_bytes for lane in lanes for a, b in itertools.pairwise(lane)
        )
        if len(addresses) % items == 0 and together:
            return items
        items //= 2
    return 1


def at_once(addresses, item_bytes, items):
    """Items that one instruction of a lane loads: the most, halving from a lane's, that are aligned to their size."""
    while items > 1:
        groups = [addresses[i : i + items] for i in range(0, len(addresses), items)]
        whole = all(all(a is None for a in group) or None not in group for group in groups)
        aligned = all(group[0] is None or group[0] % (items * item_bytes) == 0 for group in groups)
        if len(addresses) % items == 0 and whole and aligned:
            return items
        items //= 2
    return 1


def touched(addresses, item_bytes, line_bytes, most_at_once=16):
    """[(line, sectors, instructions that touch it)] in the order touched; an address of None is masked out."""
    items = lanes_of(addresses, item_bytes)
    together = min(most_at_once, at_once(addresses, item_bytes, items))
    found = {}
    for i, address in enumerate(addresses):
        for byte in () if address is None else range(address, address + item_bytes):
            sectors, instructions = found.setdefault(byte // line_bytes, (set(), set()))
            sectors.add(byte % line_bytes // 32)
            instructions.add((i // (WAVE * items), i % items // together))
    return [(line, sectors, len(instructions)) for line, (sectors, instructions) in found.items()]


def shown(trace, instruction):
    """The same of one instruction of a trace."""
    lines, _ = naive.touches(trace, instruction)
    t = trace.template[instruction]
    requests = trace.wave_requests[trace.rel_start[t] : trace.rel_start[t + 1]]
    return [
        (line, {b for b in range(8) if bits >> b & 1}, int(n)) for (line, bits), n in zip(lines, requests, strict=True)
    ]


def in_lanes(addresses, shape, strides, item_bytes):
    """Addresses of a row-major list in the order of lanes: the axis with the longest power-of-two run is fastest."""
    runs = []
    for side, stride in zip(shape, strides, strict=True):
        run = 1
        while stride == item_bytes and side % (2 * run) == 0:
            run *= 2
        runs.append(run)
    axes = sorted(range(len(shape)), key=lambda axis: (runs[axis], axis))
    found = []
    for place in itertools.product(*(range(shape[axis]) for axis in axes)):
        flat = 0
        for axis, side in enumerate(shape):
            flat = flat * side + place[axes.index(axis)]
        found.append(addresses[flat])
    return found


def passes(addresses, item_bytes, most_at_once=16):
    """Sum over the lanes served together, which load 128 bytes or are 32; an address of None is masked out."""
    items = lanes_of(addresses, item_bytes)
    together = min(most_at_once, at_once(addresses, item_bytes, items))
    served = {}  # (lanes served together, load of a lane) -> bytes that they read
    for i, address in enumerate(addresses):
        if address is not None:
            lanes = min(32, 128 // max(4, together * item_bytes))
            where = i // items // lanes, i % items // together
            served.setdefault(where, set()).update(range(address, address + item_bytes))
    total = 0
    for read in served.values():
        words, lines = {byte // 4 for byte in read}, {byte // 128 for byte in read}
        most = max(sum(word % 32 == bank for word in words) for bank in range(32))
        total += max(most, -(-len(lines) // 3))
    return total
