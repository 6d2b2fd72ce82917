"""Rows of a matrix moved apart: the trace of the same kernel with a larger leading dimension.

    line of a tensor = row * P + column        P lines a row as traced, P + D padded
    padded           = row * (P + D) + column

Exact where every tile keeps to its rows: no tile may run over the end of one row into the next.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xcd_model.errors import TraceError, UnknownName
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES
from xcd_model.trace.trace import Trace


def padded(trace: Trace, tensor: str, *, pitch_bytes: int, more_bytes: int) -> Trace:
    """Trace with the rows of one tensor further apart; tensors behind it move on as far as it grows.

    Parameters
    ----------
    pitch_bytes : int [bytes]
        From one of its rows to the next, as traced.
    more_bytes : int [bytes]
        Added to that.
    """
    names = [one.name for one in trace.tensors]
    if tensor not in names:
        raise UnknownName("tensor", tensor, names)
    if pitch_bytes % trace.line_bytes or more_bytes % trace.line_bytes or pitch_bytes < 1 or more_bytes < 0:
        raise TraceError(
            f"{tensor}: rows {pitch_bytes} B apart, {more_bytes} B more: whole lines of {trace.line_bytes} B are moved"
        )
    at, line = names.index(tensor), trace.line_bytes
    moved, shift, behind = [], [], 0
    for i, one in enumerate(trace.tensors):
        rows = -(-one.size_bytes // pitch_bytes) if i == at else 1
        size = one.size_bytes + (rows - 1) * more_bytes
        base = -(-behind // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES
        behind = base + size
        moved.append(replace(one, base_line=base // line, n_lines=-(-size // line), size_bytes=size))
        shift.append(base // line - one.base_line)
    owner = trace.tensor[trace.template]
    base, mine = trace.base + np.array(shift, np.int64)[owner], owner == at
    inside = trace.base[mine] - trace.tensors[at].base_line
    base[mine] += inside // (pitch_bytes // line) * (more_bytes // line)
    rel = _moved_rows(trace, tensor, np.flatnonzero(mine), inside % (pitch_bytes // line), pitch_bytes, more_bytes)
    return replace(trace, tensors=tuple(moved), base=base, rel=rel)


def _moved_rows(trace: Trace, tensor: str, instructions, column, pitch_bytes: int, more_bytes: int) -> np.ndarray:
    """Lines of each template relative to its base, with those of the tensor moved by the rows that they cross."""
    pitch, more, rel = pitch_bytes // trace.line_bytes, more_bytes // trace.line_bytes, trace.rel.copy()
    known: dict[int, np.ndarray] = {}
    for template, first in np.unique(np.stack([trace.template[instructions], column], 1), axis=0).tolist():
        span = slice(int(trace.rel_start[template]), int(trace.rel_start[template + 1]))
        crossed = (first + trace.rel[span]) // pitch
        if (known.setdefault(template, crossed) != crossed).any():
            raise TraceError(f"{tensor}: a tile runs over the end of a row, so its rows cannot be moved apart")
    for template, crossed in known.items():
        rel[trace.rel_start[template] : trace.rel_start[template + 1]] += (crossed * more).astype(rel.dtype)
    return rel
