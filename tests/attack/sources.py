"""Random C++ and Triton sources against what they compute: no text that the reader gives may compute anything else.

python -m tests.attack.sources --count 100000 [--seed 0] [--of c,kernels,triton]

Truth is g++ (whose programs are run for every workgroup), and for Triton the source itself, run on integers that have
their width. A source for which the reader gives a text without a supposition is *read*: on every grid on which the text
stops at no fault, the two have to agree, for any formula, be it a bijection or not. That is more than that nothing
wrong is proved, as a proof speaks of the text.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

from swizzle_sim.language import Grid, Swizzle
from swizzle_sim.language.vm import run
from swizzle_sim.testing import read_prologue
from swizzle_sim.testing.guesses import CONDITION
from swizzle_sim.triton_source.prologue import Premise
from tests.attack import sources_c, sources_triton
from tests.attack.sources_of import Source
from xcd_model.errors import LanguageError

LINES = (1, 2, 3, 7, 8, 9, 16, 17, 40, 130, 300)
TILES = ((1, 1), (1, 2), (3, 2), (5, 7), (8, 9), (2, 33), (17, 16))
PROGRAMS = (1, 3, 8)
_BATCH = 200  # sources that are compiled together
_KINDS = ("c", "kernels", "triton")


def text_of(source: Source, path: Path) -> Swizzle | None:
    """Text that the reader gives; None where it skips the function, or supposes something."""
    path.write_text(source.text, encoding="utf-8")
    try:
        found = read_prologue(path, source.function)
        supposed = [one for one in found.assumed if not isinstance(one, Premise)]  # in these sources premises hold
        if supposed or found.strides or found.extents or found.fixed:
            return None
        text = found.counted or found.text
        flags = {
            name: int(name.startswith("ifndef_")) for name in found.free if CONDITION.match(name)
        }  # g++ is given none
        return Swizzle.parse(text.with_values({**source.sizes, **flags}).text)
    except LanguageError:
        return None


def map_of(swizzle: Swizzle, grid: Grid) -> np.ndarray | None:
    """Tile of each workgroup, -1 outside of the grid; None where a value faults."""
    try:
        found = run(swizzle.program, grid, 8, {})
    except LanguageError:
        return None
    return None if found.fault else found.ids


def grids(source: Source) -> list[Grid]:
    """Launches to compare on."""
    return [Grid((n,)) for n in LINES] if source.kind == "c" else [Grid((m * n,), (m, n)) for m, n in TILES]


def disagreement(source: Source, swizzle: Swizzle, truth: dict[tuple[int, ...], list[int]]) -> str:
    """Where a text and what its source computes differ; empty where nowhere."""
    if not truth:  # g++ takes not every source
        return ""
    if source.is_persistent and not all(_covers(map_of(swizzle, grid), grid) for grid in grids(source)):
        return ""  # of a loop both parts, where a program starts and the map of the index, are of every launch
    for grid in grids(source):
        mine = map_of(swizzle, grid)
        if mine is None:
            continue
        if source.kind == "c":
            theirs = [value if 0 <= value < grid.num_pids else -1 for value in truth[grid.launch]]
            if mine.tolist() != theirs:
                pid = next(k for k, (a, b) in enumerate(zip(mine.tolist(), theirs, strict=True)) if a != b)
                return f"grid {grid}: pid {pid} is {mine[pid]} in the text, {theirs[pid]} when run"
        elif _covers(mine, grid):
            for programs in PROGRAMS if source.is_persistent else (0,):
                stored = truth[(*(grid.shape or ()), programs)]
                if stored != [1] * grid.num_pids:
                    return f"grid {grid}, {programs} programs: a bijection in the text, tiles are stored {stored} times"
    return ""


def _covers(tiles: np.ndarray | None, grid: Grid) -> bool:
    return tiles is not None and sorted(tiles.tolist()) == list(range(grid.num_pids))


def read(sources: list[Source], folder: Path) -> Iterator[tuple[Source, Swizzle]]:
    """Sources that are read, with their texts."""
    for source in sources:
        swizzle = text_of(source, folder / f"s{source.suffix}")
        if swizzle is not None:
            yield source, swizzle


def compiled(sources: list[Source], folder: Path) -> list[dict[tuple[int, ...], list[int]]]:
    """What C++ sources compute, by g++."""
    return sources_c.run(sources, folder, LINES, TILES, PROGRAMS)


def attack(count: int, seed: int, kinds: tuple[str, ...] = _KINDS) -> tuple[Counter[str], list[str]]:
    """Try so many sources; returns how many were tried and read, and what differs."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    draw = Random(seed)
    makers = {"c": sources_c.function, "kernels": sources_c.kernel, "triton": sources_triton.kernel}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for start in range(0, count, _BATCH):
            kind = kinds[start // _BATCH % len(kinds)]
            sources = [makers[kind](draw) for _ in range(min(_BATCH, count - start))]
            counts["tried"] += len(sources)
            known = list(read(sources, folder))
            if not known:
                continue
            if kind == "triton":
                truths = [sources_triton.run(one, TILES, PROGRAMS) for one, _ in known]
            else:
                truths = compiled([one for one, _ in known], folder)
            for (source, swizzle), truth in zip(known, truths, strict=True):
                counts["read"] += 1
                counts[f"compared {kind}"] += bool(truth)
                counts["bijections"] += all(_covers(map_of(swizzle, grid), grid) for grid in grids(source))
                said = disagreement(source, swizzle, truth)
                if said:
                    wrong.append(f"{said}\n{source.text}\n--- read as\n{swizzle.source}")
    return counts, wrong


def main() -> None:
    """Run the attack for as long as is asked."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--of", default=",".join(_KINDS))
    given = options.parse_args()
    begun = time.monotonic()
    total: Counter[str] = Counter()
    wrong: list[str] = []
    for part in range(0, given.count, 3 * _BATCH):
        counts, found = attack(min(3 * _BATCH, given.count - part), given.seed + part, tuple(given.of.split(",")))
        total += counts
        wrong += found
        for one in found[:3]:
            print(one, flush=True)
        print(f"{dict(total)}, {len(wrong)} differ, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"{dict(total)}: {len(wrong)} differ from what they compute")
    sys.exit(bool(wrong))


def has_compiler() -> bool:
    """Whether there is a g++."""
    try:
        return subprocess.run(["g++", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    main()
