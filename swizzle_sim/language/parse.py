"""Text of a candidate to its typed form. Nothing of the text is ever executed.

The text passes ``ast.parse`` and an allow-list, node by node, into `ir`; what is not on the list is refused by name,
with line, column and what to write instead. Then a definite-assignment analysis finds the inputs.
"""

from __future__ import annotations

import ast
import gc
import re
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import NoReturn

from swizzle_sim.base.text import visible
from swizzle_sim.language.ir import (
    GRID_NAMES,
    Assign,
    Binary,
    Compare,
    Cond,
    Connect,
    Expr,
    For,
    Form,
    If,
    Int,
    Name,
    Not,
    Select,
    Stmt,
    Unary,
    names_read,
    parts,
)
from swizzle_sim.language.rules import (
    ANNOTATIONS,
    ASSIGN_RESULT,
    BINARY_OPS,
    CALL_HINT,
    COMPARE_OPS,
    FUNCTIONS,
    INT32_MAX,
    INT32_MIN,
    MAX_DEPTH,
    MAX_LOOPS,
    MAX_NAME_LENGTH,
    MAX_NODES,
    MAX_TEXT_BYTES,
    PAIR_FUNCTION,
    RANGES,
    RESERVED,
    RESULT_GROUPS,
    refusal,
)
from xcd_model.errors import LanguageError

# Expressions of a candidate: syntax tree to typed form, with errors that point into the text.

_BINARY = tuple("-+*/%&|^<>")
_QUOTED = set("#'\"\\")
_LONGEST_SHOWN = 200
_parsing = threading.RLock()


@contextmanager
def one_parser() -> Iterator[None]:
    """Parse Python in this thread alone: filters of warnings, and in CPython 3.11 the depth of a tree, are everybody's.

    A garbage collection in the middle of a tree could let another thread in, one of a library's too.
    """
    with _parsing:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


class SourceText:
    """Text of one candidate, which errors point into."""

    def __init__(self, text: str, filename: str):
        self.filename = visible(filename)
        self.lines = re.split(r"\r\n|\r|\n", text)
        self._check_text(text)
        self.text = textwrap.dedent(text)
        shown = re.split(r"\r\n|\r|\n", self.text)
        # What dedent removed, so that columns count in the original text.
        self._margin = max((len(a) - len(b) for a, b in zip(self.lines, shown, strict=False) if b.strip()), default=0)

    def refuse(self, message: str, code: str, line: int = 0, column: int = 0) -> NoReturn:
        """Raise a `LanguageError` at a place counted from 1."""
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        shown = "".join(c if c.isprintable() else " " for c in shown) if len(shown) <= _LONGEST_SHOWN else ""
        raise LanguageError(
            message, filename=self.filename, line=line, column=max(column, 1), source_line=shown, code=code
        )

    def refuse_node(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        """Raise a `LanguageError` where an ast node begins."""
        line = getattr(node, "lineno", 0)
        # ast counts columns in bytes of UTF-8
        text = self.lines[line - 1][self._margin :] if line else ""
        before = text.encode("utf-8", "replace")[: getattr(node, "col_offset", 0)]
        self.refuse(message, code, line, self._margin + len(before.decode("utf-8", "replace")) + 1)

    def column_of(self, name: str, line: int) -> int:
        """Column of a name in a line; 1 if the line does not contain it."""
        found = re.search(rf"\b{re.escape(name)}\b", self.lines[line - 1]) if 0 < line <= len(self.lines) else None
        return found.start() + 1 if found else 1

    def parse(self) -> tuple[ast.Module, set[str]]:
        """Syntax tree, checked for size and depth, and its names; nothing of it is ever executed."""
        try:
            tree = self._ast(self.text)
        except SyntaxError as error:
            try:
                tree = self._ast(_continued(self.text))
            except SyntaxError:
                self._refuse_syntax(error)
        return tree, self._checked(tree)

    def _ast(self, text: str) -> ast.Module:
        """``ast.parse``; every way in which it exhausts memory or the stack is the same error."""
        try:
            with one_parser(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a string that is refused anyway, on the user's terminal
                return ast.parse(text)
        except (RecursionError, MemoryError):
            self.refuse(f"the text nests deeper than {MAX_DEPTH} levels: use variables for parts of it", "limit")
        except ValueError as error:  # characters that no encoding has
            self.refuse(f"cannot be read: {error}", "syntax")

    def _check_text(self, text: str) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            self.refuse(f"the text has {size} bytes; at most {MAX_TEXT_BYTES} are read", "limit")
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            self.refuse("the text has a null byte: remove it", "syntax", line)

    def _refuse_syntax(self, error: SyntaxError) -> NoReturn:
        line = min(error.lineno or 0, len(self.lines))
        message = error.msg.split(": value has", maxsplit=1)[0].removesuffix(". Perhaps you forgot a comma?")
        code = "limit" if "too many" in message or "digits" in message else "syntax"
        self.refuse(f"not Python: {message}", code, line, self._margin + (error.offset or 1))

    def _checked(self, tree: ast.Module) -> set[str]:
        """Names of a tree that is not too big nor too deep; iterative, as the tree may be deeper than the stack."""
        count, names = 0, set[str]()
        todo: list[tuple[ast.AST, int]] = [(tree, 0)]
        while todo:
            node, depth = todo.pop()
            count += isinstance(node, (ast.expr, ast.stmt))
            if count > MAX_NODES:
                self.refuse_node(node, f"the text has more than {MAX_NODES} parts: make it shorter", "limit")
            if depth > MAX_DEPTH:
                self.refuse_node(node, f"nested deeper than {MAX_DEPTH} levels: use variables for parts of it", "limit")
            if isinstance(node, ast.Name):
                names.add(node.id)
                continue
            todo.extend((child, depth + 1) for child in ast.iter_child_nodes(node) if child._fields)
        return names


def _continued(text: str) -> str:
    """Text with a backslash after each line that ends with a binary operator and has no comment or string.

    Python requires a bracket or a backslash there; papers and chat replies wrap long formulas without one, and no valid
    program has such a line.
    """
    lines = []
    for line in text.split("\n"):
        bare = line.rstrip(" \t\r")
        is_open = bare.endswith(_BINARY) and _QUOTED.isdisjoint(bare)
        lines.append(f"{bare} \\" if is_open else line)
    return "\n".join(lines)


_CONDITIONS = (Compare, Connect, Not)


class ExpressionReader:
    """Reads the expressions of one text.

    A part that is used twice (the operand of ``abs``, the middle of ``a < b < c``) is read twice, and every reading
    counts against `MAX_NODES`, so that a short text cannot expand into a huge form.
    """

    def __init__(self, source: SourceText):
        self.source = source
        self._read = 0
        self._open = 0  # readings under way, one inside another

    def integer(self, node: ast.expr) -> Expr:
        """Read an expression as a number; a condition becomes 1 or 0."""
        return self._number(node, self.either(node))

    def _number(self, node: ast.expr, value: Expr | Cond) -> Expr:
        if not isinstance(value, _CONDITIONS):
            return value
        if isinstance(node, ast.BoolOp):
            self._check_connective(node)
        return Select(value, Int(1), Int(0))

    def condition(self, node: ast.expr) -> Cond:
        """Read an expression as a condition; a number becomes ``number != 0``."""
        value = self.either(node)
        return value if isinstance(value, _CONDITIONS) else Compare("!=", value, Int(0))

    def either(self, node: ast.expr) -> Expr | Cond:
        """Read an expression as its own type, integer or condition."""
        self._read += 1
        if self._read > MAX_NODES:
            self.refuse(node, f"the text expands to more than {MAX_NODES} operations: make it shorter", "limit")
        reader = _READERS.get(type(node))
        if reader is None:
            self.refuse(node, refusal(node))
        self._open += 1
        value = reader(self, node)
        self._open -= 1
        if not self._open:
            self._check_depth(node, value)
        return value

    def _check_depth(self, node: ast.expr, value: Expr | Cond) -> None:
        """Refuse a form that is too deep: a chain such as ``a < b < c`` or ``a or b or c`` is one level of the text."""
        todo: list[tuple[Expr | Cond, int]] = [(value, 1)]
        while todo:
            part, depth = todo.pop()
            if depth > MAX_DEPTH:
                self.refuse(node, f"a chain or a nest of more than {MAX_DEPTH} operations: use variables", "limit")
            todo.extend((below, depth + 1) for below in parts(part))

    def refuse(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        """Raise a `LanguageError` at a node."""
        self.source.refuse_node(node, message, code)

    def name(self, node: ast.AST, name: str) -> str:
        """Return a variable's name if it is one that every back end can spell."""
        if name.startswith("__"):
            self.refuse(node, f"{name[:40]!r}: names with two leading underscores are not in the language", "name")
        if len(name) > MAX_NAME_LENGTH:
            self.refuse(node, f"a name has at most {MAX_NAME_LENGTH} characters, this one {len(name)}", "limit")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self.refuse(node, f"{name!a}: names are ASCII letters, digits and underscores", "name")
        if name in RESERVED:
            self.refuse(node, f"{name!r} is a function or module of the language, not a variable: rename it", "name")
        return name

    def _name(self, node: ast.Name) -> Expr:
        return Name(self.name(node, node.id))

    def _constant(self, node: ast.Constant) -> Expr:
        if not isinstance(node.value, int):
            self.refuse(node, refusal(node))
        return self._literal(node, int(node.value))

    def _literal(self, node: ast.expr, value: int) -> Int:
        if not INT32_MIN <= value <= INT32_MAX:
            self.refuse(node, f"the literal does not fit a signed 32-bit integer ({INT32_MIN}..{INT32_MAX})", "limit")
        return Int(value)

    def _unary(self, node: ast.UnaryOp) -> Expr | Cond:
        if isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand))
        if isinstance(node.op, ast.USub):
            operand = node.operand
            if isinstance(operand, ast.Constant) and type(operand.value) is int:
                return self._literal(node, -operand.value)  # so that -2147483648 can be written
            return _negated(self.integer(operand))
        if isinstance(node.op, ast.Invert):
            value = self.either(node.operand)
            if isinstance(value, _CONDITIONS):  # -2 in Python, "not" in Triton
                self.refuse(node, "'~' of a condition means different things in Python and Triton: use not")
            return Unary("~", value)
        self.refuse(node, refusal(node.op))

    def _binary(self, node: ast.BinOp) -> Expr | Cond:
        op = BINARY_OPS.get(type(node.op))
        if op is None:
            self.refuse(node, refusal(node.op))
        left, right = self.either(node.left), self.either(node.right)
        if op in ("&", "|") and isinstance(left, _CONDITIONS) and isinstance(right, _CONDITIONS):
            return Connect("and" if op == "&" else "or", left, right)
        return Binary(op, self._number(node.left, left), self._number(node.right, right))

    def _compare(self, node: ast.Compare) -> Cond:
        pairs: list[Cond] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in COMPARE_OPS:
                self.refuse(node, refusal(op))
            pairs.append(Compare(COMPARE_OPS[type(op)], self.integer(left), self.integer(right)))
            left = right
        return reduce(lambda a, b: Connect("and", a, b), pairs[1:], pairs[0])

    def _connect(self, node: ast.BoolOp) -> Cond:
        op = "and" if isinstance(node.op, ast.And) else "or"
        values = [self.condition(value) for value in node.values]
        return reduce(lambda a, b: Connect(op, a, b), values[1:], values[0])

    def _check_connective(self, node: ast.BoolOp) -> None:
        """Refuse ``a or b`` of numbers used as a number: the result is an operand in Python, 0 or 1 on a GPU."""
        for value in node.values:
            if isinstance(value, ast.BoolOp):
                self._check_connective(value)
            elif not isinstance(self.either(value), _CONDITIONS):
                self.refuse(value, "'and'/'or' of numbers used as a number: compare first (a != 0), or use tl.where")

    def _select(self, node: ast.IfExp) -> Expr:
        return Select(self.condition(node.test), self.integer(node.body), self.integer(node.orelse))

    def _call(self, node: ast.Call) -> Expr:
        called = spelled(node.func)
        function = FUNCTIONS.get(called)
        if called in (PAIR_FUNCTION, *RANGES):
            place = "'q, r = divmod(a, b)'" if called == PAIR_FUNCTION else f"'for i in {called}(...)'"
            self.refuse(node, f"{called}() may only stand in {place}", "call")
        if function is None:
            self.refuse(node, f"{called[:60] or 'this call'} is not a function of the language: {CALL_HINT}", "call")
        if function in ("program_id", "num_programs"):
            return Name(f"{function}({self._axis(node, called)})")
        counts = {"cdiv": (2, 2), "min": (2, 64), "max": (2, 64), "abs": (1, 1), "int": (1, 1), "where": (3, 3)}
        self.arguments(node, called, *counts[function])
        return self._apply(function, node.args)

    def _apply(self, function: str, args: list[ast.expr]) -> Expr:
        if function == "where":
            return Select(self.condition(args[0]), self.integer(args[1]), self.integer(args[2]))
        if function == "int":
            return self.integer(args[0])
        if function == "abs":
            return Binary("max", self.integer(args[0]), _negated(self.integer(args[0])))
        values = [self.integer(arg) for arg in args]
        return reduce(lambda a, b: Binary(function, a, b), values[1:], values[0])

    def arguments(self, node: ast.Call, called: str, least: int, most: int) -> None:
        """Refuse a call with keywords, unpacking or the wrong number of arguments."""
        if node.keywords:
            self.refuse(node, f"{called}() takes its arguments by position", "call")
        if not least <= len(node.args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            self.refuse(node, f"{called}() takes {count} arguments, not {len(node.args)}", "call")

    def _axis(self, node: ast.Call, called: str) -> int:
        given = [*node.args, *(k.value for k in node.keywords if k.arg == "axis")]
        if len(given) == len(node.args) + len(node.keywords) == 1:
            axis = given[0]
            if isinstance(axis, ast.Constant) and type(axis.value) is int and 0 <= axis.value <= 2:
                return axis.value
        self.refuse(node, f"{called}() takes one axis, the literal 0, 1 or 2", "call")


def _negated(value: Expr) -> Expr:
    """Minus a value, as a literal where it is one and fits."""
    return Int(-value.value) if isinstance(value, Int) and value.value > INT32_MIN else Unary("-", value)


def spelled(node: ast.expr) -> str:
    """Return ``f`` or ``tl.f`` as written, an empty string for any other callee."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


_READERS: dict[type[ast.expr], Callable[..., Expr | Cond]] = {
    ast.Name: ExpressionReader._name,
    ast.Constant: ExpressionReader._constant,
    ast.UnaryOp: ExpressionReader._unary,
    ast.BinOp: ExpressionReader._binary,
    ast.Compare: ExpressionReader._compare,
    ast.BoolOp: ExpressionReader._connect,
    ast.IfExp: ExpressionReader._select,
    ast.Call: ExpressionReader._call,
}


def parse_form(text: str, filename: str = "<candidate>") -> Form:
    """Read a candidate."""
    source = SourceText(text, filename)
    tree, names = source.parse()
    reader = _StatementReader(source, names)
    body = reader.block(tree.body)
    results = reader.results()
    flow = _Assignments(source)
    last = flow.block(body)
    for name in results:
        flow.read(name, last)
    return Form(body, results, tuple(sorted(flow.inputs)))


def parse_condition(condition: str) -> Cond:
    """Read one condition of the language."""
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
