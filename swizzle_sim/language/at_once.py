"""Runs a program without branches for all workgroups at once, by arithmetic on arrays: no compiler has to be loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from swizzle_sim.language.lower import ON_ARRAYS, OPCODES, Bytecode
from swizzle_sim.language.rules import INT32_MAX, INT32_MIN, MAX_STEPS_PER_PID

MOST = 1 << 16  # workgroups of all launches: of more the compiled one is faster, its compiler included


def run_at_once(
    program: Bytecode, where: Any, launches: Any, first: int, ids: np.ndarray, seen: np.ndarray, report: np.ndarray
) -> bool:
    """What `one_by_one.run_each` does; False of what it has to do: branches, faults, one launch out of its grid."""
    (at, decode_at, encode_at), (values, decode, encode, workgroups) = where, launches
    total, steps = int(workgroups.sum()), workgroups * len(program.code)
    if total > MOST or len(program.code) > MAX_STEPS_PER_PID or steps.sum() > report[0, 7]:
        return False
    of = np.repeat(np.arange(workgroups.size), workgroups)
    begin = np.cumsum(workgroups) - workgroups
    pid = first + np.arange(total) - begin[of]
    reg = list(program.registers[:, None])
    for k, to in enumerate(at):
        reg[to] = values[of, k]
    for k, to in enumerate(decode_at):
        reg[to] = pid // decode[of, k, 0] % decode[of, k, 1]
    for op, to, *operands, _ in program.instructions:
        value = _value(OPCODES[op], *(reg[one] for one in operands))
        if value is None or value.min() < INT32_MIN or value.max() > INT32_MAX:
            return False
        reg[to] = value
    tile, inside = np.zeros(total, np.int64), np.ones(total, np.bool_)
    for k, one in enumerate(encode_at):
        stride, extent = encode[of, k, 0], encode[of, k, 1]
        value = reg[one] if one >= 0 else pid // stride % extent
        inside &= (value >= 0) & (value < extent)
        tile += value * stride
    if not (inside.all() or seen.size):
        return False
    ids[: workgroups[-1]] = tile[begin[-1] :]
    report[:, 3], report[:, 6], report[1:, 7], report[:, 8] = -1, steps, report[0, 7] - np.cumsum(steps)[:-1], 1
    if seen.size:
        times = np.bincount((tile + begin[of])[inside], minlength=total)
        report[:, 8] = np.minimum.reduceat(times, begin) > 0
    return True


def _value(op: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    """Value of one instruction at each workgroup; None of a branch, and where C and Python differ or nothing is."""
    if op in ("move", "select"):
        return a if op == "move" else np.where(a != 0, b, c)
    right: Any = op not in ("jump", "jump-if-zero")
    if op in ("<<", ">>"):
        right = ((b >= 0) & (b < 32)).all()
    elif op in ("//", "%"):
        right = b.min() > 0 <= a.min() or (
            b.all() and (((a < 0) == (b < 0)) | (a % b == 0)).all() and not ((a == INT32_MIN) & (b == -1)).any()
        )
    return ON_ARRAYS[op](a, b).astype(np.int64, copy=False) if right else None
