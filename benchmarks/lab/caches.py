"""The size of an NVIDIA GPU's L1 and its carve-outs, from tables: cycles of a load by the length of its ring.

The GPU's description takes the L1's size from the first; `xcd_model.nvidia` has its rule of carve-outs from the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from swizzle_sim.hardware.node.counted_launch import CountedLaunch

LINE_BYTES = 128
HIT_CYCLES = 50.0  # a load that the L1 answers takes 45, one that the L2 answers 280
CARVE_OUT_COUNTERS = {
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "carve_out_bytes": "launch__shared_mem_config_size",
}


def carve_outs(launches: Iterable[CountedLaunch]) -> Iterator[list[int]]:
    """Threads, registers, shared memory and carve-out of each launch."""
    for one in launches:
        yield [int(one.counters[name]) for name in CARVE_OUT_COUNTERS.values()]


def most_held(lines: Iterable[Mapping[str, str]]) -> dict[tuple[int, int], int]:
    """Longest ring that the L1 answers, by (carve-out asked for [percent], bytes between its places)."""
    found: dict[tuple[int, int], int] = {}
    missed: set[tuple[int, int]] = set()
    for line in lines:
        key = (int(line["carve_out_pct"]), int(line["stride_bytes"]))
        hit = float(line["cycles"]) <= HIT_CYCLES
        if hit and key not in missed:
            found[key] = max(found.get(key, 0), int(line["places"]))
        elif key in found:
            missed.add(key)
    return found


def words_of(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """One line of words for each kind of ring."""
    return [
        f"carve-out {percent} %, {stride} B apart: {places} held, {places * min(stride, LINE_BYTES) / 1024:g} KiB"
        for (percent, stride), places in most_held(lines).items()
    ]
