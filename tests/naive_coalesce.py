"""Lines, sectors and waves of one tensor instruction, item by item and byte by byte."""

import itertools

from tests import naive

WAVE = 64


def lanes_of(addresses, item_bytes):
    """Items a lane loads at once: the most, halving from 16 bytes, that lie side by side in every lane."""
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


def touched(addresses, item_bytes, line_bytes):
    """[(line, sectors, waves that touch it)] in the order touched; an address of None is masked out."""
    items = lanes_of(addresses, item_bytes)
    found = {}
    for i, address in enumerate(addresses):
        for byte in () if address is None else range(address, address + item_bytes):
            sectors, waves = found.setdefault(byte // line_bytes, (set(), set()))
            sectors.add(byte % line_bytes // 32)
            waves.add(i // (WAVE * items))
    return [(line, sectors, len(waves)) for line, (sectors, waves) in found.items()]


def shown(trace, instruction):
    """The same of one instruction of a trace."""
    lines, _ = naive.touches(trace, instruction)
    t = trace.template[instruction]
    requests = trace.wave_requests[trace.rel_start[t] : trace.rel_start[t + 1]]
    return [
        (line, {b for b in range(8) if bits >> b & 1}, int(n)) for (line, bits), n in zip(lines, requests, strict=True)
    ]
