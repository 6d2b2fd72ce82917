"""Up to `CHUNK` lines of an instruction at once: locate them, look them up, fetch what missed.

One pass a step, each over short arrays that stay in the host's L1. Locating is a loop that LLVM vectorises (0.7 ns a
line, four times less than line by line), the look-ups know their addresses ahead of time, and the Infinity Cache,
whose words are larger than the host's L2, is prefetched (12 % of the replay). The look-ups of each cache keep the
order of the lines.

All of it is inlined into `xcd_model.replay._turn`, which calls nothing: around a call numba counts references to
every array of a tuple, and with those the replay of a few lines an instruction takes five times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .cache import _popcount4, _touch
from .rows import WAYS, _prefetch, _touch_row
from .traffic import MALL_HITS, MALL_REQUESTS, READ_MISSES, WRITE_MISSES, WRITEBACKS

CHUNK = 256


class Scratch(NamedTuple):
    """Arrays of `CHUNK` + 1; ``at`` and ``word`` say where each line goes, the others are of the lines that missed.

    ``missed`` is their place in the chunk, ``fell`` the word that made room, ``rel`` and ``weight`` are of the reads.
    """

    at: np.ndarray
    word: np.ndarray
    missed: np.ndarray
    fell: np.ndarray
    rel: np.ndarray
    weight: np.ndarray


def scratch() -> Scratch:
    """Scratch arrays for one thread."""
    size = CHUNK + 1
    return Scratch(
        at=np.zeros(size, np.uint64),
        word=np.zeros(size, np.uint64),
        missed=np.zeros(size, np.uint64),
        fell=np.zeros(size, np.int64),
        rel=np.zeros(size, np.int32),
        weight=np.zeros(size, np.int64),
    )


@njit(inline="always")
def _locate_folded(base, rel, first, n, index, at, word):
    """`_locate_all` where the channel is a fold: halving shifts fold 64 digits without a branch."""
    bits, inner, shift = np.uint64(index.fold_bits), np.uint64(index.interleave_bits), np.uint64(index.channel_shift)
    one, four = np.uint64(1), np.uint64(4)
    channels, within, inside = (one << bits) - one, (one << inner) - one, (one << shift) - one
    by2, by4 = np.uint64(min(63, 2 * index.fold_bits)), np.uint64(min(63, 4 * index.fold_bits))
    by8, by16 = np.uint64(min(63, 8 * index.fold_bits)), np.uint64(min(63, 16 * index.fold_bits))
    by32 = np.uint64(min(63, 32 * index.fold_bits))
    for i in range(np.uint64(n)):
        line = np.uint64(base + rel[first + i])
        upper = line >> inner
        rest = ((upper >> bits) << inner) | (line & within)
        upper ^= upper >> by32
        upper ^= upper >> by16
        upper ^= upper >> by8
        upper ^= upper >> by4
        upper ^= upper >> by2
        upper ^= upper >> bits
        at[i] = ((upper & channels) << shift) | (rest & inside)
        word[i] = ((rest >> shift) + one) << four


@njit(inline="always")
def _locate_all(base, rel, first, n, index, at, word):
    """Set and clean word of the lines ``base + rel[first : first + n]``, as `xcd_model.cache._locate` has them.

    base : int64; first : uint64; at, word : (n,) uint64, output
    """
    if index.fold_bits:
        _locate_folded(base, rel, first, n, index, at, word)
        return
    one, four = np.uint64(1), np.uint64(4)
    n_sets, mask, shift = np.uint64(index.n_sets), np.uint64(index.mask), np.uint64(max(0, index.shift))
    if index.mask >= 0:
        for i in range(np.uint64(n)):
            line = np.uint64(base + rel[first + i])
            at[i] = line & mask
            word[i] = ((line >> shift) + one) << four
    else:
        for i in range(np.uint64(n)):
            line = np.uint64(base + rel[first + i])
            at[i] = line % n_sets
            word[i] = ((line // n_sets) + one) << four


@njit(inline="always")
def _fill_all(machine, mall, base, n, scratch, counts):
    """Fetch the ``n`` missed reads of the scratch arrays from the Infinity Cache; overwrites ``at`` and ``word``."""
    at, word = scratch.at, scratch.word
    ways = machine.mall_ways
    last = np.int64(1) << (ways - 1)
    _locate_all(base, scratch.rel, np.uint64(0), n, machine.mall, at, word)
    for i in range(np.uint64(n)):
        _prefetch(mall, np.int64(at[i]) * ways)
    hits = 0
    for i in range(np.uint64(n)):
        row, fetched = np.int64(at[i]) * ways, np.int64(word[i])
        gone = _touch_row(mall, row, fetched, last) if ways <= WAYS else _touch(mall, row, ways, fetched)
        hits += scratch.weight[i] * np.int64(gone == 1)
        counts[MALL_REQUESTS] += scratch.weight[i]
    counts[MALL_HITS] += hits


@njit(inline="always")
def _look_up(dirty, first, n, l2, ways, scratch):
    """Look the located lines up in an L2; returns how many missed. ``first`` is uint64, of the chunk."""
    at, word, missed, fell = scratch.at, scratch.word, scratch.missed, scratch.fell
    last = np.int64(1) << (ways - 1)
    n_missed = np.uint64(0)
    for i in range(np.uint64(n)):
        row, touched = np.int64(at[i]) * ways, np.int64(word[i]) | np.int64(dirty[first + i])
        gone = _touch_row(l2, row, touched, last) if ways <= WAYS else _touch(l2, row, ways, touched)
        missed[n_missed] = i  # kept or overwritten by the next: a branch would be mispredicted
        fell[n_missed] = gone
        n_missed += np.uint64(gone != 1)
    return n_missed


@njit(inline="always")
def _count_misses(stream, first, n_missed, scratch, counts):
    """Count what missed and what fell out; gather the reads for `_fill_all` and return how many."""
    reads = np.uint64(0)
    read_misses = write_misses = writebacks = 0
    for j in range(n_missed):
        i = scratch.missed[j]
        weight = stream.set_weight[scratch.at[i]]
        is_read = np.int64(stream.dirty[first + i] == 0)
        writebacks += weight * _popcount4(scratch.fell[j])
        scratch.rel[reads] = stream.rel[first + i]
        scratch.weight[reads] = weight
        reads += np.uint64(is_read)
        read_misses += weight * is_read
        write_misses += weight * (1 - is_read)
    counts[READ_MISSES] += read_misses
    counts[WRITE_MISSES] += write_misses
    counts[WRITEBACKS] += writebacks
    return reads
