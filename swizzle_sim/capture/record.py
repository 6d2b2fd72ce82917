"""Records the tensor instructions of one run: addresses of all workgroups become base lines and templates."""

from __future__ import annotations

import numpy as np

from swizzle_sim.capture.memory import AddressSpace
from swizzle_sim.capture.values import Column, Known, Patterns, rows_of, source_line, spread
from xcd_model.errors import CaptureError
from xcd_model.trace.coalesce import Touched, coalesce, lane_axes

NOTHING = (0, 0)  # bytes that a workgroup touches whose lanes are all masked out
MAX_INSTRUCTIONS = 1 << 28


class Templates:
    """Distinct templates of a trace, found by content."""

    def __init__(self):
        self.touched: list[Touched] = []
        self.owner: list[tuple[int, bool]] = []
        self._ids: dict[tuple, int] = {}

    def number(self, touched: Touched, tensor: int, is_write: bool) -> int:
        """Number of a template."""
        key = (tensor, is_write, *(part.tobytes() for part in touched))
        if key not in self._ids:
            self._ids[key] = len(self.touched)
            self.touched.append(touched)
            self.owner.append((tensor, is_write))
        return self._ids[key]


class InstructionRecorder:
    """Instructions of one run, in program order, for the workgroups of linear ids ``workgroups``, (n,) int64."""

    def __init__(
        self, table: Patterns, space: AddressSpace, templates: Templates, workgroups: np.ndarray, line_bytes: int
    ):
        self.table, self.space, self.templates = table, space, templates
        self.workgroups, self.line_bytes = workgroups, line_bytes
        self.base: list[Column] = []
        self.template: list[Column] = []

    def touch(self, pointer: Known, mask: Known | None, item_bytes: int, is_write: bool) -> list[int]:
        """Append one instruction, ``mask`` None for none; the tensors it touches."""
        columns = [pointer.p] if mask is None else [pointer.p, mask.p]
        rows, inverse = rows_of(columns)
        spans = [self._span(row, item_bytes) for row in rows]
        first = pointer.u + spread([span[0] for span in spans], inverse)
        end = pointer.u + spread([span[1] for span in spans], inverse)
        active = np.not_equal(first, end)
        line = source_line()
        self._check(first, end, active, is_write, line)
        tensor = np.where(active, self.space.owner(first), 0)
        base = first // self.line_bytes
        phase = np.where(active, first - base * self.line_bytes, 0)
        number = np.zeros(1, np.int64)[0] if inverse is None else inverse
        kinds, which = rows_of([_column(number), _column(phase), _column(tensor), _column(active)])
        ids = [self._template(rows[row], ph, t, item_bytes, is_write) if on else -1 for row, ph, t, on in kinds]
        self.base.append(base)
        self.template.append(spread(ids, which))
        if len(self.base) * self.workgroups.size > MAX_INSTRUCTIONS:
            raise CaptureError(
                f"{line}: more than {MAX_INSTRUCTIONS} tensor instructions: use a smaller problem or larger tiles"
            )
        return sorted({t for _, _, t, on in kinds if on})

    def _span(self, row: tuple, item_bytes: int) -> tuple[int, int]:
        """First byte and end of what a pattern touches under a mask, relative to ``u``."""

        def find():
            offset = self.table[row[0]]
            if len(row) > 1:
                offset = offset[np.broadcast_to(self.table[row[1]], offset.shape)]
            return (int(offset.min()), int(offset.max()) + item_bytes) if offset.size else NOTHING

        return self.table.remember(("span", item_bytes, *row), find)

    def _check(self, first, end, active, is_write: bool, line: str) -> None:
        bad = active & self.space.outside(first, end)
        if not np.any(bad):
            return
        at = int(np.argmax(bad))
        first, end = (int(np.broadcast_to(side, bad.shape).reshape(-1)[at]) for side in (first, end))
        raise CaptureError(f"{line}: {outside(self.space, first, end, is_write)}, in workgroup {self.workgroups[at]}")

    def _template(self, row: tuple, phase: int, tensor: int, item_bytes: int, is_write: bool) -> int:
        def find():
            offset = self.table[row[0]]
            address = offset - self._span(row, item_bytes)[0] + phase
            if len(row) > 1:
                address = np.where(np.broadcast_to(self.table[row[1]], offset.shape), address, -1)
            lanes = np.transpose(address, lane_axes(offset, item_bytes))
            return self.templates.number(coalesce(lanes, item_bytes, self.line_bytes), tensor, is_write)

        return self.table.remember(("template", phase, tensor, item_bytes, is_write, *row), find)


def outside(space: AddressSpace, first: int, end: int, is_write: bool) -> str:
    """Words for an access that leaves its tensor."""
    owner = int(space.owner(first))
    base, size = int(space.base[owner]), int(space.size[owner])
    verb = "writes" if is_write else "reads"
    place = f"{base - first} bytes before the start" if first < base else f"{end - base - size} bytes past the end"
    return f"{verb} {place} of {space.names[owner]} ({size} bytes)"


def _column(values) -> Column:
    return values if isinstance(values, np.ndarray) and values.ndim else int(values)
