"""`TraceBuilder`: a trace from the rectangles of arrays that a kernel's instructions touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import TraceError
from .trace import MAX_LINE_BYTES, SECTOR_BYTES, Tensor, Trace

# Assumed: device allocators hand out large tensors on 2 MiB boundaries (the fragment size of the driver).
TENSOR_ALIGN_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Array2D:
    """A row-major two-dimensional array that the builder has placed in the address space."""

    index: int
    rows: int
    cols: int
    item_bytes: int
    pitch_bytes: int
    base_bytes: int


@dataclass(frozen=True)
class Access:
    """One tensor instruction of every workgroup, or of every trip of a loop: bases and templates of equal shape."""

    base: np.ndarray
    template: np.ndarray


class TraceBuilder:
    """Collect the instructions of all workgroups at once, in program order.

    Parameters
    ----------
    n_workgroups : int
    line_bytes : int
        Line of the caches that the trace will be replayed on [bytes].

    Examples
    --------
    >>> import numpy as np
    >>> build = TraceBuilder(n_workgroups=2, line_bytes=128)
    >>> x = build.array("x", rows=2, cols=64, item_bytes=2)
    >>> build.step(build.read(x, row=np.array([0, 1]), col=0, rows=1, cols=64))
    >>> build.trace().n_touches
    2
    """

    def __init__(self, *, n_workgroups: int, line_bytes: int):
        if n_workgroups < 1:
            raise TraceError(f"n_workgroups = {n_workgroups}: a trace has at least one workgroup")
        if line_bytes & (line_bytes - 1) or not SECTOR_BYTES <= line_bytes <= MAX_LINE_BYTES:
            raise TraceError(f"line_bytes = {line_bytes}: a power of two from {SECTOR_BYTES} to {MAX_LINE_BYTES}")
        self.n_workgroups, self.line_bytes = n_workgroups, line_bytes
        self._tensors: list[Tensor] = []
        self._next_byte = 0
        self._templates: dict[tuple, int] = {}
        self._lines: list[tuple[np.ndarray, np.ndarray]] = []
        self._owner: list[tuple[int, bool]] = []
        self._columns: list[tuple[np.ndarray, np.ndarray]] = []

    def array(self, name: str, *, rows: int, cols: int, item_bytes: int, pitch_bytes: int | None = None) -> Array2D:
        """Place a row-major array after the ones before it; ``pitch_bytes`` is the distance of rows [bytes]."""
        pitch = cols * item_bytes if pitch_bytes is None else pitch_bytes
        if min(rows, cols, item_bytes) < 1 or pitch < cols * item_bytes:
            raise TraceError(f"array {name}: {rows} x {cols} items of {item_bytes} B do not fit a pitch of {pitch} B")
        size = (rows - 1) * pitch + cols * item_bytes
        base = self._next_byte
        self._next_byte = -(-(base + size) // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES
        self._tensors.append(Tensor(name, base // self.line_bytes, -(-size // self.line_bytes), size))
        return Array2D(len(self._tensors) - 1, rows, cols, item_bytes, pitch, base)

    def read(self, array: Array2D, *, row, col, rows, cols) -> Access:
        """Load a rectangle; see `_access` for the arguments."""
        return self._access(array, row, col, rows, cols, False)

    def write(self, array: Array2D, *, row, col, rows, cols) -> Access:
        """Store a rectangle; see `_access` for the arguments."""
        return self._access(array, row, col, rows, cols, True)

    def _access(self, array: Array2D, row, col, rows, cols, write: bool) -> Access:
        """Bases and templates of rectangles, clipped to the array as a mask would.

        ``row, col`` (first item) and ``rows, cols`` (extent) are integers or arrays that broadcast to
        (n_workgroups,) or (n_workgroups, n_trips). A rectangle wholly outside gets template -1: no instruction.
        """
        row, col, rows, cols = np.broadcast_arrays(*(np.asarray(v, np.int64) for v in (row, col, rows, cols)))
        if row.size and min(int(row.min()), int(col.min())) < 0:
            raise TraceError(f"tensor {self._tensors[array.index].name}: a rectangle begins before the array")
        if row.size and min(int(rows.min()), int(cols.min())) < 0:
            raise TraceError(f"tensor {self._tensors[array.index].name}: a rectangle has a negative extent")
        high = np.clip(array.rows - row, 0, rows)
        wide = np.clip(array.cols - col, 0, cols)
        address = array.base_bytes + row * array.pitch_bytes + col * array.item_bytes
        base, phase = np.divmod(address, self.line_bytes)
        shape = np.stack([phase, high, wide], axis=-1).reshape(-1, 3)
        distinct, inverse = np.unique(shape, axis=0, return_inverse=True)
        ids = [self._template(array, int(p), int(h), int(w), write) for p, h, w in distinct]
        return Access(base, np.array(ids, np.int32)[inverse.reshape(-1)].reshape(base.shape))

    def _template(self, array: Array2D, phase: int, high: int, wide: int, write: bool) -> int:
        if high == 0 or wide == 0:
            return -1
        key = (array.index, phase, high, wide, write)
        if key not in self._templates:
            self._templates[key] = len(self._lines)
            first = phase + np.arange(high, dtype=np.int64) * array.pitch_bytes
            self._lines.append(_lines_of(first, first + wide * array.item_bytes, self.line_bytes))
            self._owner.append((array.index, write))
        return self._templates[key]

    def step(self, *accesses: Access) -> None:
        """Append one pass of a loop body: the accesses in order, for each trip; trips are the second axis."""
        bases, templates = [], []
        trips = max(1 if a.base.ndim < 2 else a.base.shape[1] for a in accesses)
        for access in accesses:
            shape = (self.n_workgroups, trips)
            column = [
                np.broadcast_to(v if v.ndim > 1 else v.reshape(-1, 1), shape) for v in (access.base, access.template)
            ]
            bases.append(column[0])
            templates.append(column[1])
        stacked = (self.n_workgroups, trips * len(accesses))
        self._columns.append((np.stack(bases, -1).reshape(stacked), np.stack(templates, -1).reshape(stacked)))

    def trace(self) -> Trace:
        """Build the trace; raises TraceError if a workgroup touches nothing or a rectangle leaves its array."""
        if not self._columns or not self._lines:
            raise TraceError("no workgroup touches anything: call step() with accesses inside their arrays")
        base = np.concatenate([c[0] for c in self._columns], axis=1)
        template = np.concatenate([c[1] for c in self._columns], axis=1)
        keep = template >= 0
        counts = np.array([lines.size for lines, _ in self._lines], np.int64)
        return Trace(
            line_bytes=self.line_bytes,
            tensors=tuple(self._tensors),
            start=np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int64),
            base=np.ascontiguousarray(base[keep]),
            template=np.ascontiguousarray(template[keep].astype(np.int32)),
            rel_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            rel=np.concatenate([lines for lines, _ in self._lines]).astype(np.int32),
            sectors=np.concatenate([sectors for _, sectors in self._lines]),
            is_write=np.array([write for _, write in self._owner], bool),
            tensor=np.array([index for index, _ in self._owner], np.int32),
        )


def _lines_of(first: np.ndarray, last: np.ndarray, line_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines of the byte ranges ``first .. last - 1``, each once in the order touched, and their sector bits."""
    sector_first, sector_end = first // SECTOR_BYTES, (last - 1) // SECTOR_BYTES + 1
    sectors = np.concatenate([np.arange(a, b) for a, b in zip(sector_first, sector_end, strict=True)])
    per_line = line_bytes // SECTOR_BYTES
    line, at = np.unique(sectors // per_line, return_index=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, np.searchsorted(line, sectors // per_line), (1 << (sectors % per_line)).astype(np.uint8))
    order = np.argsort(at, kind="stable")
    return line[order], bits[order]
