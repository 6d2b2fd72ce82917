"""Passes of a load through an L1 of 32 banks of a word, lane by lane and byte by byte."""

from tests.naive_coalesce import at_once, lanes_of


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
