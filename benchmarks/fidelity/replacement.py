"""What ways of replacement would leave of lines that a set is asked for again and again, beside an MI355X's counters.

    python -m benchmarks.fidelity.replacement

A set of 16 ways is asked for n lines, one after the other, 16 times, as by the passes that were counted: those over 4
MB an XCD are 16 lines a set, over 6 MB 24, over 16 MB 64. Of 32 the source says in words that nothing hits
(jamesbowley/gfx950-gluon-tutorials, 2fdc8b5, experiments/hbm_bandwidth_xcd).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.rows import all_rows

WAYS, PASSES, TRIALS = 16, 16, 300
ROWS = {16: "passes-128k", 24: "passes-192k", 32: None, 64: "passes-512k"}  # by lines a set: what was counted
Victim = Callable[[list[int], list[bool], random.Random], int]


def lru(when: list[int], used: list[bool], draw: random.Random) -> int:
    """Way that was touched longest ago."""
    return when.index(min(when))


def drawn(when: list[int], used: list[bool], draw: random.Random) -> int:
    """Any way."""
    return draw.randrange(len(when))


def first_unused(when: list[int], used: list[bool], draw: random.Random) -> int:
    """First way not used since all were."""
    return used.index(False)


def drawn_unused(when: list[int], used: list[bool], draw: random.Random) -> int:
    """Any way not used since all were."""
    return draw.choice([way for way, recently in enumerate(used) if not recently])


def hit_pct(lines: int, victim: Victim, seed: int) -> float:
    """Hit rate of the passes over ``lines`` lines of one set, cold at first [%]."""
    draw = random.Random(seed)
    held, when, used, hits = [-1] * WAYS, [-1] * WAYS, [False] * WAYS, 0
    for now in range(lines * PASSES):
        line = now % lines
        if line in held:
            way, hits = held.index(line), hits + 1
        else:
            way = held.index(-1) if -1 in held else victim(when, used, draw)
        held[way], when[way], used[way] = line, now, True
        if all(used):
            used = [other == way for other in range(WAYS)]
    return 100 * hits / (lines * PASSES)


def counted() -> dict[int, float | None]:
    """Counted hit rate by lines a set [%]; None where there is no row."""
    rates = {row.id: row.measured for row in all_rows()}
    return {lines: rates.get(f"published/{name}:l2_hit_pct") for lines, name in ROWS.items()}


def by_lines() -> str:
    """Markdown: hit rate by lines a set, counted and for each way of replacement."""
    ways = {"LRU": lru, "drawn": drawn, "first unused": first_unused, "drawn unused": drawn_unused}
    found = []
    for lines, rate in counted().items():
        means = [sum(hit_pct(lines, victim, seed) for seed in range(TRIALS)) / TRIALS for victim in ways.values()]
        found.append([str(lines), "-" if rate is None else f"{rate:.2f}", *(f"{mean:.2f}" for mean in means)])
    return table(["lines a set", "counted", *ways], found)


if __name__ == "__main__":
    print(by_lines(), end="")
