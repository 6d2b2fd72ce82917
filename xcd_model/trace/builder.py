"""`TraceBuilder`: a trace from the boxes of arrays that a kernel's instructions touch, and from gathers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from xcd_model.errors import TraceError
from xcd_model.integers import is_whole, wholes
from xcd_model.trace.coalesce import Touched, coalesce, gather_lines
from xcd_model.trace.trace import MAX_LINE_BYTES, PASSES, SECTOR_BYTES, Tensor, Trace

# Assumed: device allocators hand out large tensors on 2 MiB boundaries (the fragment size of the driver).
TENSOR_ALIGN_BYTES = 2 * 1024 * 1024
MAX_TABLE = 1 << 20  # distinct boxes are found by a table where there are at most so many, else by sorting


@dataclass(frozen=True)
class PlacedArray:
    """An array that the builder has placed in the address space; ``strides_bytes`` has one step for each axis."""

    index: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    item_bytes: int
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

    Notes
    -----
    A matrix comes from `array` and is touched by `read` and `write`; an array of any number of axes comes from `place`
    and is touched by `read_box` and `write_box`. `gather` touches items anywhere. Whatever lies outside an array is
    left out, as masks do. Waves' requests follow `xcd_model.trace.coalesce` for the whole tile, masked items included.

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
        if not is_whole(n_workgroups) or n_workgroups < 1:
            raise TraceError(f"n_workgroups = {n_workgroups!r}: a trace has a whole number of workgroups, at least one")
        if line_bytes & (line_bytes - 1) or not SECTOR_BYTES <= line_bytes <= MAX_LINE_BYTES:
            raise TraceError(f"line_bytes = {line_bytes}: a power of two from {SECTOR_BYTES} to {MAX_LINE_BYTES}")
        self.n_workgroups, self.line_bytes = n_workgroups, line_bytes
        self._tensors: list[Tensor] = []
        self._next_byte = 0
        self._boxes: dict[tuple, int] = {}
        self._lines: list[Touched] = []
        self._owner: list[tuple[int, bool]] = []
        self._steps: list[list[tuple[np.ndarray, np.ndarray]]] = []  # base and template of each access

    def array(self, name: str, *, rows: int, cols: int, item_bytes: int, pitch_bytes: int | None = None) -> PlacedArray:
        """Place a row-major matrix after the arrays before it; ``pitch_bytes`` is the distance of rows [bytes]."""
        pitch = cols * item_bytes if pitch_bytes is None else pitch_bytes
        wholes((rows, cols, item_bytes, pitch), f"array {name}", TraceError)
        if min(rows, cols, item_bytes) < 1 or pitch < cols * item_bytes:
            raise TraceError(f"array {name}: {rows} x {cols} items of {item_bytes} B do not fit a pitch of {pitch} B")
        return self._place(name, (rows, cols), (pitch, item_bytes), item_bytes)

    def place(
        self, name: str, *, shape: Sequence[int], item_bytes: int, strides: Sequence[int] | None = None
    ) -> PlacedArray:
        """Place an array of any number of axes after the ones before it.

        Parameters
        ----------
        name : str
        shape : sequence of int
            Items along each axis.
        item_bytes : int [bytes]
        strides : sequence of int, optional
            Items from one to the next along each axis, none negative; row-major where not given.
        """
        if strides is None:
            strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
        wholes((*shape, *strides, item_bytes), f"array {name}", TraceError)
        if not shape or min(*shape, item_bytes) < 1 or len(strides) != len(shape) or min(strides) < 0:
            raise TraceError(
                f"array {name}: shape {tuple(shape)}, strides {tuple(strides)}, items of {item_bytes} B: "
                "one stride for each axis, no side below 1, no stride below 0"
            )
        return self._place(name, tuple(map(int, shape)), tuple(int(s) * item_bytes for s in strides), item_bytes)

    def _place(self, name, shape, strides_bytes, item_bytes) -> PlacedArray:
        size = sum((n - 1) * s for n, s in zip(shape, strides_bytes, strict=True)) + item_bytes
        base = self._next_byte
        self._next_byte = -(-(base + size) // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES
        self._tensors.append(Tensor(name, base // self.line_bytes, -(-size // self.line_bytes), size))
        return PlacedArray(len(self._tensors) - 1, shape, strides_bytes, item_bytes, base)

    def read(self, array: PlacedArray, *, row, col, rows, cols, at_once: int | None = None) -> Access:
        """Load a rectangle of a matrix; as `read_box` at ``(row, col)`` of size ``(rows, cols)``."""
        return self._box(array, (row, col), (rows, cols), False, at_once)

    def write(self, array: PlacedArray, *, row, col, rows, cols) -> Access:
        """Store a rectangle of a matrix; as `write_box` at ``(row, col)`` of size ``(rows, cols)``."""
        return self._box(array, (row, col), (rows, cols), True)

    def read_box(self, array: PlacedArray, *, at: Sequence, size: Sequence, at_once: int | None = None) -> Access:
        """Load a box, clipped to the array as a mask would.

        Parameters
        ----------
        array : PlacedArray
        at, size : sequence
            First item and extent along each axis of the array, the tile's axes in the array's order: integers, or
            arrays that broadcast to (n_workgroups,) or (n_workgroups, n_trips). The box may begin before the array
            or end behind it; one wholly outside, or of extent 0, is no instruction.
        at_once : int, optional
            Most items that one instruction of a lane loads, where a mask keeps the compiler from more.
        """
        return self._box(array, at, size, False, at_once)

    def write_box(self, array: PlacedArray, *, at: Sequence, size: Sequence) -> Access:
        """Store a box; see `read_box`."""
        return self._box(array, at, size, True)

    def gather(
        self, array: PlacedArray, index: np.ndarray, *, write: bool = False, groups: int | None = None
    ) -> Access:
        """Touch items anywhere.

        ``index`` (n_workgroups, n_items) or (n_workgroups, n_trips, n_items) int: items of the tile in its row-major
        order, each counted from the array's first item; masked out where negative, and no instruction where all are.
        ``groups`` is the length of its first axis, and of what is returned, where that is not one entry a workgroup.
        """
        name, item = self._tensors[array.index].name, array.item_bytes
        index = np.asarray(index)
        limit = self._tensors[array.index].size_bytes // item
        first = self.n_workgroups if groups is None else groups
        if index.ndim not in (2, 3) or index.shape[0] != first:
            raise TraceError(f"tensor {name}: a gather of shape {index.shape}, not ({first}[, trips], items)")
        index = wholes(index, f"tensor {name}: items of a gather", TraceError)
        if index.size and int(index.max()) >= limit:
            raise TraceError(f"tensor {name}: a gather reads item {index.max()}; it has {limit}")
        if SECTOR_BYTES % item:
            raise TraceError(f"tensor {name}: items of {item} B do not divide a sector of {SECTOR_BYTES} B")
        address = np.where(index < 0, -1, index * item).reshape(-1, index.shape[-1])
        origin, rows, of = _alike(address)
        found = gather_lines(rows, item, self.line_bytes)
        count = np.diff(found.start)
        base = np.zeros(count.size, np.int64)
        template = np.full(count.size, -1, np.int32)
        some = np.flatnonzero(count)
        if some.size:
            base[some] = np.minimum.reduceat(found.line, found.start[some])
            template[some] = self._keep_gathers(array.index, write, found, base, some)
        shape = index.shape[:-1]
        first_line = (array.base_bytes + origin) // self.line_bytes
        return Access((base[of] + first_line).reshape(shape), template[of].reshape(shape))

    def _keep_gathers(self, index: int, write: bool, found, base: np.ndarray, some: np.ndarray) -> list[int]:
        """Templates of the gathers ``some``, one for all that look the same from their lowest line."""
        ids = []
        for i in some.tolist():
            span = slice(found.start[i], found.start[i + 1])
            waves = np.array([0, 0, 0, found.passes[i]], np.int64)
            touched = Touched(found.line[span] - base[i], found.sectors[span], found.wave_requests[span], waves)
            key = (index, write, *(part.tobytes() for part in touched))
            ids.append(self._template(key, index, write, touched))
        return ids

    def _box(self, array: PlacedArray, at: Sequence, size: Sequence, write: bool, at_once: int | None = None) -> Access:
        """Bases and templates of boxes, clipped to the array."""
        name, axes = self._tensors[array.index].name, len(array.shape)
        if at_once is not None and (at_once < 1 or at_once & (at_once - 1)):
            raise TraceError(f"tensor {name}: at_once = {at_once}: a power of two, at least 1")
        if not len(at) == len(size) == axes:
            raise TraceError(
                f"tensor {name}: a box at {len(at)} places of {len(size)} sides; the array has {axes} axes"
            )
        parts = [wholes(v, f"tensor {name}: places and sides of a box", TraceError) for v in (*at, *size)]
        try:
            shape = np.broadcast_shapes(*(one.shape for one in parts))
        except ValueError:
            raise TraceError(
                f"tensor {name}: a box of shapes {[one.shape for one in parts]}, which do not fit"
            ) from None
        if shape[:1] not in ((), (1,), (self.n_workgroups,)):
            raise TraceError(
                f"tensor {name}: a box of {shape[0]} entries; it has one, or one for each of the "
                f"{self.n_workgroups} workgroups"
            )
        at, size = parts[:axes], parts[axes:]
        if 0 not in shape and min(int(extent.min()) for extent in size) < 0:
            raise TraceError(f"tensor {name}: a rectangle has a negative extent")
        address, skip, kept = np.int64(array.base_bytes), [], []
        for first, extent, side, stride in zip(at, size, array.shape, array.strides_bytes, strict=True):
            skip.append(np.minimum(np.maximum(-first, 0), extent))
            kept.append(np.clip(np.minimum(first + extent, side) - np.maximum(first, 0), 0, None))
            address = address + np.clip(first, 0, side) * stride  # as small as its parts: an axis of trips comes last
        base, phase = np.divmod(address, self.line_bytes)
        distinct, inverse = _distinct([phase, *skip, *kept, *size], shape)
        ids = [self._box_template(array, key, write, at_once) for key in distinct]
        return Access(np.broadcast_to(base, shape), np.array(ids, np.int32)[inverse])

    def _box_template(self, array: PlacedArray, box: tuple[int, ...], write: bool, at_once: int | None) -> int:
        axes = len(array.shape)
        phase, skip, kept, size = box[0], box[1 : 1 + axes], box[1 + axes : 1 + 2 * axes], box[1 + 2 * axes :]
        if min(kept) == 0:
            return -1
        key = (array.index, write, box, at_once)
        if key in self._boxes:
            return self._boxes[key]
        touched = box_lines(
            phase=phase,
            skip=skip,
            kept=kept,
            size=size,
            strides=array.strides_bytes,
            item_bytes=array.item_bytes,
            line_bytes=self.line_bytes,
            at_once=at_once,
        )
        return self._template(key, array.index, write, touched)

    def _template(self, key: tuple, index: int, write: bool, touched: Touched) -> int:
        if key not in self._boxes:
            self._boxes[key] = len(self._lines)
            self._lines.append(touched)
            self._owner.append((index, write))
        return self._boxes[key]

    def together(self, *stores: Access) -> Access:
        """One tensor instruction of several stores, one after the other: each that stores to a line touches it."""
        templates = np.unique(np.concatenate([one.template.ravel() for one in stores]))
        owners = {self._owner[template] for template in templates[templates >= 0]}
        index, is_store = owners.pop() if len(owners) == 1 else (-1, False)
        if not is_store or templates[0] < 0 or len({one.base.shape for one in stores}) != 1:
            raise TraceError("together: stores to one array, of the same workgroups and trips, none masked out")
        first = stores[0].base
        columns = [part for one in stores for part in (one.template.astype(np.int64), one.base - first)]
        distinct, inverse = _distinct(columns, first.shape)
        ids = []
        for key in distinct:
            parts = [(self._lines[t], delta) for t, delta in zip(key[::2], key[1::2], strict=True)]
            waves = np.stack([part.waves for part, _ in parts])
            touched = Touched(
                np.concatenate([part.line + delta for part, delta in parts]),
                np.concatenate([part.sectors for part, _ in parts]),
                np.concatenate([part.wave_requests for part, _ in parts]),
                np.array([*waves[:, :2].sum(axis=0), waves[:, 2].max(), waves[:, PASSES].sum()]),
            )
            ids.append(self._template((index, "together", key), index, True, touched))
        return Access(first, np.array(ids, np.int32)[inverse])

    def step(self, *accesses: Access) -> None:
        """Append one pass of a loop body: the accesses in order, for each trip; trips are the second axis."""
        trips = max(1 if a.base.ndim < 2 else a.base.shape[1] for a in accesses)
        shape = (self.n_workgroups, trips)
        in_each = [[v if v.ndim > 1 else v.reshape(-1, 1) for v in (a.base, a.template)] for a in accesses]
        self._steps.append([(np.broadcast_to(b, shape), np.broadcast_to(t, shape)) for b, t in in_each])

    def _instructions(self) -> tuple[np.ndarray, np.ndarray]:
        """Bases and templates of all steps, (n_workgroups, n_instructions) each; a template is -1 for none."""
        shape = self.n_workgroups, sum(len(step) * step[0][0].shape[1] for step in self._steps)
        base, template, first = np.empty(shape, np.int64), np.empty(shape, np.int32), 0
        for step in self._steps:
            end = first + len(step) * step[0][0].shape[1]
            for i, (bases, templates) in enumerate(step):
                base[:, first + i : end : len(step)] = bases
                template[:, first + i : end : len(step)] = templates
            first = end
        return base, template

    def trace(self) -> Trace:
        """Build the trace; raises TraceError if a workgroup touches nothing: in an access model that is a mistake."""
        if not self._steps or not self._lines:
            raise TraceError("no workgroup touches anything: call step() with accesses inside their arrays")
        base, template = self._instructions()
        keep = template >= 0
        if not keep.any(axis=1).all():
            raise TraceError(f"workgroup {int(np.argmin(keep.any(axis=1)))} touches nothing")
        counts = np.array([touched.line.size for touched in self._lines], np.int64)
        return Trace(
            line_bytes=self.line_bytes,
            tensors=tuple(self._tensors),
            start=np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int64),
            base=base.reshape(-1) if keep.all() else base[keep],
            template=template.reshape(-1) if keep.all() else template[keep],
            rel_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            rel=np.concatenate([touched.line for touched in self._lines]).astype(np.int32),
            sectors=np.concatenate([touched.sectors for touched in self._lines]),
            is_write=np.array([write for _, write in self._owner], bool),
            tensor=np.array([index for index, _ in self._owner], np.int32),
            wave_requests=np.concatenate([touched.wave_requests for touched in self._lines]),
            waves=np.stack([touched.waves for touched in self._lines]),
        )


def _alike(address: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where each row of addresses, -1 for none, begins, the distinct rows seen from there, and which is where.

    A stretch that many workgroups read somewhere else is looked at once. Rows begin on multiples of any line.
    """
    if not address.size:
        return np.zeros(len(address), np.int64), address, np.arange(len(address))
    lowest = np.where(address < 0, address.max(), address).min(axis=1)
    origin = lowest // MAX_LINE_BYTES * MAX_LINE_BYTES
    rows = np.ascontiguousarray(np.where(address < 0, -1, address - origin[:, None]))
    _, first, of = np.unique(rows.view(f"V{rows.strides[0]}").reshape(-1), return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return origin, rows[np.sort(first)], place[of.reshape(-1)]


def _distinct(columns: list[np.ndarray], shape: tuple[int, ...]) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the distinct tuples across columns that broadcast to a shape, and which of them is where.

    Tuples are numbered by mixed radix over the values' ranges, which are narrow as a rule: no sort is needed then.
    """
    code, n_codes = np.zeros(shape, np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
        if n_codes > 2**62 // (high - low + 1):  # too wide: number what there is so far
            seen, code = np.unique(code, return_inverse=True)
            code, n_codes = code.reshape(shape), seen.size
        code *= high - low + 1
        code += column - low
        n_codes *= high - low + 1
    flat = code.reshape(-1)
    if n_codes <= MAX_TABLE:
        where = np.full(n_codes, -1, np.int64)
        where[flat[::-1]] = np.arange(flat.size - 1, -1, -1)  # the first place of each code
        first = where[where >= 0]
        number = np.zeros(n_codes, np.int64)
        number[where >= 0] = np.arange(first.size)
        inverse = number[flat]
    else:
        _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    at = np.unravel_index(first, shape) if shape else ()
    values = [np.broadcast_to(column, shape)[at].reshape(-1).tolist() for column in columns]
    return list(zip(*values, strict=True)), inverse.reshape(shape)


def box_lines(
    *,
    phase: int,
    skip,
    kept,
    size,
    strides,
    item_bytes: int,
    line_bytes: int,
    at_once: int | None = None,
) -> Touched:
    """Lines of the box ``skip .. skip + kept - 1`` that masks leave of a tile of ``size`` items.

    Parameters
    ----------
    phase : int [bytes]
        Where the first kept item lies in its line, which is line 0 of the result.
    skip, kept, size : (n_axes,) int
        Along each axis of the tile: items masked out before the kept ones, kept items, all items.
    strides : (n_axes,) int [bytes]
        From one item to the next along each axis, none negative.
    item_bytes, line_bytes : int [bytes]
    """
    runs = [side & -side if stride == item_bytes else 1 for side, stride in zip(size, strides, strict=True)]
    axes = sorted(range(len(runs)), key=runs.__getitem__)  # as `xcd_model.trace.coalesce.lane_axes` has them
    skip, kept, size, strides = ([each[axis] for axis in axes] for each in (skip, kept, size, strides))
    address = np.full(tuple(size), -1, np.int64)
    inside = tuple(slice(s, s + k) for s, k in zip(skip, kept, strict=True))
    steps = [np.arange(count, dtype=np.int64) * stride for count, stride in zip(kept, strides, strict=True)]
    address[inside] = phase + reduce(np.add.outer, steps)
    return coalesce(address, item_bytes, line_bytes, at_once=at_once)
