"""Set index of a line: any linear hash of address bits, reduced to one form.

A cache of 2^n sets may compute bit i of the set as the XOR of any address bits, a row of a matrix over GF(2):

    set_i = XOR_j (row_ij AND line_j)

Renumbering the sets of an LRU cache changes no hit, so rows may be added to each other (Gauss) until bit i of the set
is line bit i XOR a function of the bits from n on. Then ``set = low bits ^ hash[tag]``, one table look-up, and set and
tag determine the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xcd_model.errors import SpecError

ADDRESS_BITS = 44  # of a line number: beyond any GPU's memory


class Index(NamedTuple):
    """The set index as compiled code reads it.

    ``mask`` and ``shift`` replace modulo and division where the number of sets is a power of two, else -1. ``hash``
    (n_tags,) int64 holds for each tag the bits to XOR with the low bits of the line; empty for plain modulo.
    """

    n_sets: int
    mask: int
    shift: int
    hash: np.ndarray


def fold_rows(sets: int, channels: int, lines_per_piece: int) -> list[int]:
    """Rows of a channel fold, as masks of line bits.

    The bits of the piece number, folded by XOR to log2(``channels``) bits, are the channel; the lowest remaining bits
    of the line are the set within the channel.
    """
    inner, channel_bits = lines_per_piece.bit_length() - 1, channels.bit_length() - 1
    in_channel = (sets // channels).bit_length() - 1
    rows = [1 << (bit if bit < inner else bit + channel_bits) for bit in range(in_channel)]
    for bit in range(channel_bits):
        rows.append(sum(1 << at for at in range(inner + bit, ADDRESS_BITS, channel_bits)))
    return rows


def complete_rows(rows: Sequence[int], n: int) -> list[int]:
    """Rows of all ``n`` set bits from fewer or more rows of a hash, so that one hash fits caches of any size.

    The lowest bit of a row is its name. The remaining set bits are plain: the lowest line bits that name no row. A row
    whose name is ``n`` or above is dropped.

    Raises
    ------
    SpecError
        If two rows have the same lowest bit.
    """
    names = [(row & -row).bit_length() - 1 for row in rows]
    if len(set(names)) < len(names):
        raise SpecError("index: rows that are not as many as set bits must each have another lowest bit")
    kept = [row for name, row in zip(names, rows, strict=True) if name < n]
    plain = [1 << bit for bit in range(n + len(names)) if bit not in names]
    return [*plain[: n - len(kept)], *kept]


def reduce_rows(rows: Sequence[int]) -> list[int]:
    """Bring rows to the form ``low bits ^ hash(tag)``.

    Parameters
    ----------
    rows : sequence of n int
        Each a mask of line bits.

    Returns
    -------
    hash_rows : list of n int
        For bit i of the set, a mask of tag bits (line bits from n on).

    Raises
    ------
    SpecError
        If set and tag do not determine the line.
    """
    n = len(rows)
    rows = list(rows)
    for bit in range(n):
        pivot = next((i for i in range(bit, n) if rows[i] >> bit & 1), None)
        if pivot is None:
            raise SpecError(
                f"index: two lines of the same set have the same tag, since line bit {bit} is lost: over the lowest "
                f"{n} line bits the {n} rows must be independent"
            )
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        for i in range(n):
            if i != bit and rows[i] >> bit & 1:
                rows[i] ^= rows[bit]
    return [row >> n for row in rows]


def hash_table(hash_rows: Sequence[int], n_tags: int) -> np.ndarray:
    """Bits to XOR with the low bits of a line, by tag: (n_tags,) int64, or empty if all rows are 0."""
    if not any(hash_rows):
        return np.zeros(0, np.int64)
    tag = np.arange(n_tags, dtype=np.int64)
    table = np.zeros(n_tags, np.int64)
    for bit, row in enumerate(hash_rows):
        table |= (np.bitwise_count(tag & np.int64(row & (2**62 - 1))).astype(np.int64) & 1) << bit
    return table
