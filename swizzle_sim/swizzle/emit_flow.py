"""Where a candidate's variables must exist: Python makes them on the way, C++ and Triton want them beforehand."""

from __future__ import annotations

from collections.abc import Collection

from swizzle_sim.swizzle.form import Assign, For, If, Int, Stmt
from swizzle_sim.swizzle.reads import names_read


def live_before(body: tuple[Stmt, ...], live: Collection[str]) -> set[str]:
    """Names whose value at the start of a block may be read, in it or (``live``) after it."""
    reads, sets = _reads_and_sets(body)
    return reads | (set(live) - sets)


def live_after_each(body: tuple[Stmt, ...], live: Collection[str]) -> list[set[str]]:
    """Names whose value after each statement of a block may be read; ``live`` are those read after the block."""
    after = [set(live)]
    for stmt in reversed(body[1:]):
        reads, sets = _reads_and_sets((stmt,))
        after.append(reads | (after[-1] - sets))
    return after[::-1]


def _reads_and_sets(body: tuple[Stmt, ...]) -> tuple[set[str], set[str]]:
    """Names that a block reads before it sets them, and those that it sets on every path.

    Neither depends on what follows, so one walk is enough: what a loop's body reads first, an earlier iteration may
    have left, and so adds nothing new.
    """
    reads: set[str] = set()
    sets: set[str] = set()
    for stmt in body:
        if isinstance(stmt, Assign):
            first, always = set(names_read(stmt.value)), {stmt.target}
        elif isinstance(stmt, If):
            then, other = _reads_and_sets(stmt.body), _reads_and_sets(stmt.orelse)
            first, always = {*names_read(stmt.condition), *then[0], *other[0]}, then[1] & other[1]
        else:  # perhaps not once, so it sets nothing for sure
            inside = _reads_and_sets(stmt.body)[0] - {stmt.var}
            first, always = {*names_read(stmt.start), *names_read(stmt.stop), *inside}, set()
        reads |= first - sets
        sets |= always
    return reads, sets


def live_inside(loop: For, live_after: Collection[str]) -> set[str]:
    """Names whose value at the end of a loop's body may be read: after the loop or in the next iteration."""
    return set(live_after) | live_before(loop.body, live_after)


def assigned(body: tuple[Stmt, ...]) -> set[str]:
    """Names that a block assigns at any depth, without loop variables."""
    names: set[str] = set()
    for stmt in body:
        if isinstance(stmt, Assign):
            names.add(stmt.target)
        elif isinstance(stmt, If):
            names |= assigned(stmt.body) | assigned(stmt.orelse)
        else:
            names |= assigned(stmt.body)
    return names


def with_initial_values(body: tuple[Stmt, ...], live: Collection[str], alive: set[str]) -> tuple[Stmt, ...]:
    """Put ``x = 0`` before each loop that is the first to assign an ``x`` read after it.

    Triton carries a variable through a loop only if it exists before. The parser has made sure that the loop runs,
    so the zero is never read.

    Parameters
    ----------
    body : tuple of Stmt
    live : collection of str
        Names read after this block.
    alive : set of str
        Names that exist at its start; those that exist at its end are added.
    """
    done: list[Stmt] = []
    for stmt, after in zip(body, live_after_each(body, live), strict=False):
        if isinstance(stmt, Assign):
            alive.add(stmt.target)
            done.append(stmt)
        elif isinstance(stmt, If):
            then, other = set(alive), set(alive)
            blocks = with_initial_values(stmt.body, after, then), with_initial_values(stmt.orelse, after, other)
            alive |= then & other
            done.append(If(stmt.condition, *blocks, stmt.line))
        else:
            missing = sorted((assigned(stmt.body) & after) - alive)
            done.extend(Assign(name, Int(0), stmt.line) for name in missing)
            alive |= set(missing)
            inside = with_initial_values(stmt.body, live_inside(stmt, after), alive | {stmt.var})
            done.append(For(stmt.var, stmt.start, stmt.stop, stmt.step, inside, stmt.line))
    return tuple(done)
