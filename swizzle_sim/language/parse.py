"""Text of a candidate to its typed form. Nothing of the text is ever executed.

The text passes ``ast.parse`` and an allow-list, node by node, into `ir`; what is not on the list is refused by name,
with line, column and what to write instead. Then a definite-assignment analysis finds the inputs.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NoReturn

from swizzle_sim.language.expressions import ExpressionReader, SourceText, spelled
from swizzle_sim.language.ir import (
    GRID_NAMES,
    Assign,
    Binary,
    Cond,
    Expr,
    For,
    Form,
    If,
    Int,
    Name,
    Select,
    Stmt,
    names_read,
)
from swizzle_sim.language.rules import (
    ANNOTATIONS,
    ASSIGN_RESULT,
    BINARY_OPS,
    MAX_LOOPS,
    PAIR_FUNCTION,
    RANGES,
    RESULT_GROUPS,
    refusal,
)
from xcd_model.errors import LanguageError


def parse_form(text: str, filename: str = "<candidate>") -> Form:
    """Read a candidate.

    Parameters
    ----------
    text : str
        Python-like statements, as a kernel engineer writes them at the top of a Triton kernel.
    filename : str
        Name for messages.

    Returns
    -------
    Form

    Raises
    ------
    LanguageError
        With code ``syntax``, ``node``, ``call``, ``name``, ``limit``, ``unassigned`` or ``result``.
    """
    return _read(text, filename)


@lru_cache(maxsize=512)  # the same family is read for its verdict, its score and its report
def _read(text: str, filename: str) -> Form:
    source = SourceText(text, filename)
    tree = source.parse()
    reader = _StatementReader(source, {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    body = reader.block(tree.body)
    results = reader.results()
    flow = _Assignments(source)
    last = flow.block(body)
    for name in results:
        flow.read(name, last)
    return Form(body, results, tuple(sorted(flow.inputs)))


def parse_condition(condition: str) -> Cond:
    """Read one condition of the language.

    Raises
    ------
    LanguageError
        If it is outside the language, or more than one condition.
    """
    body = parse_form(f"pid = 1 if ({condition}) else 0", "<condition>").body
    if len(body) != 1 or not (isinstance(body[0], Assign) and isinstance(body[0].value, Select)):
        raise LanguageError(f"{condition!r} is not one condition", filename="<condition>", code="syntax")
    return body[0].value.condition


class _StatementReader:
    """Reads the statements of one text and records the order in which results are assigned."""

    def __init__(self, source: SourceText, names: set[str]):
        self.source = source
        self.expressions = ExpressionReader(source)
        self._assigned: dict[str, int] = {}  # result name -> rank of its last assignment, in text order
        self._taken = names  # of the text, and those made here
        self._made: dict[str, str] = {}
        self._loops: list[str] = []

    def block(self, nodes: list[ast.stmt]) -> tuple[Stmt, ...]:
        """Read statements in order."""
        return tuple(stmt for node in nodes for stmt in self._statement(node))

    def _statement(self, node: ast.stmt) -> list[Stmt]:  # noqa: PLR0911 - one a kind
        if isinstance(node, ast.Assign):
            return self._assign(node)
        if isinstance(node, ast.AugAssign):
            return self._augmented(node)
        if isinstance(node, ast.AnnAssign):
            if node.value is None or not isinstance(node.target, ast.Name):
                self._refuse(node, "an annotation needs a plain name and a value, such as x: tl.constexpr = 8")
            if spelled(node.annotation) not in ANNOTATIONS:
                self._refuse(node.annotation, f"the annotations are {', '.join(ANNOTATIONS)}")
            value = self.expressions.integer(node.value)
            return [Assign(self._target(node.target), value, node.target.lineno)]
        if isinstance(node, ast.If):
            condition = self.expressions.condition(node.test)
            body, orelse = self.block(node.body), self.block(node.orelse)
            return [If(condition, body, orelse, node.lineno)] if body or orelse else []
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.Pass):
            return []
        if isinstance(node, ast.Expr):
            return self._bare(node)
        self._refuse(node, refusal(node))

    def _bare(self, node: ast.Expr) -> list[Stmt]:
        """Skip a docstring; refuse any other lone expression, which computes nothing."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return []
        self.expressions.either(node.value)  # a specific refusal takes precedence
        self._refuse(node, f"an expression alone on a line does nothing: {ASSIGN_RESULT}")

    def _assign(self, node: ast.Assign) -> list[Stmt]:
        first, *others = node.targets
        if isinstance(first, ast.Tuple) and not others:
            return self._unpack(first, node.value)
        names = [self._target(target) for target in node.targets]
        value = self.expressions.integer(node.value)
        # a = b = v: the first takes the value, the rest copy it
        copies = [Assign(name, Name(names[0]), node.lineno) for name in names[1:]]
        return [Assign(names[0], value, node.lineno), *copies]

    def _unpack(self, target: ast.Tuple, value: ast.expr) -> list[Stmt]:
        names = [self._target(part) for part in target.elts]
        if isinstance(value, ast.Call) and spelled(value.func) == PAIR_FUNCTION:
            self.expressions.arguments(value, PAIR_FUNCTION, 2, 2)
            # read twice, once for each half, so that no part of the form is shared
            values: list[Expr] = [
                Binary(op, self.expressions.integer(value.args[0]), self.expressions.integer(value.args[1]))
                for op in ("//", "%")
            ]
        elif isinstance(value, ast.Tuple):
            values = [self.expressions.integer(part) for part in value.elts]
        else:
            self._refuse(value, "several names take a tuple of as many values, or divmod(a, b)")
        if len(names) != len(values):
            self._refuse(target, f"{len(names)} names for {len(values)} values")
        return self._together(names, values, target.lineno)

    def _together(self, names: list[str], values: list[Expr], line: int) -> list[Stmt]:
        """Assign all at once: through fresh names where a later value reads an earlier target."""
        earlier: set[str] = set()
        clash = False
        for name, value in zip(names, values, strict=True):
            clash = clash or not earlier.isdisjoint(names_read(value))
            earlier.add(name)
        if not clash:
            return [Assign(name, value, line) for name, value in zip(names, values, strict=True)]
        fresh = [self._fresh(name) for name in names]
        first = [Assign(name, value, line) for name, value in zip(fresh, values, strict=True)]
        return [*first, *(Assign(name, Name(new), line) for name, new in zip(names, fresh, strict=True))]

    def _fresh(self, name: str) -> str:
        """Return the name, which the text does not use, under which a new value of ``name`` waits."""
        if name not in self._made:
            fresh = f"{name}_new"
            while fresh in self._taken:
                fresh += "_"
            self._taken.add(fresh)
            self._made[name] = fresh
        return self._made[name]

    def _augmented(self, node: ast.AugAssign) -> list[Stmt]:
        name = self._target(node.target)
        op = BINARY_OPS.get(type(node.op))
        if op is None:
            self._refuse(node, refusal(node.op))
        return [Assign(name, Binary(op, Name(name), self.expressions.integer(node.value)), node.lineno)]

    def _target(self, node: ast.expr) -> str:
        """Name that is assigned; recorded if it may be a result."""
        if not isinstance(node, ast.Name):
            self._refuse(node, refusal(node) if isinstance(node, ast.Subscript | ast.Starred) else "assign to a name")
        name = self.expressions.name(node, node.id)
        if name in self._loops:
            self._refuse(node, f"the loop variable {name!r} is assigned inside its loop: use another name")
        if any(name in group for group in RESULT_GROUPS):
            self._assigned.pop(name, None)
            self._assigned[name] = node.lineno
        return name

    def _for(self, node: ast.For) -> list[Stmt]:
        if node.orelse:
            self._refuse(node.orelse[0], "'for ... else' is not in the language: write the statements after the loop")
        if len(self._loops) >= MAX_LOOPS:
            self._refuse(node, f"loops nest at most {MAX_LOOPS} deep: join two of them with // and %", "limit")
        var = self._loop_variable(node)
        start, stop, step = self._range(node.iter)
        self._loops.append(var)
        body = self.block(node.body)
        self._loops.pop()
        return [For(var, start, stop, step, body, node.lineno)] if body else []

    def _loop_variable(self, node: ast.For) -> str:
        if not isinstance(node.target, ast.Name):
            self._refuse(node.target, "a loop has one plain variable")
        var = self.expressions.name(node.target, node.target.id)
        if var in GRID_NAMES:  # after the loop its readers would get the grid's value here, the loop's in Python
            self._refuse(
                node.target, f"{var!r} is a name of the grid, so it cannot be a loop variable: rename it", "name"
            )
        if var in self._loops:
            self._refuse(node.target, f"the loop variable {var!r} is already that of an outer loop: rename it")
        return var

    def _range(self, node: ast.expr) -> tuple[Expr, Expr, int]:
        called = spelled(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or called not in RANGES:
            self._refuse(node, f"a for runs over {', '.join(RANGES)} only", "call")
        self.expressions.arguments(node, called, 1, 3)
        values = [self.expressions.integer(arg) for arg in node.args]
        start, stop = (Int(0), values[0]) if len(values) == 1 else (values[0], values[1])
        step = values[2] if len(values) == 3 else Int(1)
        if not isinstance(step, Int) or step.value < 1:
            self._refuse(node.args[-1], "the step of a range is a positive literal", "call")
        return start, stop, step.value

    def results(self) -> tuple[str, ...]:
        """Names of the result: those assigned of the group that the text assigns last."""
        if not self._assigned:
            self.source.refuse(f"nothing is computed: {ASSIGN_RESULT}", "result")
        last = list(self._assigned)[-1]
        group = next(group for group in RESULT_GROUPS if last in group)
        names = tuple(name for name in group if name in self._assigned)
        others = [name for name in self._assigned if name not in group and name != "pid"]
        if len(group) > 1 and len(names) == 1 and others:
            line = self._assigned[last]
            message = f"{others[-1]!r} and {last!r} are coordinates of different groups: {ASSIGN_RESULT}"
            self.source.refuse(message, "result", line, self.source.column_of(last, line))
        return names

    def _refuse(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        self.source.refuse_node(node, message, code)


class _Assignments:
    """Definite-assignment analysis: one walk in text order that collects ``inputs``.

    ``sure``: assigned on every path to here; ``maybe``: on some path before here; ``ended``: variables of loops that
    ended. A name of the grid, such as ``pid``, always has a value: where a path does not assign it, the hardware's.
    """

    def __init__(self, source: SourceText):
        self.source = source
        self.inputs: set[str] = set()
        self.sure: set[str] = set()
        self.maybe: set[str] = set()
        self.ended: set[str] = set()

    def block(self, body: tuple[Stmt, ...]) -> int:
        """Walk statements; returns the last line."""
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
        """Note a read; refuse it, with code ``unassigned``, if only some paths have assigned the name."""
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
