"""Where a candidate's variables must exist: Python makes them on the way, C++ and Triton want them beforehand."""

from __future__ import annotations

from collections.abc import Collection

from swizzle_sim.swizzle.form import Assign, For, If, Int, Stmt
from swizzle_sim.swizzle.reads import names_read


def live_before(body: tuple[Stmt, ...], live: Collection[str]) -> set[str]:
    """Names whose value at the start of a block may be read, in it or (``live``) after it."""
    needed = set(live)
    for stmt in reversed(body):
        if isinstance(stmt, Assign):
            needed = (needed - {stmt.target}) | set(names_read(stmt.value))
        elif isinstance(stmt, If):
            branches = live_before(stmt.body, needed) | live_before(stmt.orelse, needed)
            needed = branches | set(names_read(stmt.condition))
        else:
            # twice round, as what one iteration leaves another may read
            once = live_before(stmt.body, needed)
            inside = live_before(stmt.body, needed | once) - {stmt.var}
            needed |= inside | set(names_read(stmt.start)) | set(names_read(stmt.stop))
    return needed


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
    for k, stmt in enumerate(body):
        after = live_before(body[k + 1 :], live)
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
