"""Address bits of the point of coherence between the two L2 partitions of an NVIDIA GPU, from a map of 4 KiB blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK_BITS = 12
PAGE_BLOCKS = 512  # of a page of 2 MiB: blocks lie one after the other in memory
PAGE_BITS = 21


@dataclass(frozen=True)
class CoherenceBits:
    """The bits that explain a map best."""

    bits: int  # mask of address bits [bytes]
    first_page: int  # page of 2 MiB where the map begins, as far as its bits say
    blocks: int  # of 4 KiB in the map, and of them those with the parity that the bits say
    explained: int


def coherence_bits_of(home: np.ndarray) -> CoherenceBits:
    """Find the bits.

    Parameters
    ----------
    home : (n_blocks,) uint8
        Side of each block, 0 or 1, a whole number of pages that follow each other in memory.
    """
    if home.size % PAGE_BLOCKS or not home.size:
        raise ValueError(f"{home.size} blocks of 4 KiB are no whole number of 2 MiB pages")
    pages = home.reshape(-1, PAGE_BLOCKS)
    within, low = _usual_page(pages)
    odd = (pages ^ within).mean(axis=1) > 0.5
    first, high = _best_parity(odd)
    said = _parity((np.arange(len(pages)) + first) & high)[:, None] ^ within
    right = int((said == pages).sum())
    return CoherenceBits(high << PAGE_BITS | low << BLOCK_BITS, first, home.size, max(right, home.size - right))


def _usual_page(pages: np.ndarray) -> tuple[np.ndarray, int]:
    """(What most pages look like, from 0 on; the bits of a block's number whose parity that is)."""
    kinds, counts = np.unique(pages ^ pages[:, :1], axis=0, return_counts=True)
    usual = kinds[counts.argmax()]
    bits = sum(1 << bit for bit in range(PAGE_BLOCKS.bit_length() - 1) if usual[1 << bit])
    return _parity(np.arange(PAGE_BLOCKS) & bits), bits


def _best_parity(odd: np.ndarray) -> tuple[int, int]:
    """(First page, mask) such that the parity of masked page numbers is nearest to ``odd``, or to its opposite."""
    size = 1 << (2 * len(odd) - 1).bit_length()
    best = (-1.0, 0, 0)
    for first in range(size - len(odd)):
        sums = np.zeros(size)
        sums[first : first + len(odd)] = 1.0 - 2.0 * odd
        for step in (1 << k for k in range(size.bit_length() - 1)):  # Walsh-Hadamard: sums by every parity at once
            pairs = sums.reshape(-1, 2, step)
            sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        mask = int(np.abs(sums).argmax())
        best = max(best, (abs(float(sums[mask])), -first, mask))
    return -best[1], best[2]


def _parity(numbers: np.ndarray) -> np.ndarray:
    return (np.bitwise_count(numbers.astype(np.uint64)) & 1).astype(np.uint8)
