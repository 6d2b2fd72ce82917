"""The caches of a `xcd_model.spec.gpu.Gpu`, and their set index: any linear hash of address bits, in one form.

A cache of 2^n sets may compute bit i of the set as the XOR of any address bits, a row of a matrix over GF(2):

    set_i = XOR_j (row_ij AND line_j)

Renumbering the sets of an LRU cache changes no hit, so rows may be added to each other (Gauss) until bit i of the set
is line bit i XOR a function of the bits from n on. Then ``set = low bits ^ hash[tag]``, one table look-up, and set and
tag determine the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from xcd_model.compiled.by_reference import by_reference
from xcd_model.errors import SpecError
from xcd_model.spec.facts import check_types, divides, one_of

PASS_BYTES = 128  # of an NVIDIA L1's 32 banks
ADDRESS_BITS = 44  # of a line number: beyond any GPU's memory


@by_reference
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
    """
    names = [(row & -row).bit_length() - 1 for row in rows]
    if len(set(names)) < len(names):
        raise SpecError("index: rows that are not as many as set bits must each have another lowest bit")
    kept = [row for name, row in zip(names, rows, strict=True) if name < n]
    plain = [1 << bit for bit in range(n + len(names)) if bit not in names]
    return [*plain[: n - len(kept)], *kept]


def reduce_rows(rows: Sequence[int]) -> list[int]:
    """Bring rows to the form ``low bits ^ hash(tag)``."""
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


INDEX_FUNCTIONS = ("modulo", "channel-fold", "xor")


@dataclass(frozen=True, kw_only=True)
class Cache:
    """One level of cache.

    An L1 belongs to one CU, an L2 to one XCD, the Infinity Cache (MALL) to the whole GPU; its bandwidth too.

    Parameters
    ----------
    size_bytes, line_bytes, ways : int
        ``size_bytes`` is a whole number of sets of ``line_bytes * ways`` [bytes].
    read_request_bytes, write_request_bytes : int
        Largest read and write that count as one request here [bytes]; each divides ``line_bytes``.
    channels : int
        Independent slices; divides ``sets``.
    index : str
        How a line finds its set. ``"modulo"``: line mod sets. ``"channel-fold"``: the address is cut into pieces of
        ``index_interleave_bytes``; all bits of the piece number, folded by XOR to log2(``index_channels``) bits,
        choose the channel, and what is left of the line, mod the sets of a channel, chooses the set in it. ``"xor"``:
        bit i of the set is the XOR of the address bits that are set in ``index_rows[i]``.
    lds_carve_outs : tuple of int, optional
        NVIDIA only, for an L1 in one array with LDS: the sizes that LDS may occupy of it, rising [bytes], each of which
        leaves whole ways; ``size_bytes`` is the whole array. See `xcd_model.nvidia.rates`.
    fetches_halves : bool, optional
        NVIDIA only: a read miss fetches only the touched halves of a line; the whole line where it is left out.
    by_bank : bool, optional
        NVIDIA only, of an L1: waves' loads take its port for as many passes as `xcd_model.trace.coalesce` says; for
        one a line where it is left out.
    write_back, write_allocate : bool
    kept_between_launches : bool
        Whether lines stay valid after the kernel that loaded them; dirty ones are written back at its end in any case.
    read_bytes_per_cycle : int
        Peak read rate [bytes/cycle].
    write_port_ratio : float, optional
        Width of the write port over that of the read port; a half where it is left out.
    latency_ns : float
        Load-to-use time of a hit, from the CU [ns].
    bandwidth_gbps : float, optional
        Read rate reached by a benchmark [GB/s].
    index_channels, index_interleave_bytes : int, optional
        For ``"channel-fold"`` only: powers of two, and so is ``sets / index_channels``.
    index_rows : tuple of int, optional
        For ``"xor"`` only: one mask of byte address bits for each bit of the set; over the lowest bits of the line
        the rows are independent. Fewer masks leave the other bits of the set plain, see `xcd_model.spec.caches`.
    """

    size_bytes: int
    line_bytes: int
    ways: int
    read_request_bytes: int
    write_request_bytes: int
    channels: int
    index: str
    write_back: bool
    write_allocate: bool
    kept_between_launches: bool
    read_bytes_per_cycle: int
    latency_ns: float
    bandwidth_gbps: float | None = None
    index_channels: int | None = None
    index_interleave_bytes: int | None = None
    index_rows: tuple[int, ...] | None = None
    fetches_halves: bool | None = None
    lds_carve_outs: tuple[int, ...] | None = None
    write_port_ratio: float | None = None
    by_bank: bool | None = None

    def __post_init__(self):
        check_types(self)
        one_of("index", self.index, INDEX_FUNCTIONS)
        if self.line_bytes & (self.line_bytes - 1):
            raise SpecError(f"line_bytes = {self.line_bytes} must be a power of two")
        for key in ("read_request_bytes", "write_request_bytes"):
            divides(key, getattr(self, key), "line_bytes", self.line_bytes)
        set_bytes = self.line_bytes * self.ways
        if self.size_bytes % set_bytes:
            below = self.size_bytes // set_bytes * set_bytes
            near = f"sizes are {below:_} and {below + set_bytes:_}" if below else f"size is {set_bytes:_}"
            raise SpecError(
                f"size_bytes = {self.size_bytes:_} is not a whole number of sets (line_bytes * ways = "
                f"{self.line_bytes} * {self.ways} = {set_bytes} B); nearest {near}"
            )
        divides("channels", self.channels, "the number of sets", self.sets)
        if self.fetches_halves:
            for key in ("read_request_bytes", "write_request_bytes"):
                divides(key, getattr(self, key), "half of line_bytes", self.fetch_bytes)
        if self.by_bank and self.line_bytes % PASS_BYTES:
            raise SpecError(f"by_bank = true: its banks are {PASS_BYTES} B wide, and line_bytes = {self.line_bytes}")
        self._check_fold()
        self._check_rows()
        self._check_carve_outs()

    def _check_carve_outs(self):
        sizes = self.lds_carve_outs
        if sizes is None:
            return
        whole = all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes)
        if not sizes or not whole or list(sizes) != sorted(set(sizes)) or sizes[-1] >= self.size_bytes:
            raise SpecError(f"lds_carve_outs = {sizes} must rise from 0 or more to less than size_bytes")
        for size in sizes:
            divides(
                "sets * line_bytes",
                self.sets * self.line_bytes,
                "size_bytes less lds_carve_outs",
                self.size_bytes - size,
            )
        object.__setattr__(self, "lds_carve_outs", tuple(sizes))

    def _check_fold(self):
        folds = self.index == "channel-fold"
        for key in ("index_channels", "index_interleave_bytes"):
            value = getattr(self, key)
            if folds != (value is not None):
                rule = "must be given" if folds else "must be left out"
                raise SpecError(f"{key} = {value} {rule} where index = {self.index!r}")
            if value is not None and value & (value - 1):
                raise SpecError(f"{key} = {value} must be a power of two")
        if self.index_channels and self.index_interleave_bytes:
            divides("line_bytes", self.line_bytes, "index_interleave_bytes", self.index_interleave_bytes)
            per_channel, left = divmod(self.sets, self.index_channels)
            if left or per_channel & (per_channel - 1):
                raise SpecError(f"sets / index_channels = {self.sets} / {self.index_channels} must be a power of two")
            if per_channel * self.line_bytes < self.index_interleave_bytes:
                raise SpecError(
                    f"index_interleave_bytes = {self.index_interleave_bytes} must be at most the lines of one way of a "
                    f"channel, {per_channel} sets * {self.line_bytes} B"
                )

    def _check_rows(self):
        if (self.index == "xor") != (self.index_rows is not None):
            rule = "must be given" if self.index == "xor" else "must be left out"
            raise SpecError(f"index_rows = {self.index_rows} {rule} where index = {self.index!r}")
        if self.index_rows is None:
            return
        bits = self.sets.bit_length() - 1
        if self.sets != 1 << bits:
            raise SpecError(f"index_rows: with a hash {self.sets} sets must be a power of two")
        for row in self.index_rows:
            if isinstance(row, bool) or not isinstance(row, int) or not self.line_bytes <= row < 1 << 52:
                raise SpecError(f"index_rows: {row!r} must be a mask of address bits, none of them within a line")
            if row % self.line_bytes:
                raise SpecError(f"index_rows: {row:#x} must be a mask of address bits, none of them within a line")
        object.__setattr__(self, "index_rows", tuple(self.index_rows))
        self.line_rows()

    def line_rows(self) -> list[int] | None:
        """For each bit of the set a mask of line bits, reduced as in `xcd_model.spec.caches`; None for plain modulo."""
        if self.index_rows is not None:
            rows, n = [row // self.line_bytes for row in self.index_rows], self.sets.bit_length() - 1
            return reduce_rows(rows if len(rows) == n else complete_rows(rows, n))
        if self.index_channels and self.index_interleave_bytes:
            return reduce_rows(
                fold_rows(self.sets, self.index_channels, self.index_interleave_bytes // self.line_bytes)
            )
        return None

    @property
    def write_bytes_per_cycle(self) -> float:
        """Peak write rate [bytes/cycle]."""
        return self.read_bytes_per_cycle * (0.5 if self.write_port_ratio is None else self.write_port_ratio)

    @property
    def fetch_bytes(self) -> int:
        """Bytes that a read miss fetches: a line, or half of one."""
        return self.line_bytes // 2 if self.fetches_halves else self.line_bytes

    @property
    def sets(self) -> int:
        """Number of sets, over all channels."""
        return self.size_bytes // (self.line_bytes * self.ways)


@dataclass(frozen=True, kw_only=True)
class InstructionCache:
    """The instruction cache of one or more CUs; every launch starts with it empty."""

    size_bytes: int
    line_bytes: int
    cus: int  # CUs that share one cache
    prefetch_lines: int  # lines prefetched beyond the last instruction, also past the end of the code

    def __post_init__(self):
        check_types(self)
        divides("line_bytes", self.line_bytes, "size_bytes", self.size_bytes)
