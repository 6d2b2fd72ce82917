"""Up to `CHUNK` lines of an instruction at once: through the L1, to their sets, and what left the L2 to memory.

One pass a step, each over short arrays that stay in the host's L1. Locating is a loop that LLVM vectorises, and the
look-ups know their addresses ahead of time. The look-ups of each cache keep the order of the lines.

All of it is inlined into its callers, see `xcd_model.numba_setup`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.l1 import _read_line
from xcd_model.cache.lru import DIRTY_BITS, FILL_BITS, MARK_BITS, _line_of
from xcd_model.trace.packed import Machine

CHUNK = 256


class Scratch(NamedTuple):
    """Arrays of `CHUNK` + 1: the lines that reach the L2, where each goes, and of those that missed place and victim.

    ``fell`` is what the look-up returned, ``missed`` the place in the chunk: twice as long, since a line may drive out
    one more for its copy. ``asked`` is how many read requests a line takes, empty where the L2 has no two sides
    (`xcd_model.nvidia.l2_partitions`), and ``far`` (1,) how many of them the other side held. ``late`` (1,) are lines
    that reads found before they were there.
    """

    line: np.ndarray
    marks: np.ndarray
    asked: np.ndarray
    at: np.ndarray
    word: np.ndarray
    missed: np.ndarray
    fell: np.ndarray
    far: np.ndarray
    late: np.ndarray


def scratch(machine: Machine) -> Scratch:
    """Scratch arrays for one thread."""
    size = CHUNK + 1
    return Scratch(
        line=np.zeros(size, np.int64),
        marks=np.zeros(size, np.uint8),
        asked=np.zeros(size if machine.home_mask else 0, np.uint8),
        at=np.zeros(size, np.uint64),
        word=np.zeros(size, np.uint64),
        missed=np.zeros(2 * size, np.uint64),
        fell=np.zeros(2 * size, np.int64),
        far=np.zeros(1, np.int64),
        late=np.zeros(1, np.int64),
    )


@njit(inline="always")
def _gather(rel, marks, pieces, base, first, n, line, kept_marks, asked):
    """Copy all of ``n`` entries."""
    for i in range(np.uint64(n)):
        line[i] = base + rel[first + i]
        kept_marks[i] = marks[first + i]
    if asked.size:
        for i in range(np.uint64(n)):
            asked[i] = pieces[first + i]
    return n


@njit(inline="always")
def _gather_sets(rel, marks, pieces, index, base, first, n, missing, line, kept_marks, asked):
    """Copy the entries that lie in one of the ``missing`` L1 sets; return how many."""
    n_sets, mask, table = index.n_sets, index.mask, index.hash
    kept = np.int64(0)
    for i in range(n):
        touched = base + rel[first + i]
        at = touched % n_sets if mask < 0 else touched & mask
        if table.size:
            at ^= table[touched >> index.shift]
        line[kept] = touched
        kept_marks[kept] = marks[first + i]
        if asked.size:
            asked[kept] = pieces[first + i]
        kept += (missing >> at) & 1
    return kept


@njit(inline="always")
def _gather_lines(
    rel, marks, pieces, index, ways, l1, unit, base, first, n, instruction, arrival, line, kept_marks, asked
):
    """Copy the entries that an L1 misses; return (how many, their L2 requests, latest arrival of the others)."""
    n_sets, mask, shift, table = index.n_sets, index.mask, index.shift, index.hash
    words, filler, older, newer = l1.words[unit], l1.filler[unit], l1.older[unit], l1.newer[unit]
    newest = l1.newest[unit]
    kept = requests = wait = np.int64(0)
    for i in range(n):
        touched = base + rel[first + i]
        at, tag = (touched % n_sets, touched // n_sets) if mask < 0 else (touched & mask, touched >> shift)
        if table.size:
            at ^= table[tag]
        word = np.uint32(((tag + 1) << FILL_BITS) | (np.int64(marks[first + i]) >> DIRTY_BITS))
        by = _read_line(words, filler, older, newer, newest, at, ways, word, instruction)
        if by < 0:
            line[kept] = touched
            kept_marks[kept] = marks[first + i]
            if asked.size:
                asked[kept] = pieces[first + i]
            kept += 1
            requests += np.int64(pieces[first + i])
        elif arrival.size:
            wait = max(wait, arrival[by])
    return kept, requests, wait


@njit(inline="always")
def _locate_all(line, n, index, at, word):
    """Set and unmarked word of ``n`` lines, as `xcd_model.cache.lru._locate` has them.

    line : (n,) int64; at, word : (n,) uint64, output
    """
    one, mark_bits = np.uint64(1), np.uint64(MARK_BITS)
    n_sets, mask, shift = np.uint64(index.n_sets), np.uint64(index.mask), np.uint64(max(0, index.shift))
    table = index.hash
    if index.mask < 0:
        for i in range(np.uint64(n)):
            at[i] = np.uint64(line[i]) % n_sets
            word[i] = ((np.uint64(line[i]) // n_sets) + one) << mark_bits
        return
    for i in range(np.uint64(n)):
        at[i] = np.uint64(line[i]) & mask
        word[i] = ((np.uint64(line[i]) >> shift) + one) << mark_bits
    if table.size:
        for i in range(np.uint64(n)):
            at[i] ^= np.uint64(table[np.uint64(line[i]) >> shift])


@njit(inline="always")
def _write_back(tensor_lines, index, at, word, pieces, column, counts, by_tensor):
    """Count a dirty word that left the L2, for the tensor that it belongs to; return its line."""
    written = _line_of(at, (word >> MARK_BITS) - 1, index)
    owner = 0
    while written < tensor_lines[owner, 0] or written >= tensor_lines[owner, 1]:
        owner += 1
    counts[column] += pieces
    by_tensor[owner, column] += pieces
    return written
