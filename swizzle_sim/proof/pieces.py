"""Where a candidate can be cut in two: one value that differs between workgroups is carried across."""

from __future__ import annotations

from collections.abc import Iterator

from swizzle_sim.language.ir import COORDINATES, Assign, Cond, If, Stmt, literals, names_in, names_read
from swizzle_sim.language.variables import assigned, live_before


def cuts(body: tuple[Stmt, ...], results: tuple[str, ...], done: int) -> Iterator[tuple[int, str]]:
    """Yield each place behind statement ``done`` where one varying name is read later, and that name."""
    varying, changed = set(COORDINATES), False
    for k, stmt in enumerate(body[:-1], 1):
        _taint((stmt,), varying)
        changed |= k > done and not varying.isdisjoint(assigned((stmt,)))
        live = live_before(body[k:], results) & varying
        if changed and len(live) == 1 and k > done:
            (name,) = live
            if name in assigned(body[done:k]) and _separable(body[:k], live_before(body[k:], results) - {name}):
                yield k, name


def _separable(prefix: tuple[Stmt, ...], needed: set[str]) -> bool:
    """Whether the statements that are the same for all workgroups give, by themselves, all that is needed later."""
    kept = same_for_all(prefix)
    dropped = assigned(tuple(stmt for stmt in prefix if not any(stmt is one for one in kept)))
    return dropped.isdisjoint(needed.union(*(names_in((stmt,)) for stmt in kept)))


def _taint(body: tuple[Stmt, ...], varying: set[str]) -> None:
    """Add the names that may differ between workgroups after a block, take out those that no longer do."""
    for stmt in body:
        if isinstance(stmt, Assign):
            if varying.isdisjoint(names_read(stmt.value)) and not _is_root(stmt):
                varying.discard(stmt.target)
            else:
                varying.add(stmt.target)
        elif isinstance(stmt, If):
            if not varying.isdisjoint(names_read(stmt.condition)):
                varying |= assigned((stmt,))
            then, other = set(varying), set(varying)
            _taint(stmt.body, then)
            _taint(stmt.orelse, other)
            tainted = not varying.isdisjoint(names_read(stmt.condition))
            varying |= then | other
            if not tainted:
                varying -= {name for name in assigned((stmt,)) if name not in then and name not in other}
        else:
            ends = {*names_read(stmt.start), *names_read(stmt.stop)}
            if not varying.isdisjoint(ends):
                varying |= assigned((stmt,)) | {stmt.var}
            else:
                varying.discard(stmt.var)
            for _ in range(len(assigned((stmt,))) + 1):
                inside = set(varying)
                _taint(stmt.body, inside)
                varying |= inside


def _is_root(stmt: Assign) -> bool:
    return any(not name.isidentifier() and name.startswith("%") for name in names_read(stmt.value))


def same_for_all(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements of a block whose values are the same for all workgroups."""
    varying, kept = set(COORDINATES), []
    for stmt in body:
        before = set(varying)
        _taint((stmt,), varying)
        targets = assigned((stmt,))
        if targets and targets.isdisjoint(varying) and before.isdisjoint(names_in((stmt,))):
            kept.append(stmt)
    return tuple(kept)


def largest_literal(body: tuple[Stmt | Cond, ...]) -> int:
    """Largest literal of a candidate or a condition, without its sign; 1 where it has none."""
    return max((abs(value) for value in literals(body)), default=1)
