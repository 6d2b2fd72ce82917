"""Exact evaluation: an operation of Triton's own builder, once for each kind of workgroup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from swizzle_sim.capture.patterns import Patterns, compress, rows_of, spread
from swizzle_sim.capture.values import Known, Unknown, Value
from xcd_model.errors import CaptureError

MAX_ROWS = 1 << 18  # kinds of workgroups that are worked out one at a time
LANEWISE = ("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr", "umulhi",
            "minsi", "minui", "maxsi", "maxui", "icmp", "int_cast", "iabs", "si_to_fp", "ui_to_fp", "fp_to_si",
            "fadd", "fsub", "fmul", "fdiv", "fcmp", "floor", "ceil", "sqrt", "bitcast")  # fmt: skip


def data_of(table: Patterns, value: Known, u: int, p: int) -> np.ndarray:
    """Items that a workgroup holds."""
    if value.kind.kind in "iu":
        return (u + table[p]).astype(value.kind)
    return table[p]


def evaluate(
    table: Patterns, function: Callable, args: Sequence[Any], handle_of: Callable, name: str, line: str
) -> Any:
    """Value of ``function``, which takes and gives Triton's handles, for known arguments.

    Raises
    ------
    CaptureError
        If the workgroups are of too many kinds, or the operation raises; names the line.
    """
    values = [a for a in args if isinstance(a, Known)]
    columns = [column for value in values for column in (value.u, value.p)]
    rows, inverse = rows_of(columns)
    try:
        with np.errstate(all="ignore"):
            if inverse is not None and _is_lanewise(table, values, name):
                return _at_once(table, function, args, handle_of, rows, inverse)
            if len(rows) > MAX_ROWS:
                raise CaptureError(f"{line}: {name} differs in {len(rows)} workgroups: use --full", code="not-followed")
            outcomes = [function(*_concrete(table, args, row, handle_of)) for row in rows]
    except CaptureError:
        raise
    except NotImplementedError as error:
        return Unknown(f"what {line} computes ({error})")
    except Exception as error:
        raise CaptureError(f"{line}: {type(error).__name__}: {error}", code="kernel-raised") from error
    if isinstance(outcomes[0], tuple):
        return tuple(_gather(table, [o[i] for o in outcomes], inverse) for i in range(len(outcomes[0])))
    return _gather(table, outcomes, inverse)


def _concrete(table: Patterns, args: Sequence[Any], row: tuple, handle_of: Callable) -> list[Any]:
    ready, at = [], 0
    for arg in args:
        if isinstance(arg, Value):
            ready.append(handle_of(data_of(table, arg, row[at], row[at + 1]), arg.dtype))  # type: ignore[arg-type]
            at += 2
        else:
            ready.append(arg)
    return ready


def _gather(table: Patterns, handles: Sequence[Any], inverse: np.ndarray | None) -> Known:
    split = [table.split(np.asarray(handle.data)) for handle in handles]
    return Known(
        spread([u for u, _ in split], inverse),
        spread([p for _, p in split], inverse),
        np.asarray(handles[0].data).dtype,
        handles[0].dtype,
    )


def _is_lanewise(table: Patterns, values: Sequence[Known], name: str) -> bool:
    """Whether a scalar operation may be done for all kinds of workgroups in one array."""
    one_item = all(not isinstance(v.p, np.ndarray) and table[v.p].shape in ((), (1,)) for v in values)
    return (
        one_item
        and all(v.kind.kind in "iu" for v in values)
        and any(name.removeprefix("create_").startswith(word) for word in LANEWISE)
    )


def _at_once(table, function, args, handle_of, rows, inverse) -> Known:
    ready, at = [], 0
    for arg in args:
        if isinstance(arg, Value):
            ready.append(handle_of(np.array([r[at] for r in rows], np.int64).astype(arg.kind), arg.dtype))  # type: ignore[attr-defined]
            at += 2
        else:
            ready.append(arg)
    result = function(*ready)
    data = np.asarray(result.data)
    if data.dtype.kind in "iu":
        zero = table.intern(np.zeros(1, np.int64))
        return Known(compress(data.astype(np.int64)[inverse]), zero, data.dtype, result.dtype)
    values, which = np.unique(data, return_inverse=True)
    ids = [table.intern(np.array([v], data.dtype)) for v in values]
    return Known(0, spread(ids, which[inverse]), data.dtype, result.dtype)
