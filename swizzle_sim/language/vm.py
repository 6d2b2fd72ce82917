"""Virtual machine: runs a candidate for every workgroup of a grid and decides whether the result is a permutation.

It checks after every instruction that a signed 32-bit GPU integer would hold the value and that C and Python agree on
it. Both sides of a select and of ``and``/``or`` are evaluated, as on a GPU; of an ``if`` only the branch taken.
What has no branches runs for all workgroups at once (`at_once`); one compiled function runs every other candidate, one
workgroup after another (`one_by_one`).

    tile = sum over coordinates of value * stride,  where pid -> (pid // stride) % extent decodes the inputs
    permutation <=> every coordinate in range, and every tile computed once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from swizzle_sim.language.at_once import run_at_once
from swizzle_sim.language.grid import Grid, bind, result_digits
from swizzle_sim.language.lower import Bytecode
from swizzle_sim.language.rules import MOST_TRIED
from swizzle_sim.language.verdict import (
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

Launch = tuple[Grid, int, Mapping[str, int] | None]  # its XCDs, and the kernel's sizes there
Names = tuple[tuple[str, ...], ...]
Tables = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # of `one_by_one.run_each`
_BLOCK, _DRAWN = 8192, 64  # workgroups of a block of a sample, and blocks drawn


def run(
    program: Bytecode,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    pids: range | None = None,
) -> Execution:
    """Evaluate a program for every workgroup of a grid, or for some that follow each other."""
    budget, pids = budget or Budget.at(grid.num_pids), pids or range(grid.num_pids)
    names, launches = _bound(program, ((grid, num_xcds, sizes),))
    ids = np.empty(len(pids), np.int64)
    launches = (*launches[:-1], np.array([ids.size]))
    (report,) = _ran(program, names, launches, pids.start, ids, np.zeros(0, np.int32), budget.left)
    budget.left -= min(int(report[6]), budget.left)
    if report[0] == len(FAULTS):
        raise LanguageError(
            f"grid {grid} is too large to decide: after {report[7]} steps {report[1]} of {grid.num_pids} workgroups "
            "are done; shorten the loops, or take a smaller grid",
            line=int(report[2]),
            column=1,
            code="limit",
        )
    return _read_report(ids, report, names[2], launches[2][0, :, 1].tolist())


def are_permutations(program: Bytecode, launches: Sequence[Launch], budget: Budget) -> list[bool]:
    """Whether a program is a permutation of each launch, of one kind, up to that at which the budget is used up."""
    names, tables = _bound(program, tuple(launches))
    most = int(tables[3].max())
    report = _ran(program, names, tables, 0, np.empty(most, np.int64), np.zeros(most, np.int32), budget.left)
    budget.left -= min(int(report[:, 6].sum()), budget.left)
    cut = np.flatnonzero(report[:, 0] == len(FAULTS))
    return (report[: cut[0] if cut.size else None, 8] > 0).tolist()


def _ran(
    program: Bytecode, names: Names, launches: Tables, first: int, ids: np.ndarray, seen: np.ndarray, allowed: int
) -> np.ndarray:
    """Report of `one_by_one.run_each` on each launch."""
    inputs = [np.array([program.inputs[name] for name in of], np.int64) for of in names[:2]]
    # A coordinate that the candidate does not compute has no register: the hardware's digit stays.
    results = np.array([program.results.get(name, -1) for name in names[2]], np.int64)
    report = np.zeros((launches[3].size, 9), np.int64)
    report[0, 7] = allowed
    where = (*inputs, results)
    if not run_at_once(program, where, launches, first, ids, seen, report):
        from swizzle_sim.language.one_by_one import run_each  # noqa: PLC0415 - only here the compiler is loaded

        registers = np.stack([program.registers, program.registers])
        run_each(program.code, registers, where, launches, first, ids, seen, report)
    return report


def _bound(program: Bytecode, launches: tuple[Launch, ...]) -> tuple[Names, Tables]:
    """Names of constants, of inputs that differ between workgroups and of results, and their values in each launch."""
    read = [[name for name in program.inputs if name in (sizes or ())] for *_, sizes in launches]
    key = tuple(
        (grid, type(xcds), xcds, *((name, type(sizes[name]), sizes[name]) for name in names if sizes))
        for (grid, xcds, sizes), names in zip(launches, read, strict=True)
    )
    try:
        return _tables(tuple(program.inputs), tuple(program.results), key)
    except (LanguageError, TypeError):  # again, for the line, and for what is no integer
        for grid, xcds, sizes in launches:
            bind(program.inputs, grid, xcds, sizes, program.input_lines)
            result_digits(tuple(program.results), grid, program.last_line)
        raise


@lru_cache(maxsize=256)
def _tables(inputs: tuple[str, ...], results: tuple[str, ...], launches: tuple[Any, ...]) -> tuple[Names, Tables]:
    bound = [bind(inputs, grid, xcds, {name: value for name, _, value in of}) for grid, _, xcds, *of in launches]
    split = [result_digits(results, grid) for grid, *_ in launches]
    encode = [{**computed, **unchanged} for computed, unchanged in split]
    names = tuple(tuple(one) for one in (bound[0].constants, bound[0].digits, encode[0]))
    constants = np.array([list(one.constants.values()) for one in bound], np.int64).reshape(len(bound), -1)
    inputs_at, results_at = (
        np.array([[(one.stride, one.extent) for one in of.values()] for of in each], np.int64).reshape(
            len(bound), -1, 2
        )
        for each in ([one.digits for one in bound], encode)
    )
    return names, (constants, inputs_at, results_at, np.array([grid.num_pids for grid, *_ in launches]))


def _read_report(ids: np.ndarray, report: np.ndarray, names: tuple[str, ...], extents: list[int]) -> Execution:
    code, pid, line, lost_pid, axis, value, steps, *_ = report.tolist()
    fault = Fault(FAULTS[code], pid, line) if code else None
    lost = OutOfRange(lost_pid, names[axis], value, extents[axis]) if lost_pid >= 0 else None
    return Execution(ids, fault, lost, steps)


def permutation_of(
    program: Bytecode, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None = None, budget: Budget | None = None
) -> tuple[Execution, Counterexample | None]:
    """Evaluate a program on a grid, as `run` does; the counter-example is None if the result is a permutation."""
    found = run(program, grid, num_xcds, sizes, budget)
    if found.fault:
        return found, _fault_text(found.fault, where_text(grid, num_xcds))
    return found, counterexample_of(found.ids, found.out_of_range, grid, num_xcds)


def _fault_text(fault: Fault, where: str) -> Counterexample:
    message = f"pid {fault.pid}, line {fault.line}: {FAULT_TEXT[fault.code]} {where}"
    return Counterexample(fault.code, message, (fault.pid,), line=fault.line)


def counterexample_at(
    program: Bytecode, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None = None, budget: Budget | None = None
) -> Counterexample | None:
    """Counterexample of a program on a grid; where there are more than `MOST_TRIED` workgroups, of a sample of them."""
    if grid.num_pids <= MOST_TRIED:
        return permutation_of(program, grid, num_xcds, sizes, budget)[1]
    budget = budget or Budget()
    where, pids, tiles = where_text(grid, num_xcds), [], []
    for first in _blocks(grid):
        found = run(program, grid, num_xcds, sizes, budget, range(first, min(first + _BLOCK, grid.num_pids)))
        if found.fault:
            return _fault_text(found.fault, where)
        if found.out_of_range:
            lost = found.out_of_range
            said = f"pid {lost.pid} computes {lost.name} = {lost.value}, outside 0..{lost.extent - 1} {where}"
            return Counterexample("out-of-range", said, (lost.pid,))
        pids.append(np.arange(first, first + found.ids.size))
        tiles.append(found.ids)
    every, of = np.concatenate(tiles), np.concatenate(pids)
    order = np.argsort(every, kind="stable")
    twice = np.flatnonzero(every[order[1:]] == every[order[:-1]])
    if not twice.size:
        return None
    one, other = (int(of[order[twice[0] + k]]) for k in (0, 1))
    tile = int(every[order[twice[0]]])
    return Counterexample(
        "collision", f"pid {other} and pid {one} both compute tile {tile} {where}", (other, one), tile
    )


def _blocks(grid: Grid) -> list[int]:
    """First workgroups of blocks: the ends, around each power of two and each end of a row, and others at random."""
    last = grid.num_pids - _BLOCK
    edges = [2**k - _BLOCK // 2 for k in range(_BLOCK.bit_length(), 31)]
    edges += [k * side - _BLOCK // 2 for side in (*grid.launch, *(grid.tiles or ())) for k in (1, 2, 3)]
    drawn = np.random.default_rng(0).integers(0, last, _DRAWN).tolist()
    found = [0]
    for one in sorted({one for one in (*edges, *drawn) if one <= last - _BLOCK}):
        if one >= found[-1] + _BLOCK:
            found.append(one)
    return [*found, last]


def counterexample_of(ids: np.ndarray, lost: OutOfRange | None, grid: Grid, num_xcds: int) -> Counterexample | None:
    """Reason why tiles (-1 where a coordinate is out of range) are not a permutation of a grid, None if they are."""
    inside = ids >= 0
    if inside.all() and np.bincount(ids, minlength=grid.num_pids).all():
        return None
    pids = np.arange(ids.size, dtype=np.int32)[inside][::-1]
    owner = np.full(grid.num_pids, -1, np.int32)
    owner[ids[pids]] = pids  # the last one stays: the first workgroup of each tile
    clashes = inside
    clashes[pids] = owner[ids[pids]] != pids
    return gap_of(ids, owner, int(np.argmax(clashes)), lost, grid, num_xcds)
