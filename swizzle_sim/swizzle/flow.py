"""Definite assignment: which names a candidate needs from outside, and which it may read before they are set."""

from __future__ import annotations

from swizzle_sim.swizzle.form import Assign, Cond, Expr, For, If, Int, Stmt
from swizzle_sim.swizzle.names import GRID_NAMES
from swizzle_sim.swizzle.reads import names_read
from swizzle_sim.swizzle.source import Source


def find_inputs(body: tuple[Stmt, ...], results: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Return the names that a form reads before it assigns them, sorted.

    Raises
    ------
    LanguageError
        With code ``unassigned`` where a name is read that only some paths have assigned. A name of the grid, such as
        ``pid``, always has a value: on the other paths it is the one that the hardware gave.
    """
    flow = _Flow(source)
    last = flow.block(body)
    for name in results:
        flow.read(name, last)
    return tuple(sorted(flow.inputs))


class _Flow:
    """One walk in text order. ``sure``: set on every path to here; ``maybe``: on some path before here."""

    def __init__(self, source: Source):
        self.source = source
        self.inputs: set[str] = set()
        self.sure: set[str] = set()
        self.maybe: set[str] = set()
        self.ended: set[str] = set()

    def block(self, body: tuple[Stmt, ...]) -> int:
        """Walk statements, return the last line seen."""
        line = 0
        for stmt in body:
            line = stmt.line
            if isinstance(stmt, Assign):
                self.reads(stmt.value, line)
                self._assign(stmt.target)
            elif isinstance(stmt, If):
                self._if(stmt)
            else:
                self._for(stmt)
        return line

    def reads(self, value: Expr | Cond, line: int) -> None:
        for name in names_read(value):
            self.read(name, line)

    def read(self, name: str, line: int) -> None:
        if name in self.sure or name in self.inputs:
            return
        if name in self.ended or (name in self.maybe and name not in GRID_NAMES):
            why = (
                "is the variable of a loop that has ended: copy it to another name inside the loop"
                if name in self.ended
                else "is assigned on some paths only: assign it before the if or for as well"
            )
            self.source.refuse(f"{name!r} {why}", "unassigned", line, self.source.column_of(name, line))
        self.inputs.add(name)

    def _assign(self, name: str) -> None:
        self.sure.add(name)
        self.maybe.add(name)
        self.ended.discard(name)

    def _if(self, stmt: If) -> None:
        self.reads(stmt.condition, stmt.line)
        before = set(self.sure)
        self.block(stmt.body)
        after_body, self.sure = self.sure, before
        self.block(stmt.orelse)
        self.sure = after_body & self.sure

    def _for(self, stmt: For) -> None:
        self.reads(stmt.start, stmt.line)
        self.reads(stmt.stop, stmt.line)
        if stmt.var in self.inputs or (stmt.var in self.maybe and stmt.var not in self.ended):
            # Python would leave the last value behind, a GPU back end would not
            self.source.refuse(
                f"the loop variable {stmt.var!r} is also an ordinary variable: rename it",
                "name",
                stmt.line,
                self.source.column_of(stmt.var, stmt.line),
            )
        before = set(self.sure)
        self._assign(stmt.var)
        self.block(stmt.body)
        runs = isinstance(stmt.start, Int) and isinstance(stmt.stop, Int) and stmt.start.value < stmt.stop.value
        self.sure = (self.sure if runs else before) - {stmt.var}
        self.ended.add(stmt.var)
