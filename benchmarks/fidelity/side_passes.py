"""What two LRU caches with copies of each other's blocks would keep of the passes that `measure_sides` counts.

    python -m benchmarks.fidelity.side_passes

Prints, for each kind of pass without traffic beside it, the part that memory answers as it was counted on one H200 and
as two fully associative LRUs of the description's size have it, fed block by block, one side's turn after the other's.
"""

from __future__ import annotations

import csv
from collections import OrderedDict
from collections.abc import Iterator
from itertools import zip_longest

from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.rows import DATA
from xcd_model import gpu

BLOCK = 4096
MIB_BLOCKS = (1 << 20) // BLOCK
PASSES = 9
STEPS = (1000003, 7368787, 15485863, 32452843, 49979687, 67867967, 86028121, 104395301)
Blocks = list[tuple[int, int]]  # home, and number among those of that home


def reads_of(kind: str, mib: int) -> tuple[Blocks, Blocks]:
    """Blocks that the SMs of each side read in a pass, in order."""
    n = mib * MIB_BLOCKS
    one = [[(home, i) for i in range(n)] for home in (0, 1)]
    half = [blocks[: n // 2] for blocks in one]
    both = [(i % 2, i // 2) for i in range(n)]
    mine, yours = both[: n // 2], [(home, i + n) for home, i in both[: n // 2]]
    kinds: dict[str, tuple[Blocks, Blocks]] = {
        "one side; near": (one[0], []),
        "one side; far": (one[1], []),
        "one side; all": (both, []),
        "both sides; one home": (one[0], one[0]),
        "both sides; all": (both, both),
        "each side its own; near": (half[0], half[1]),
        "each side its own; far": (half[1], half[0]),
        "each side its own; all": (mine, yours),
    }
    return kinds[kind]


def missed(kind: str, order: str, mib: int) -> float:
    """Part of what is read that memory answers in the last of `PASSES` passes, from cold caches."""
    capacity = gpu("h200").l2.size_bytes // BLOCK
    sides: list[OrderedDict[tuple[int, int], None]] = [OrderedDict(), OrderedDict()]

    def held(side: int, block: tuple[int, int]) -> bool:
        found = block in sides[side]
        sides[side][block] = None
        sides[side].move_to_end(block)
        if len(sides[side]) > capacity:
            sides[side].popitem(last=False)
        return found

    from_memory = 0
    for number in range(PASSES):
        step, shift = (1, 0) if order == "same" else (STEPS[number % len(STEPS)], 977 * number)
        turns = [[own[(i * step + shift) % len(own)] for i in range(len(own))] for own in reads_of(kind, mib)]
        from_memory = 0
        for pair in zip_longest(*turns):
            for side, block in enumerate(pair):
                if block is not None and (side == block[0] or not held(side, block)):
                    from_memory += not held(block[0], block)
    return from_memory / (mib * MIB_BLOCKS)


def counted() -> Iterator[tuple[str, str, int, float]]:
    """Kind, order and MiB of each pass without traffic beside it, and the part that memory answered."""
    with (DATA / "machine" / "h200_sides.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["beside_mib"] == "0":
                mib = int(line["mib"])
                yield line["kind"], line["order"], mib, float(line["memory_mib"]) / mib


def main() -> None:
    """Print the table."""
    rows = [
        (kind, order, mib, f"{100 * part:.0f}", f"{100 * missed(kind, order, mib):.0f}")
        for kind, order, mib, part in counted()
    ]
    print(table(("kind", "order", "MiB", "counted %", "two LRUs %"), rows))


if __name__ == "__main__":
    main()
