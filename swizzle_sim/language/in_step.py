"""Runs a program for a block of workgroups in step, one NumPy call an instruction.

A register holds an integer while all workgroups of the block have the same there, and then computing costs nothing;
else one for each. Where they part ways each part goes on by itself. What is rare is given up, and `one_by_one` finds
out: a fault, of which the first workgroup and its line are wanted; parts that take longer than compiled code would; the
end of a budget. Small blocks, for which NumPy's calls take longer, run here until those of a process have taken as long
as loading the compiler does; from then on they run one by one, and large ones that stay together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swizzle_sim.language.grid import Digit
from swizzle_sim.language.lower import ON_ARRAYS, OPCODES
from swizzle_sim.language.rules import INT32_MAX, INT32_MIN, MAX_STEPS_PER_PID

# What a block may lose to compiled code, in steps of that, of which an instruction here takes as long as CALL.
CALL = 4096
MOST_LOST = 1000 * CALL  # some 10 ms
Held = tuple[int, Digit]  # a register and the coordinate that it holds


@dataclass
class Allowance:
    """Steps that blocks may yet lose in this process, all together."""

    steps: int


BEFORE_COMPILING = Allowance(100_000 * CALL)  # half a second to one, as loading the compiler takes


class Lanes(NamedTuple):
    """A register: one integer, or an int64 array of one for each workgroup, and its least and its greatest."""

    value: Any
    low: int
    high: int


class Part(NamedTuple):
    """Workgroups of a block that are in step: where they are, the steps of each, their places there, and registers."""

    at: int
    steps: int
    places: np.ndarray
    registers: list[Lanes]


class Block(NamedTuple):
    """What a block computes.

    The tile of each workgroup, -1 outside the grid; of the first outside its pid, coordinate and value there; and the
    steps of all.
    """

    ids: np.ndarray
    outside: tuple[int, int, int] | None
    steps: int


def tiles_of(
    code: Sequence[Sequence[int]],
    registers: Sequence[int],
    decode: Sequence[Held],
    encode: Sequence[Held],
    pids: np.ndarray,
    most_steps: int,
) -> Block | None:
    """Run a program for a block.

    Parameters
    ----------
    code : sequence of (op, dst, a, b, c, line)
        As in `swizzle_sim.language.lower.Bytecode`.
    decode, encode : sequence of (int, Digit)
        Register of each input that differs between workgroups, and of each coordinate of the result; -1 for one that
        stays as the hardware has it.
    pids : (n,) int64 array
    """
    may_lose = min(MOST_LOST, BEFORE_COMPILING.steps)
    if may_lose < CALL - pids.size or any(not INT32_MIN <= value <= INT32_MAX for value in registers):
        return None
    first = [Lanes(value, value, value) for value in registers]
    for register, digit in decode:
        first[register] = _lanes(_coordinate(pids, digit))
    waiting = [Part(0, 0, np.arange(pids.size), first)]
    ids, outside = np.empty(pids.size, np.int64), []
    left, lost = most_steps, 0
    try:
        while waiting:
            part = waiting.pop()
            size = part.places.size
            loss = max(0, CALL - size)  # of an instruction
            within = (may_lose - lost) // loss if loss else MAX_STEPS_PER_PID
            ended = _run(code, part, part.steps + min(within, left // size))
            if ended is None:
                lost = may_lose
                return None
            lost += (ended.steps - part.steps) * loss
            left -= (ended.steps - part.steps) * size
            if ended.at < len(code):
                lost += 4 * len(registers) * CALL
                waiting += _parted(code[ended.at], ended)
            else:
                ids[ended.places], beyond = _encoded(ended.registers, encode, pids[ended.places])
                outside += beyond
    finally:
        BEFORE_COMPILING.steps -= min(lost, may_lose)
    return Block(ids, min(outside, default=None), most_steps - left)


def _run(code: Sequence[Sequence[int]], part: Part, most_steps: int) -> Part | None:
    """Run a part to the end of the program, or to a jump that some of it take; None if it is to be given up."""
    at, steps, places, registers = part
    most_steps = min(most_steps, MAX_STEPS_PER_PID)
    while at < len(code):
        op, to, a, b, c, _ = code[at]
        steps += 1
        if steps > most_steps:
            return None
        if op == 0:
            at = to
        elif op == 1:
            value, low, high = registers[a]
            if not low <= 0 <= high or (low < high and value.all()):
                at += 1
            elif low < high:
                break
            else:
                at = to
        else:
            result = _apply(op, registers[a], registers[b], registers[c])
            if result is None or result.low < INT32_MIN or result.high > INT32_MAX:
                return None
            registers[to] = result
            at += 1
    return Part(at, steps, places, registers)


def _parted(jump: Sequence[int], part: Part) -> list[Part]:
    """Parts that take a jump and that do not."""
    zero = part.registers[jump[2]].value == 0
    return [
        Part(at, part.steps, part.places[those], _those(part.registers, those))
        for at, those in ((jump[1], zero), (part.at + 1, ~zero))
    ]


def _those(registers: list[Lanes], chosen: np.ndarray) -> list[Lanes]:
    """Registers of some workgroups."""
    return [_lanes(one.value[chosen]) if isinstance(one.value, np.ndarray) else one for one in registers]


def _lanes(value: Any) -> Lanes:
    if not isinstance(value, np.ndarray):
        value = int(value)
        return Lanes(value, value, value)
    low, high = int(value.min()), int(value.max())
    return Lanes(low if low == high else value, low, high)


def _coordinate(pids: np.ndarray, digit: Digit) -> np.ndarray:
    return pids // digit.stride % digit.extent


def _encoded(
    registers: list[Lanes], encode: Sequence[Held], pids: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Tile of each workgroup, and the first that is outside the grid by each coordinate: its pid, which, its value."""
    ids, outside, first = np.zeros(pids.size, np.int64), np.zeros(pids.size, np.bool_), []
    for which, (register, digit) in enumerate(encode):
        value, low, high = registers[register] if register >= 0 else _lanes(_coordinate(pids, digit))
        if low < 0 or high >= digit.extent:
            beyond = np.broadcast_to((value < 0) | (value >= digit.extent), pids.shape)
            at = int(np.argmax(beyond))
            first.append((int(pids[at]), which, int(np.broadcast_to(value, pids.shape)[at])))
            outside |= beyond
        ids += value * digit.stride
    ids[outside] = -1
    return ids, first


_DIVISIONS, _SHIFTS = ((OPCODES.index(one), OPCODES.index(other)) for one, other in (("//", "%"), ("<<", ">>")))
_OF_TWO = {number: ON_ARRAYS[name] for number, name in enumerate(OPCODES) if name in ON_ARRAYS}


def _apply(op: int, a: Lanes, b: Lanes, c: Lanes) -> Lanes | None:
    """One instruction, as `swizzle_sim.language.lower.OPCODES` counts them; None if one of them has a fault."""
    if op == 2:
        return a
    if op in _DIVISIONS:
        return _divide(op, a, b)
    if op in _OF_TWO:
        if op in _SHIFTS and not 0 <= b.low <= b.high <= 31:
            return None
        found = _OF_TWO[op](a.value, b.value)  # a comparison's are truths
        return _lanes(found.astype(np.int64, copy=False) if isinstance(found, np.ndarray) else found)
    if isinstance(a.value, np.ndarray):
        return _lanes(np.where(a.value != 0, b.value, c.value))
    return b if a.value else c


def _divide(op: int, a: Lanes, b: Lanes) -> Lanes | None:
    """Quotient or remainder; a fault where C and Python differ, or neither has one."""
    if b.low <= 0 <= b.high and np.any(b.value == 0):
        return None
    apart = isinstance(b.value, np.ndarray)  # cut to an integer, a quotient of 32-bit integers is exact in a double
    quotient = (a.value / b.value).astype(np.int64) if apart else a.value // b.value
    remainder = a.value - quotient * b.value
    if a.low < 0 or b.low < 0:
        differ = (remainder != 0) & ((a.value < 0) != (b.value < 0))
        if np.any(differ) or np.any(quotient > INT32_MAX):
            return None
    return _lanes(quotient if op == _DIVISIONS[0] else remainder)
