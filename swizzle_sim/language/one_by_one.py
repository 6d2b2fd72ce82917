"""Runs a program for one workgroup after another, compiled.

One compiled function runs every candidate, as compiling each (half a second) would cost more than replaying it.
"""

from __future__ import annotations

import numpy as np

from swizzle_sim.language.rules import MAX_STEPS_PER_PID
from swizzle_sim.language.verdict import FAULTS
from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted

CUT = len(FAULTS)  # not a fault of the candidate: the step budget of the run is exhausted


@uncounted()
def run_each(code, reg, where, launches, first, ids, seen, report):
    """Run launch after launch, up to the first that the budget cuts off. Checks nothing: `vm` has.

    code     : (n, 6) int32, op, dst, a, b, c, line; opcodes as in `lower.OPCODES`
    reg      : (2, n_registers) int64, literals filled in, and scratch
    where    : registers of constants, of inputs that differ between workgroups, and of coordinates of the result; of
               those that the hardware gives -1
    launches : (n_launches, n_constants) int64; (n_launches, n_in, 2) int64, stride and extent of each input; the same
               for each coordinate; (n_launches,) int64, workgroups
    first    : int, the workgroup of ``ids[0]``
    ids      : (most workgroups,) int64, output, of the last launch
    seen     : (most workgroups,) int32, 0s, to find tiles that several compute; or empty, and none are
    report   : (n_launches, 9) int64, output: fault or CUT, its pid, its line; first pid out of range, coordinate,
               value; steps; steps allowed, of the first an input; whether each tile is computed once
    """
    (at, decode_at, encode_at), (values, decode, encode, workgroups) = where, launches
    for k in range(workgroups.size):
        for i in range(reg.shape[1]):
            reg[1, i] = reg[0, i]
        for i in range(at.size):
            reg[1, at[i]] = values[k, i]
        found = report[k]
        found[3] = -1
        _run_launch(code, reg[1], (decode_at, decode[k], encode_at, encode[k]), first, ids[: workgroups[k]], found)
        if found[0] == CUT:
            return
        right = found[0] == 0 and found[3] < 0
        for i in range(min(seen.size, workgroups[k])):
            if right:
                right = seen[ids[i]] != k + 1
                seen[ids[i]] = k + 1
        found[8] = right
        if k + 1 < workgroups.size:
            report[k + 1, 7] = found[7] - found[6]


@inlined
def _run_launch(code, reg, digits, first, ids, report):
    """Run one workgroup after another, up to the first that stops."""
    decode_at, decode, encode_at, encode = digits
    for i in range(ids.size):
        pid = first + i
        for k in range(decode_at.size):
            reg[decode_at[k]] = (pid // decode[k, 0]) % decode[k, 1]
        left = report[7] - report[6]
        fault, line, steps = _run_one(code, reg, min(MAX_STEPS_PER_PID, left))
        report[6] += steps
        if fault == 5 and left < MAX_STEPS_PER_PID:
            fault = CUT
        if fault:
            report[0], report[1], report[2] = fault, pid, line
            return
        tile = 0
        for k in range(encode_at.size):
            stride, extent = encode[k, 0], encode[k, 1]
            value = reg[encode_at[k]] if encode_at[k] >= 0 else (pid // stride) % extent
            if value < 0 or value >= extent:
                tile = -1
                if report[3] < 0:
                    report[3], report[4], report[5] = pid, k, value
                break
            tile += value * stride
        ids[i] = tile


@inlined
def _run_one(code, reg, max_steps):
    """Run ``code`` once on ``reg``; returns fault, line and steps."""
    at, steps = 0, 0
    while at < code.shape[0]:
        op, dst, line = code[at, 0], code[at, 1], code[at, 5]
        steps += 1
        if steps > max_steps:
            return 5, line, steps
        if op == 0:  # jump
            at = dst
            continue
        if op == 1:  # jump where a register is zero
            at = dst if reg[code[at, 2]] == 0 else at + 1
            continue
        fault, value = _operate(op, reg[code[at, 2]], reg[code[at, 3]], reg[code[at, 4]])
        if fault == 0 and (value < -2147483648 or value > 2147483647):
            fault = 1
        if fault:
            return fault, line, steps
        reg[dst] = value
        at += 1
    return 0, 0, steps


@inlined
def _operate(op, a, b, c):  # noqa: PLR0911, PLR0912 - one case an opcode
    """One instruction of int32 values held in 64 bits; returns fault and value."""
    if op == 2:
        return 0, a
    if op == 3:
        return 0, a + b
    if op == 4:
        return 0, a - b
    if op == 5:
        return 0, a * b
    if 6 <= op <= 7:  # floor division and remainder
        if b == 0:
            return 2, a
        if a == -2147483648 and b == -1:  # the remainder would fit, but C leaves both undefined
            return 1, a
        quotient = a // b
        remainder = a - quotient * b
        if remainder != 0 and (a < 0) != (b < 0):  # C truncates, Python floors
            return 3, a
        return 0, quotient if op == 6 else remainder
    if 8 <= op <= 9:
        if b < 0 or b > 31:
            return 4, a
        return 0, a << b if op == 8 else a >> b
    if op == 10:
        return 0, a & b
    if op == 11:
        return 0, a | b
    if op == 12:
        return 0, a ^ b
    if op == 13:
        return 0, min(a, b)
    if op == 14:
        return 0, max(a, b)
    if op == 15:
        return 0, np.int64(a < b)
    if op == 16:
        return 0, np.int64(a <= b)
    if op == 17:
        return 0, np.int64(a == b)
    if op == 18:
        return 0, np.int64(a != b)
    return 0, b if a != 0 else c  # select
