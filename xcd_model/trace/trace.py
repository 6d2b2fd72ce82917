"""`Trace`: what each workgroup touches, in program order, in cache lines.

An instruction is a *base line* and a *template*: the lines it touches relative to the base, and in each line which
32-byte sectors. A trace does not know in which order, or on which XCD, its workgroups will run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from xcd_model.errors import TraceError

SECTOR_BYTES = 32  # resolution of a trace within a line; every GPU's request size is a multiple of it
MAX_LINE_BYTES = 8 * SECTOR_BYTES  # the sectors of a line are the bits of one byte
MAX_LINES = 2**54  # of the address space: a byte address, and twice a line number, are far from the ends of an int64
FEWEST_ROWS = 4  # of a tile, below which their distance says nothing
MOST_TEMPLATES = 4096  # looked at for rows: a gather may have one for each workgroup
LEAST_PITCH = 4096  # bytes: rows so far apart begin in the same of 16 channels of 256
WAVE_COLUMNS, PASSES = 4, 3  # of `Trace.waves`, and the one of passes through an L1
UNCOALESCED = 4  # rows of a tile of 32 B or less, in lines of 128 B
# The compiled replays read these arrays with no check of their own.
DTYPES = {
    "start": np.int64,
    "base": np.int64,
    "template": np.int32,
    "rel_start": np.int64,
    "rel": np.int32,
    "sectors": np.uint8,
    "is_write": np.bool_,
    "tensor": np.int32,
    "wave_requests": np.uint16,
    "multicast": np.bool_,
}


@dataclass(frozen=True)
class Tensor:
    """A named array in the trace's own address space.

    Parameters
    ----------
    name : str
    base_line : int
        First line; virtual, aligned to `TENSOR_ALIGN_BYTES`.
    n_lines : int
        Lines it covers.
    size_bytes : int
    """

    name: str
    base_line: int
    n_lines: int
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Trace:
    """What every workgroup of one kernel touches.

    Parameters
    ----------
    line_bytes : int
        Cache line the trace was built for [bytes].
    tensors : tuple of Tensor
    start : (n_workgroups + 1,) int64
        Workgroup ``w`` runs instructions ``start[w] .. start[w + 1] - 1``; none in a workgroup that touches nothing.
    base, template : (n_instructions,) int64, int32
        First line and template of each instruction.
    rel_start : (n_templates + 1,) int64
        Template ``t`` owns entries ``rel_start[t] .. rel_start[t + 1] - 1`` of `rel` and `sectors`.
    rel : (n_entries,) int32
        Line relative to the base, each line once, but in a store as often as parts of it are stored, in that order.
    sectors : (n_entries,) uint8
        Bit ``i``: the instruction touches bytes ``32 i .. 32 i + 31`` of that line.
    is_write : (n_templates,) bool
    tensor : (n_templates,) int32
        Index into `tensors`.
    wave_requests : (n_entries,) uint16
        Accesses of the line by the workgroup's waves after coalescing: requests to the L1. Ones where not given.
    waves : (n_templates, 4) int64
        `xcd_model.trace.coalesce.Touched.waves` of each template: for what users are told, and the last number for the
        time that an L1 of banks takes. Zeros where not given.
    multicast : (n_templates,) bool
        Loads of which a cluster's workgroups fetch a part each and get all, see `xcd_model.trace.clusters`. None where
        not given.

    Raises
    ------
    TraceError
        If an instruction touches a line outside its tensor (names workgroup and instruction), no workgroup touches
        anything, or the arrays do not fit together.
    """

    line_bytes: int
    tensors: tuple[Tensor, ...]
    start: np.ndarray = field(repr=False)
    base: np.ndarray = field(repr=False)
    template: np.ndarray = field(repr=False)
    rel_start: np.ndarray = field(repr=False)
    rel: np.ndarray = field(repr=False)
    sectors: np.ndarray = field(repr=False)
    is_write: np.ndarray = field(repr=False)
    tensor: np.ndarray = field(repr=False)
    wave_requests: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.uint16))
    waves: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, WAVE_COLUMNS), np.int64))
    multicast: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self):
        if self.wave_requests.size == 0:
            object.__setattr__(self, "wave_requests", np.ones(self.rel.size, np.uint16))
        if self.multicast.size == 0:
            object.__setattr__(self, "multicast", np.zeros(self.is_write.size, np.bool_))
        self._check_types()
        if self.waves.size == 0:
            object.__setattr__(self, "waves", np.zeros((self.is_write.size, WAVE_COLUMNS), np.int64))
        if self.start.size < 2 or self.start[0] != 0 or self.start[-1] != self.base.size:
            raise TraceError(f"start = {self.start[:3]}...: begins at 0 and ends at the {self.base.size} instructions")
        if np.any(self.start[1:] < self.start[:-1]):
            back = int(np.argmax(self.start[1:] < self.start[:-1]))
            raise TraceError(f"workgroup {back} ends before it begins: start = {self.start[back : back + 2]}")
        if self.base.size == 0:
            raise TraceError("no workgroup touches anything")
        if self.rel_start.size < 2 or self.template.size != self.base.size:
            raise TraceError("every template has a line, and every instruction one base and one template")
        self._check_tensors()
        self._check_templates()
        shape = (self.is_write.size, WAVE_COLUMNS)
        if self.waves.shape != shape or self.waves.dtype != np.int64 or self.waves.min() < 0:
            raise TraceError(f"waves is {self.waves.dtype} of shape {self.waves.shape}: four counts for each template")
        self._check_bounds()

    def _check_types(self):
        for name, dtype in DTYPES.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
                found = (
                    f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                )
                raise TraceError(f"{name} is {found}: one axis of {np.dtype(dtype)}")
        sizes = [SECTOR_BYTES * 2**k for k in range(4)]
        if type(self.line_bytes) is not int or self.line_bytes not in sizes:
            raise TraceError(f"line_bytes = {self.line_bytes!r}: one of {', '.join(map(str, sizes))}")

    def _check_tensors(self):
        for tensor in self.tensors:
            places = (tensor.base_line, tensor.n_lines, tensor.size_bytes)
            if not isinstance(tensor.name, str) or any(type(n) is not int for n in places):
                raise TraceError(f"tensor {tensor.name!r}: a name and three integers, not {places}")
            if not (0 <= tensor.base_line <= MAX_LINES and 0 <= tensor.n_lines <= MAX_LINES and tensor.size_bytes >= 0):
                raise TraceError(
                    f"tensor {tensor.name} of {tensor.n_lines} lines begins at line {tensor.base_line}: at least 0, "
                    f"and at most {MAX_LINES}"
                )
        by_place = sorted(self.tensors, key=lambda t: t.base_line)
        for before, after in itertools.pairwise(by_place):
            if before.base_line + before.n_lines > after.base_line:  # the bounds add up tensors as if disjoint
                raise TraceError(f"tensors {before.name} and {after.name} overlap: make them one tensor")

    def _check_templates(self):
        n = self.rel_start.size - 1
        if np.any(self.rel_start[1:] <= self.rel_start[:-1]):  # a difference may wrap, a comparison cannot
            raise TraceError("every template has a line: rel_start rises")
        if self.rel_start[0] != 0 or not self.rel.size == self.sectors.size == self.rel_start[-1]:
            raise TraceError(
                f"rel_start ends at {self.rel_start[-1]}; {self.rel.size} rel, {self.sectors.size} sectors"
            )
        if not self.is_write.size == self.tensor.size == n or not 0 <= self.template.min() <= self.template.max() < n:
            raise TraceError(f"there are {n} templates: is_write, tensor and the instructions do not agree")
        if not 0 <= self.tensor.min() <= self.tensor.max() < len(self.tensors):
            raise TraceError(
                f"tensor = {self.tensor.min()}..{self.tensor.max()}: there are {len(self.tensors)} tensors"
            )
        if self.wave_requests.size != self.rel.size or self.wave_requests.min() < 1:
            raise TraceError(
                f"wave_requests has {self.wave_requests.size} entries, rel {self.rel.size}; each at least 1"
            )
        if self.sectors.min() < 1 or int(self.sectors.max()) >> (self.line_bytes // SECTOR_BYTES):
            raise TraceError(f"sectors: each line has a bit set, and none beyond its {self.line_bytes} B")

    def _check_bounds(self):
        """Hold each base against the bases that its template allows: ``base + rel`` itself could wrap."""
        low = np.minimum.reduceat(self.rel, self.rel_start[:-1]).astype(np.int64)
        high = np.maximum.reduceat(self.rel, self.rel_start[:-1]).astype(np.int64)
        first = np.array([t.base_line for t in self.tensors], np.int64)[self.tensor]
        end = first + np.array([t.n_lines for t in self.tensors], np.int64)[self.tensor]
        bad = (self.base < (first - low)[self.template]) | (self.base >= (end - high)[self.template])
        if np.any(bad):
            i = int(np.argmax(bad))
            w, t, base = int(np.searchsorted(self.start, i, side="right")) - 1, int(self.template[i]), int(self.base[i])
            raise TraceError(
                f"workgroup {w}, instruction {i - int(self.start[w])} touches lines {base + int(low[t])}.."
                f"{base + int(high[t])} outside tensor {self.tensors[int(self.tensor[t])].name} "
                f"(lines {first[t]}..{end[t] - 1})"
            )

    @property
    def n_workgroups(self) -> int:
        """Workgroups in the grid."""
        return self.start.size - 1

    @property
    def n_instructions(self) -> int:
        """Tensor instructions of all workgroups."""
        return self.base.size

    @property
    def entries_per_template(self) -> np.ndarray:
        """(n_templates,) int64: lines that each template touches."""
        return np.diff(self.rel_start)

    @property
    def uncoalesced(self) -> np.ndarray:
        """(n_templates,) bool: whether waves make `UNCOALESCED` times the requests of lanes side by side."""
        return (self.waves[:, 1] > 0) & (self.requests_of_waves >= UNCOALESCED * self.waves[:, 1])

    @property
    def requests_of_waves(self) -> np.ndarray:
        """(n_templates,) int64: requests to the L1, a line each."""
        return np.add.reduceat(self.wave_requests, self.rel_start[:-1], dtype=np.int64)

    @property
    def l1_passes(self) -> np.ndarray:
        """(n_templates,) int64: passes through an L1 of banks; a line each where that is not known."""
        return np.where(self.waves[:, PASSES] > 0, self.waves[:, PASSES], self.requests_of_waves)

    @property
    def power_of_two_pitches(self) -> dict[str, int]:
        """Distance [bytes] of a tile's rows by tensor, where it is a power of two from `LEAST_PITCH` on."""
        most: dict[str, tuple[int, int]] = {}
        for template, tensor in enumerate(self.tensor[:MOST_TEMPLATES]):
            lines = np.unique(self.rel[self.rel_start[template] : self.rel_start[template + 1]])
            rows = lines[np.flatnonzero(np.diff(lines, prepend=lines[:1] - 2) > 1)]  # each begins behind a gap
            name = self.tensors[int(tensor)].name
            if rows.size >= FEWEST_ROWS and rows.size > most.get(name, (0, 0))[0]:
                steps, counts = np.unique(np.diff(rows), return_counts=True)
                most[name] = int(rows.size), int(steps[np.argmax(counts)]) * self.line_bytes
        return {name: far for name, (_, far) in most.items() if far >= LEAST_PITCH and far & (far - 1) == 0}

    @property
    def highest_line(self) -> int:
        """The line after the last of all tensors."""
        return max(tensor.base_line + tensor.n_lines for tensor in self.tensors)

    @property
    def n_touches(self) -> int:
        """Line touches of all instructions: what a replay has to look up."""
        return int(self.entries_per_template[self.template].sum())

    def requests_per_template(self, read_request_bytes: int, write_request_bytes: int) -> np.ndarray:
        """(n_templates,) int64: requests of a size [bytes] that one instruction of each template sends to a cache.

        A line of which several request-sized pieces are touched takes as many requests.
        """
        read = np.add.reduceat(_pieces(self.sectors, read_request_bytes), self.rel_start[:-1])
        write = np.add.reduceat(_pieces(self.sectors, write_request_bytes), self.rel_start[:-1])
        return np.where(self.is_write, write, read).astype(np.int64)

    def with_lines_of(self, line_bytes: int) -> Trace:
        """Return the same trace with lines of ``line_bytes``, as large as its own or half of that."""
        if line_bytes == self.line_bytes:
            return self
        half = line_bytes // SECTOR_BYTES
        sectors = np.stack([self.sectors & ((1 << half) - 1), self.sectors >> half], axis=1).reshape(-1)
        touched = sectors > 0
        count = np.add.reduceat(touched, 2 * self.rel_start[:-1], dtype=np.int64)
        return replace(
            self,
            line_bytes=line_bytes,
            tensors=tuple(replace(t, base_line=2 * t.base_line, n_lines=2 * t.n_lines) for t in self.tensors),
            base=2 * self.base,
            rel_start=np.concatenate([[0], np.cumsum(count)]),
            rel=_int32(2 * self.rel[:, None].astype(np.int64) + np.arange(2)).reshape(-1)[touched],
            sectors=sectors[touched],
            wave_requests=np.repeat(self.wave_requests, 2)[touched],
            waves=self.waves * (1, 2, 1, 1),
        )

    def read_pieces(self, read_request_bytes: int) -> np.ndarray:
        """Read requests that each template entry takes, (n_entries,) uint8; 0 for writes."""
        is_read = np.repeat(~self.is_write, self.entries_per_template)
        return np.where(is_read, _pieces(self.sectors, read_request_bytes), 0).astype(np.uint8)

    def written_pieces(self, write_request_bytes: int) -> np.ndarray:
        """Bit mask, (n_entries,) uint8, of the request-sized pieces that a write dirties; 0 for reads."""
        mask = _touched_pieces(self.sectors, self.line_bytes, write_request_bytes)
        return np.where(np.repeat(self.is_write, self.entries_per_template), mask, 0).astype(np.uint8)

    def fills(self, fetch_bytes: int) -> np.ndarray:
        """Bit mask, (n_entries,) uint8, of the pieces of ``fetch_bytes`` (a line or half of one) that are touched."""
        return _touched_pieces(self.sectors, self.line_bytes, fetch_bytes)


def waves_of(
    active: np.ndarray, items: int, together: int, item_bytes: int, line_bytes: int, passes: int
) -> np.ndarray:
    """A row of `Trace.waves` from the active items of each wave, (n_waves,), and a lane's items, in all and at once."""
    each, fewest = items // together, -(-active * item_bytes // line_bytes)
    return np.array([each * np.count_nonzero(active), each * fewest.sum(), together * item_bytes, passes], np.int64)


def _int32(lines: np.ndarray) -> np.ndarray:
    """Lines relative to a base, refused where they do not fit."""
    if max(-lines.min(), lines.max()) >= 2**31:
        raise TraceError(f"one instruction spans lines {lines.min()}..{lines.max()} around its base: at most 2**31")
    return lines.astype(np.int32)


def _touched_pieces(sectors: np.ndarray, line_bytes: int, piece_bytes: int) -> np.ndarray:
    """Bit mask of the pieces of a line that the sector bits touch; (n,) uint8."""
    mask = np.zeros(sectors.size, np.uint8)
    per_piece = piece_bytes // SECTOR_BYTES
    for piece in range(max(1, line_bytes // piece_bytes)):
        bits = ((1 << per_piece) - 1) << (piece * per_piece)
        mask |= (((sectors & bits) != 0).astype(np.uint8) << piece).astype(np.uint8)
    return mask


def _pieces(sectors: np.ndarray, request_bytes: int) -> np.ndarray:
    """Count the request-sized pieces of a line that the sector bits touch; (n,) int64."""
    per_piece = request_bytes // SECTOR_BYTES
    count = np.zeros(sectors.size, np.int64)
    for piece in range(max(1, 8 // per_piece)):
        bits = ((1 << per_piece) - 1) << (piece * per_piece)
        count += (sectors & bits) != 0
    return count
