"""Virtual machine: runs a candidate for every workgroup of a grid and decides whether the result is a permutation.

One compiled function runs every candidate, as compiling each (half a second) would cost more than replaying it. It
checks after every instruction that a signed 32-bit GPU integer would hold the value and that C and Python agree on it.
Both sides of a select and of ``and``/``or`` are evaluated, as on a GPU; of an ``if`` only the branch taken. `LANES`
workgroups run in step; where they part ways or one stops, those run again one by one.

    tile = sum over coordinates of value * stride,  where pid -> (pid // stride) % extent decodes the inputs
    permutation <=> every coordinate in range, and every tile computed once
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swizzle_sim.swizzle.grid import Grid, bind, result_digits
from swizzle_sim.swizzle.lower import Bytecode
from swizzle_sim.swizzle.rules import MAX_STEPS_PER_PID
from swizzle_sim.swizzle.verdict import (
    FAULT_TEXT,
    FAULTS,
    Budget,
    Counterexample,
    Execution,
    Fault,
    OutOfRange,
    gap_of,
    where_text,
)
from xcd_model.errors import LanguageError
from xcd_model.numba_inline import inlined
from xcd_model.numba_setup import uncounted

LANES, FEWEST_LANES = 256, 16  # workgroups that run in step, an int32 each in a register; fewer are faster one by one
_CUT = len(FAULTS)  # not a fault of the candidate: the step budget of the run is exhausted


def run(
    program: Bytecode,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    budget: Budget | None = None,
) -> Execution:
    """Evaluate a program for every workgroup of a grid.

    Parameters
    ----------
    program : Bytecode
    grid : Grid
    num_xcds : int
    sizes : mapping of str to int, optional
        The kernel's size names.
    budget : Budget, optional
        The instructions of all workgroups are taken from it; by default that of a candidate at this grid.

    Raises
    ------
    LanguageError
        With code ``name`` if the grid or the kernel lacks a name that the candidate uses, ``limit`` if the
        budget is exhausted: that says nothing about the candidate.
    """
    budget = budget or Budget.at(grid.num_pids)
    bound = bind(program.inputs, grid, num_xcds, sizes, program.input_lines)
    computed, unchanged = result_digits(tuple(program.results), grid, program.last_line)
    registers = program.registers.copy()
    for name, value in bound.constants.items():
        registers[program.inputs[name]] = value
    steps = grid.num_pids * len(program.code)
    if program.keeps_launch_order and steps <= budget.left:  # what is scored most compiles no machine
        budget.left -= steps
        return Execution(np.arange(grid.num_pids), None, None, steps)
    decode = [(program.inputs[name], digit.stride, digit.extent) for name, digit in bound.digits.items()]
    encode = [(program.results[name], digit.stride, digit.extent) for name, digit in computed.items()]
    # A coordinate that the candidate does not compute has no register: the hardware's digit stays.
    encode += [(-1, digit.stride, digit.extent) for digit in unchanged.values()]
    ids = np.empty(grid.num_pids, np.int64)
    report = np.zeros(8, np.int64)
    report[3], report[7] = -1, budget.left
    tables = (np.array(rows, np.int64).reshape(-1, 3) for rows in (decode, encode))
    rows = np.empty((registers.size + 1, LANES), np.int32)
    _evaluate(program.code, registers, rows, *tables, ids, report)
    budget.left -= min(int(report[6]), budget.left)
    if report[0] == _CUT:
        raise LanguageError(
            f"grid {grid} is too large to decide: after {report[7]} steps {report[1]} of {grid.num_pids} workgroups "
            "are done; shorten the loops, or take a smaller grid",
            line=int(report[2]),
            column=1,
            code="limit",
        )
    return _read_report(ids, report, list(computed), [digit.extent for digit in computed.values()])


def _read_report(ids: np.ndarray, report: np.ndarray, names: list[str], extents: list[int]) -> Execution:
    code, pid, line, lost_pid, axis, value, steps, _ = report.tolist()
    fault = Fault(FAULTS[code], pid, line) if code else None
    lost = OutOfRange(lost_pid, names[axis], value, extents[axis]) if lost_pid >= 0 else None
    return Execution(ids, fault, lost, steps)


@uncounted()
def _evaluate(code, reg, rows, decode, encode, ids, report):
    """Run ``code`` for every workgroup. Checks nothing: ``run`` has.

    code   : (n, 6) int32, op, dst, a, b, c, line; opcodes as in `lower.OPCODES`
    reg    : (n_registers,) int64, literals and constant inputs filled in
    rows   : (n_registers + 1, LANES) int32, the same of workgroups in step, and a spare one
    decode : (n_in, 3) int64, register, stride, extent of each input that differs between workgroups
    encode : (n_out, 3) int64, the same for each coordinate of the result; register -1 is the hardware's
    ids    : (num_pids,) int64, output
    report : (8,) int64, output: fault or _CUT, its pid, its line; first pid out of range, coordinate, value; steps.
             The last is an input: steps allowed.
    """
    fits = True
    for k in range(reg.size):
        rows[k] = min(max(reg[k], -2147483648), 2147483647)
        fits &= rows[k, 0] == reg[k]
    in_step, apart = 0, 0  # blocks
    for first in range(0, ids.size, LANES):
        last = min(first + LANES, ids.size)
        if fits and last - first >= FEWEST_LANES and apart < in_step + 2:
            if _run_lanes(code, rows, decode, encode, first, ids[first:last], report):
                in_step += 1
                continue
            apart += 1
        if _run_each(code, reg, decode, encode, first, ids[first:last], report):
            return


@inlined
def _run_each(code, reg, decode, encode, first, ids, report):
    """Run one workgroup after another; returns whether one stopped."""
    for i in range(ids.size):
        pid = first + i
        for k in range(decode.shape[0]):
            reg[decode[k, 0]] = (pid // decode[k, 1]) % decode[k, 2]
        left = report[7] - report[6]
        fault, line, steps = _run_one(code, reg, min(MAX_STEPS_PER_PID, left))
        report[6] += steps
        if fault == 5 and left < MAX_STEPS_PER_PID:
            fault = _CUT
        if fault:
            report[0], report[1], report[2] = fault, pid, line
            return True
        tile = 0
        for k in range(encode.shape[0]):
            stride, extent = encode[k, 1], encode[k, 2]
            value = reg[encode[k, 0]] if encode[k, 0] >= 0 else (pid // stride) % extent
            if value < 0 or value >= extent:
                tile = -1
                if report[3] < 0:
                    report[3], report[4], report[5] = pid, k, value
                break
            tile += value * stride
        ids[i] = tile
    return False


@inlined
def _run_lanes(code, rows, decode, encode, first, ids, report):
    """Run a block in step; returns False where they part ways, one stops or leaves the grid, or the budget may end."""
    for k in range(decode.shape[0]):
        _digits(first, ids.size, decode[k, 1], decode[k, 2], rows[decode[k, 0]])
    most = min(MAX_STEPS_PER_PID, (report[7] - report[6]) // ids.size)
    spare = rows[rows.shape[0] - 1]
    at, steps = 0, 0
    while at < code.shape[0]:
        op, dst = code[at, 0], code[at, 1]
        steps += 1
        if steps > most:
            return False
        if op == 0:
            at = dst
            continue
        a = rows[code[at, 2]]
        if op == 1:
            zeros = 0
            for i in range(LANES):
                zeros += a[i] == 0
            if zeros not in (0, LANES):
                return False
            at = dst if zeros else at + 1
            continue
        if _operate_lanes(op, a, rows[code[at, 3]], rows[code[at, 4]], spare):
            return False
        for i in range(LANES):  # not a slice: numba compiles the message of its check for a second
            rows[dst, i] = spare[i]
        at += 1
    if _tiles(rows, encode, first, ids):
        return False
    report[6] += steps * ids.size
    return True


@inlined
def _digits(first, count, stride, extent, out):
    """Coordinate of each workgroup of a run, ``(pid // stride) % extent``; lanes beyond ``count`` hold the last one."""
    digit, within = (first // stride) % extent, first % stride
    for i in range(count):
        out[i] = digit
        within += 1
        if within == stride:
            digit, within = (digit + 1) % extent, 0
    out[count:] = out[count - 1]


@inlined
def _tiles(rows, encode, first, ids):
    """Write the tile of each workgroup of a run; returns whether one lies outside the grid."""
    lost = 0
    ids[:] = 0
    for k in range(encode.shape[0]):
        stride, extent = encode[k, 1], encode[k, 2]
        if encode[k, 0] < 0:
            _digits(first, ids.size, stride, extent, rows[rows.shape[0] - 1])
        values = rows[encode[k, 0] % rows.shape[0]]  # -1 is the spare row
        for i in range(ids.size):
            value = np.int64(values[i])
            lost |= (value < 0) | (value >= extent)
            ids[i] += value * stride
    return lost != 0


@inlined
def _operate_lanes(op, a, b, c, out):
    """Do `_operate` in every lane; returns whether one of them has a fault. ``out`` is none of the operands."""
    bad = 0
    if op == 2:
        for i in range(LANES):
            out[i] = a[i]
    elif 3 <= op <= 5:
        for i in range(LANES):
            x, y = np.int64(a[i]), np.int64(b[i])
            wide = x + y if op == 3 else (x - y if op == 4 else x * y)
            out[i] = min(max(wide, -2147483648), 2147483647)
            bad |= (wide < -2147483648) | (wide > 2147483647)
    elif 6 <= op <= 7:  # a quotient of 32-bit integers, cut to an integer, is exact in a double
        for i in range(LANES):
            x, y = np.int64(a[i]), np.int64(b[i])
            none = (y == 0) | ((x == -2147483648) & (y == -1))
            divisor = y if not none else np.int64(1)
            quotient = np.int64(np.int32(np.float64(x) / np.float64(divisor)))
            rest = x - quotient * divisor
            bad |= none | ((rest != 0) & ((x < 0) != (y < 0)))
            out[i] = quotient if op == 6 else rest
    elif 8 <= op <= 9:
        for i in range(LANES):
            shift = np.int64(b[i])
            wide = np.int64(a[i]) << (shift & 31) if op == 8 else np.int64(a[i]) >> (shift & 31)
            out[i] = min(max(wide, -2147483648), 2147483647)
            bad |= (shift < 0) | (shift > 31) | (wide < -2147483648) | (wide > 2147483647)
    else:  # no other has a fault
        for i in range(LANES):
            out[i] = _operate(op, np.int64(a[i]), np.int64(b[i]), np.int64(c[i]))[1]
    return bad != 0


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


def permutation_of(
    program: Bytecode,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    budget: Budget | None = None,
) -> tuple[Execution, Counterexample | None]:
    """Evaluate a program on a grid, as `run` does; the counter-example is None if the result is a permutation."""
    found = run(program, grid, num_xcds, sizes, budget)
    if found.fault:
        fault = found.fault
        message = f"pid {fault.pid}, line {fault.line}: {FAULT_TEXT[fault.code]} {where_text(grid, num_xcds)}"
        return found, Counterexample(fault.code, message, (fault.pid,), line=fault.line)
    return found, counterexample_of(found.ids, found.out_of_range, grid, num_xcds)


def counterexample_of(ids: np.ndarray, lost: OutOfRange | None, grid: Grid, num_xcds: int) -> Counterexample | None:
    """Reason why tiles (-1 where a coordinate is out of range) are not a permutation of a grid, None if they are."""
    owner = np.full(grid.num_pids, -1, np.int32)
    distinct, clash = _census(ids, owner)
    return None if distinct == grid.num_pids else gap_of(ids, owner, clash, lost, grid, num_xcds)


@uncounted()
def _census(ids, owner):
    """Count distinct tiles, and find the first workgroup whose tile another computes.

    ids   : (n,) int64, tile of each workgroup, -1 where out of range
    owner : (n,) int32, -1s; output: first workgroup of each tile
    """
    distinct, clash = 0, -1
    for pid in range(ids.size):
        tile = ids[pid]
        if tile < 0:
            continue
        if owner[tile] < 0:
            owner[tile] = pid
            distinct += 1
        elif clash < 0:
            clash = pid
    return distinct, clash
