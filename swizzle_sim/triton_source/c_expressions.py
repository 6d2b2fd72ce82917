"""Expressions of C in Python's syntax tree: integers, the ids and counts of a launch, calls of known functions.

An allow-list of node kinds and of types (`c_types`). A subtraction of unsigned values, and a signed value that becomes
an unsigned one, are computed in a statement before, ``x = a - b; x = x + (0 << min(x, 0))``, which no launch with a
negative value passes. So is a choice whose other side must not be evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tree_sitter import Node

from swizzle_sim.triton_source.c_preprocessor import OPEN
from swizzle_sim.triton_source.c_types import (
    BOOL,
    CASTS,
    INT,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    is_listed,
    kind_of_type,
    text_of,
)

_Tree = TypeVar("_Tree", bound=ast.AST)
UNREAD = "unread"  # the call that stands for what has no counterpart
GUARD = "guarded_"  # before the number of a value that must not be negative
_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.FloorDiv, "%": ast.Mod, "<<": ast.LShift, ">>": ast.RShift,
    "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "bitand": ast.BitAnd, "bitor": ast.BitOr, "xor": ast.BitXor,
}  # fmt: skip
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq, "not_eq": ast.NotEq,
}  # fmt: skip
_CONNECT: dict[str, type[ast.boolop]] = {"&&": ast.And, "and": ast.And, "||": ast.Or, "or": ast.Or}
_RECORDS = {"blockIdx": "program_id", "gridDim": "num_programs"}
_ID_CALL = re.compile(
    r"^(?:__builtin_amdgcn_workgroup_id_|block_id_|hipBlockIdx_|get_block_id_|blockIdx_|RematerializeBlockIdx)([xyzXYZ])$"
)
_COUNT_CALL = re.compile(r"^(?:grid_dim|hipGridDim|num_blocks|gridDim)_([xyz])$")
_AXIS_CALLS = {"get_group_id": "program_id", "__ockl_get_group_id": "program_id", "get_num_groups": "num_programs"}
_NUMBER = re.compile(r"^(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)([uUlLzZ]*)$")
_SAME = {"__builtin_amdgcn_readfirstlane", "readfirstlane", "amd_wave_read_first_lane"}
_MADE = re.compile(r"^(make_(u?int|u?long|tuple|pair|coord)[234]?|dim3|u?int[234]|tuple|pair|make_multi_index)$")
LAUNCH = ("tl.program_id(", "tl.num_programs(")
BUILTINS = ("min", "max", "abs")
_DIVIDES = {"": 3, "divmod": 2, "div": 1, "divide": 1, "rem": 1}  # arguments of each word
# Calls that leave their arguments as they are.
PURE = {
    "min",
    "max",
    "abs",
    "printf",
    "assert",
    "static_assert",
    "__builtin_expect",
    "__builtin_assume",
    *_SAME,
    *CASTS,
}


class Value(NamedTuple):
    """An expression, and the kind of its type."""

    tree: ast.expr
    kind: str


class Variable(NamedTuple):
    """A name of a function: under which name of Python, of which kind, and what stands for it where it is unread."""

    name: str
    kind: str
    is_const: bool = False
    why: str = ""
    at: Node | None = None  # of what makes it unread


@dataclass
class Calls:
    """What a file says beside one function."""

    # parameters of each function's template in order, None for one that is no number
    templates: Mapping[str, list[str | None]] = field(default_factory=dict)
    kinds: dict[str, list[Variable]] = field(default_factory=dict)  # of each function's parameters
    outputs: dict[str, tuple[str, ...]] = field(default_factory=dict)  # parameters that a function hands out
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by which it may change anything
    results: Mapping[str, str] = field(default_factory=dict)  # kind of what a function returns
    aliases: Mapping[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)  # kind of each constant of the file
    owners: dict[str, str] = field(default_factory=dict)  # class of each constant that is of one
    unread: dict[str, str] = field(default_factory=dict)  # names that are not read, and why
    texts: dict[str, str] = field(default_factory=dict)  # of each function, in single spaces
    divmods: frozenset[str] = frozenset()  # names of objects that divide by a number of theirs
    included: Callable[[str], ast.FunctionDef | None] = lambda name: None  # function of a header


@dataclass
class Names:
    """Names in sight, statements that go before the one being read, and what of the function is not modelled."""

    calls: Calls
    scopes: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    before: list[ast.stmt] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)  # names that the function declares anywhere
    fields: dict[str, str] = field(default_factory=dict)  # record of each field's name
    dirty: set[str] = field(default_factory=set)  # fields that the function assigns
    lambdas: dict[str, tuple[str, list[Variable]]] = field(default_factory=dict)
    divisor: str = ""  # what the expression is divided by, which is at least 1
    not_negative: set[str] = field(default_factory=set)  # signed, and plainly never below 0
    has_lambda: bool = False
    copied: set[str] = field(default_factory=set)  # locals that are only copies of a field of their name

    def find(self, name: str) -> Variable | None:
        """Variable that a name means here."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def fresh(self, name: str) -> str:
        """A name of Python that the function does not have."""
        number, made = 2, name
        while made in self.taken:
            made, number = f"{name}_{number}", number + 1
        self.taken.add(made)
        return made

    def guarded(self, tree: ast.expr, node: Node) -> ast.expr:
        """Value that a statement before this one computes, and that no launch passes where it is negative."""
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int) and tree.value >= 0:
            return tree
        name = self.fresh(f"{GUARD}{len(self.taken)}")
        text = f"{name} = 0\n{name} = {name} + (0 << min({name}, 0))"
        first, second = placed(ast.parse(text), node).body
        assert isinstance(first, ast.Assign)
        first.value = tree
        for one in ast.walk(second):
            one.is_builtin = True  # type: ignore[attr-defined]
        self.before += [first, second]
        return named(name, node)

    def set_before(self, tree: ast.expr, node: Node) -> str:
        """Name that a statement before this one gives a value."""
        name = self.fresh(f"value_{len(self.taken)}")
        self.before.append(placed(ast.Assign([named(name, node, ast.Store())], tree), node))
        return name


def _at_least_zero(tree: ast.expr, divisor: str) -> bool:
    """Whether a sum of parts that are not negative is plainly not: ``a + 63``, or ``a + b - 1`` that ``b`` divides."""
    total, todo = 0, [(tree, 1)]
    while todo:
        part, sign = todo.pop()
        match part:
            case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
                todo += [(left, sign), (right, sign if isinstance(op, ast.Add) else -sign)]
            case ast.Constant(int(value)):
                total += sign * value
            case ast.Name() | ast.Call(ast.Attribute(ast.Name("tl"))) if sign > 0:
                total += divisor == ast.unparse(part)
            case _:
                return False
    return total >= 0 and not isinstance(tree, ast.Name)


def placed(tree: _Tree, node: Node) -> _Tree:
    """Syntax tree at the line and column of a node, its parts too where they have none."""
    row, column = node.start_point
    for part in ast.walk(tree):
        if isinstance(part, ast.expr | ast.stmt | ast.arg) and not getattr(part, "is_placed", False):
            part.lineno = part.end_lineno = row + 1
            part.col_offset = part.end_col_offset = column
            part.is_placed = True  # type: ignore[union-attr]
    return tree


def named(name: str, node: Node, context: ast.expr_context | None = None) -> ast.Name:
    """Name at a place."""
    return placed(ast.Name(name, context or ast.Load()), node)


def unread(node: Node, text: str = "", mentioned: Sequence[ast.expr] = ()) -> ast.expr:
    """What stands for an expression without a counterpart: a call that nothing knows, with its text."""
    text = text or " ".join(text_of(node).replace(OPEN, "").split())
    return placed(ast.Call(ast.Name(UNREAD, ast.Load()), [ast.Constant(text[:80]), *mentioned], []), node)


def is_unread(tree: ast.AST) -> bool:
    """Whether a tree holds what has no counterpart."""
    return any(isinstance(one, ast.Name) and one.id == UNREAD for one in ast.walk(tree))


def expression(node: Node, names: Names) -> ast.expr:
    """Expression in Python; `unread` where there is none."""
    return value_of(node, names).tree


def value_of(node: Node, names: Names) -> Value:
    """Expression in Python with its kind."""
    reader = _READERS.get(node.type)
    found = reader(node, names) if reader and not node.has_error else None
    return Value(placed(found.tree, node), found.kind) if found is not None else Value(unread(node), UNKNOWN)


def converted(value: Value, kind: str, node: Node, names: Names) -> ast.expr:
    """Value as one of another kind."""
    if kind == BOOL and value.kind != BOOL:
        test = ast.Compare(value.tree, [ast.NotEq()], [ast.Constant(0)])
        return placed(ast.IfExp(test, ast.Constant(1), ast.Constant(0)), node)
    known = isinstance(value.tree, ast.Name) and value.tree.id in names.not_negative
    if kind == UNSIGNED and value.kind == INT and not known:
        return names.guarded(value.tree, node)
    return value.tree


def _field(node: Node, name: str, names: Names) -> Value:
    child = node.child_by_field_name(name)
    return value_of(child, names) if child is not None else Value(unread(node), UNKNOWN)


def _number(node: Node, names: Names) -> Value | None:
    match = _NUMBER.match(text_of(node))
    if match is None:
        return None
    digits = match.group(1).replace("'", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    value = int(digits, 8 if octal else 0)
    is_unsigned = "u" in match.group(2).lower() or value >= 2**31
    return Value(ast.Constant(value), UNSIGNED if is_unsigned else INT)


def _both(a: str, b: str) -> str:
    return UNKNOWN if UNKNOWN in (a, b) or RECORD in (a, b) else UNSIGNED if UNSIGNED in (a, b) else INT


def _binary(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    operator = node.child_by_field_name("operator")
    op = text_of(operator) if operator is not None else ""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return None
    if op == "/":
        sides = re.fullmatch(r"(?:\w+::)*grid_size_([xyz])\(\)", text_of(left))
        if sides and text_of(right).endswith(f"block_size_{sides.group(1)}()"):  # work-items over those of a workgroup
            return Value(_launch("num_programs", sides.group(1)), INT)
    if op in _CONNECT:
        return _connected(node, op, left, right, names)
    b = value_of(right, names)
    outer, names.divisor = names.divisor, ast.unparse(b.tree) if op in ("/", "%") else names.divisor
    a = value_of(left, names)
    names.divisor = outer
    kind = _both(a.kind, b.kind)
    if op == "+" and isinstance(b.tree, ast.Constant) and b.tree.value == 0 and a.kind in (INT, UNSIGNED):
        return a
    if not kind:
        known = _BINARY.get(op)
        whole = ast.BinOp(_kept(a, left), known(), _kept(b, right)) if known else unread(node)
        return Value(whole, UNKNOWN)
    shift = op in ("<<", ">>")
    kind = a.kind if shift and a.kind != BOOL else kind
    if kind == UNSIGNED and not shift:
        a, b = (Value(converted(one, UNSIGNED, node, names), UNSIGNED) for one in (a, b))
    if op in _COMPARE:
        return Value(ast.Compare(a.tree, [_COMPARE[op]()], [b.tree]), BOOL)
    if op not in _BINARY:
        return None
    whole = placed(ast.BinOp(a.tree, _BINARY[op](), b.tree), node)
    may_wrap = kind == UNSIGNED and op == "-" and not _at_least_zero(whole, names.divisor)
    return Value(names.guarded(whole, node) if may_wrap else whole, kind)


def _kept(value: Value, node: Node) -> ast.expr:
    """Part of an expression that is not read, with what it is made of, so that one sees that it is of an id."""
    return unread(node) if value.kind in (UNKNOWN, RECORD) and not is_unread(value.tree) else value.tree


def _connected(node: Node, op: str, left: Node, right: Node, names: Names) -> Value:
    """``a && b``: what ``b`` needs before is computed only where ``a`` holds."""
    a = value_of(left, names).tree
    b, inside = _apart(right, names)
    if not inside and not _may_fault(b.tree):
        return Value(ast.BoolOp(_CONNECT[op](), [a, b.tree]), BOOL)
    settled = _CONNECT[op] is ast.Or
    name = names.set_before(ast.Constant(int(settled)), node)
    test = a if not settled else ast.UnaryOp(ast.Not(), a)
    truth = ast.IfExp(b.tree, ast.Constant(1), ast.Constant(0))
    names.before.append(placed(ast.If(test, [*inside, _set(name, truth, node)], []), node))
    return Value(ast.Compare(named(name, node), [ast.NotEq()], [ast.Constant(0)]), BOOL)


def _apart(node: Node, names: Names) -> tuple[Value, list[ast.stmt]]:
    """A value, and the statements that go before it, which may stand under a condition."""
    outer, names.before = names.before, []
    found = value_of(node, names)
    inside, names.before = names.before, outer
    return found, inside


def _set(name: str, tree: ast.expr, node: Node) -> ast.stmt:
    return placed(ast.Assign([named(name, node, ast.Store())], tree), node)


def _may_fault(tree: ast.expr) -> bool:
    """Whether a value may have none: a division, a remainder or a shift by what is no literal, or a subtraction."""
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.FloorDiv | ast.Mod | ast.LShift | ast.RShift)
        and not isinstance(one.right, ast.Constant)
        for one in ast.walk(tree)
    )


def _unary(node: Node, names: Names) -> Value | None:
    operator = node.child_by_field_name("operator")
    op = text_of(operator) if operator is not None else ""
    value = _field(node, "argument", names)
    if value.kind in (UNKNOWN, RECORD):
        return None
    if op in ("!", "not"):
        return Value(ast.UnaryOp(ast.Not(), value.tree), BOOL)
    if op == "+":
        return Value(value.tree, INT if value.kind == BOOL else value.kind)
    if op not in ("-", "~") or value.kind == BOOL:
        return None
    whole = placed(ast.UnaryOp(ast.USub() if op == "-" else ast.Invert(), value.tree), node)
    return Value(names.guarded(whole, node) if value.kind == UNSIGNED else whole, value.kind)


def _choice(node: Node, names: Names) -> Value | None:
    condition, yes, no = (node.child_by_field_name(part) for part in ("condition", "consequence", "alternative"))
    if condition is None or yes is None or no is None:
        return None
    test = value_of(condition, names).tree
    (a, of_a), (b, of_b) = _apart(yes, names), _apart(no, names)
    kind = BOOL if a.kind == b.kind == BOOL else _both(a.kind, b.kind)
    if isinstance(a.tree, ast.Tuple) and isinstance(b.tree, ast.Tuple):
        names.before += [*of_a, *of_b]
        return Value(ast.IfExp(test, a.tree, b.tree), UNKNOWN)
    if not kind:
        return None
    outer, names.before = names.before, of_a
    first = converted(a, kind, node, names)
    of_a, names.before = names.before, of_b
    second = converted(b, kind, node, names)
    of_b, names.before = names.before, outer
    if not (of_a or of_b or _may_fault(first) or _may_fault(second)):
        return Value(ast.IfExp(test, first, second), kind)
    name = names.fresh(f"value_{len(names.taken)}")
    sides = [[*of_a, _set(name, first, node)], [*of_b, _set(name, second, node)]]
    names.before.append(placed(ast.If(test, sides[0], sides[1]), node))
    return Value(named(name, node), kind)


def _parenthesized(node: Node, names: Names) -> Value | None:
    inner = [one for one in node.named_children if one.type != "comment"]
    return value_of(inner[0], names) if len(inner) == 1 else None


def _record_field(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    """``blockIdx.x``, or a field of a record of arguments, by its name."""
    record, part = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if record is None or part is None:
        return None
    what, name = text_of(record), text_of(part)
    known = names.find(what)
    if what in _RECORDS and known is None and name in ("x", "y", "z"):
        return Value(_launch(_RECORDS[what], name), UNSIGNED)
    if what == "threadIdx" or not name.isidentifier():
        return None
    if name == "divisor" and what.rpartition(".")[2] in names.calls.divmods and (by := _divisor(record, names)):
        return Value(by, UNSIGNED)
    base = re.match(r"\w+", what)
    root = names.find(base.group()) if base else None
    is_record = (root.kind == RECORD) if root else base is not None and base.group() not in names.calls.unread
    if not is_record or name in names.dirty or names.fields.setdefault(name, what) != what or {*"(["} & {*what}:
        return None
    if what == "blockDim":
        return Value(ast.Name(f"{what}_{name}", ast.Load()), UNSIGNED)
    own = name in names.declared and name not in names.copied
    return Value(ast.Name(f"own_{name}" if own else name, ast.Load()), UNSIGNED)


def _element(node: Node, names: Names) -> Value | None:
    """``index[I0]``, an element of a record that is not known, by the name of both."""
    record, listed = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    known = names.find(text_of(record)) if record is not None and record.type == "identifier" else None
    inner = listed.named_children if listed is not None else []
    if known is None or known.kind != RECORD or known.why or len(inner) != 1:
        return None
    if not (inner[0].type == "number_literal" or re.fullmatch(r"I\d", text_of(inner[0]))) or names.find(
        text_of(inner[0])
    ):
        return None
    name = f"{known.name}_{text_of(inner[0])}"
    whole = text_of(node).replace(" ", "")
    if name in names.taken or not known.is_const or names.fields.setdefault(name, whole) != whole:
        return None
    return Value(ast.Name(name, ast.Load()), UNSIGNED)


def _identifier(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    whole = text_of(node)
    name = whole.rpartition("::")[2].strip()
    known = names.find(name) if "::" not in whole else None
    if known is not None:
        if known.kind == UNKNOWN or known.why:
            return Value(unread(known.at or node, known.why), UNKNOWN)
        return Value(ast.Name(known.name, ast.Load()), known.kind)
    if name.startswith(OPEN):
        return None
    around = whole.rpartition("::")[0].rpartition("::")[2].strip()
    if around and around != names.calls.owners.get(name, around):
        name = f"own_{name}"  # of another class: a template's
    if name in names.calls.unread:
        return Value(unread(node, names.calls.unread[name]), UNKNOWN)
    for pattern, what in ((_ID_CALL, "program_id"), (_COUNT_CALL, "num_programs")):
        if match := pattern.match(name):
            return Value(_launch(what, match.group(1)), UNSIGNED)
    if not name.isidentifier() or names.fields.setdefault(name, whole.replace(" ", "")) != whole.replace(" ", ""):
        return None  # a name of two scopes
    return Value(ast.Name(name, ast.Load()), names.calls.constants.get(name, UNSIGNED))


def _call(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        return None
    if (by := _divided(node, names)) is not None:
        return by
    template: list[Node] = []
    if function.type in ("template_function", "qualified_identifier") and "<" in text_of(function):
        inner = next((one for one in [function, *function.named_children] if one.type == "template_function"), None)
        found = inner.child_by_field_name("arguments") if inner is not None else None
        if inner is None or found is None:
            return None
        template = [one for one in found.named_children if one.type != "comment"]
        function = inner.child_by_field_name("name") or inner
    name = text_of(function).rpartition("::")[2].strip()
    given = [one for one in listed.named_children if one.type != "comment"]
    if name in names.lambdas and names.find(name) is not None:
        own, wanted = names.lambdas[name]
        return _handed(own, [Variable(*one) for one in wanted], given, [], node, names)
    if name in names.calls.unread or names.find(name) is not None:
        return Value(unread(node, names.calls.unread.get(name, "")), UNKNOWN)
    if name in names.calls.kinds:
        other = names.calls.included(name)
        again = other is not None and getattr(other, "said", "") != names.calls.texts.get(name)
        return _own_call(name, given, template, node, names) if not again else None
    return _known_call(name, given, template, node, names)


def divided(node: Node, names: Names) -> tuple[ast.expr, list[Variable], Node, str] | None:
    """Divisor, variables that are assigned, number and word of a call of an object that divides; None of others.

    ``a.divmod(remainder, number)`` is the quotient, ``a(quotient, remainder, number)`` assigns both; ``a.div(number)``
    and ``a.rem(number)`` assign nothing: the library's own, by the names of its types.
    """
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if node.type != "call_expression" or function is None or listed is None or names.has_lambda:
        return None
    of, word = function, ""
    if function.type == "field_expression":
        inner, part = function.child_by_field_name("argument"), function.child_by_field_name("field")
        word = text_of(part) if part is not None and text_of(part) in _DIVIDES else ""
        of = inner if inner is not None and word else of
    given = [one for one in listed.named_children if one.type != "comment"]
    if len(given) != _DIVIDES[word] or text_of(of).rpartition(".")[2] not in names.calls.divmods:
        return None
    targets = [names.find(text_of(one)) for one in given[:-1]]
    known = [
        one for one in targets if one is not None and one.kind in (INT, UNSIGNED) and not (one.why or one.is_const)
    ]
    outer = node.parent
    while outer is not None and outer.type in ("parenthesized_expression", "argument_list"):
        outer = outer.parent
    alone = outer is not None and outer.type in ("init_declarator", "assignment_expression", "expression_statement")
    alone = alone or (outer is not None and divided(outer, names) is not None)
    if len(known) < len(targets) or len({*known}) < len(known) or (targets and not alone):
        return None
    divisor = _divisor(of, names)
    return (divisor, known, given[-1], word) if divisor is not None else None


def _divisor(of: Node, names: Names) -> ast.expr | None:
    """Name for the number that an object divides by."""
    if of.type == "field_expression":
        found = _record_field(of, names)
        return found.tree if found is not None else None
    known = names.find(text_of(of))
    return ast.Name(known.name, ast.Load()) if known is not None and known.kind == RECORD else None


def _divided(node: Node, names: Names) -> Value | None:
    """Value of a call of an object that divides; what it assigns goes before."""
    found = divided(node, names)
    if found is None:
        return None
    divisor, targets, place, word = found
    number = named(names.set_before(converted(value_of(place, names), UNSIGNED, node, names), node), node)
    parts = [placed(ast.BinOp(number, op, divisor), node) for op in (ast.FloorDiv(), ast.Mod())]
    quotient = names.set_before(parts[word == "rem"], node)
    for variable, value in zip(targets, parts[1:] if word else parts, strict=False):
        names.before.append(_set(variable.name, value, node))
    return Value(named(quotient, node), UNSIGNED)


def _known_call(name: str, given: list[Node], template: list[Node], node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    """Call of what every GPU program knows."""
    axis = _ID_CALL.match(name) or _COUNT_CALL.match(name)
    if axis and not given:
        return Value(_launch("program_id" if _ID_CALL.match(name) else "num_programs", axis.group(1)), UNSIGNED)
    args = [value_of(one, names) for one in given]
    if name in _AXIS_CALLS and len(args) == 1 and isinstance(args[0].tree, ast.Constant):
        number = args[0].tree.value
        return Value(_launch(_AXIS_CALLS[name], "xyz"[int(str(number))]), UNSIGNED) if number in (0, 1, 2) else None
    if name == "static_cast" and len(args) == len(template) == 1:
        return _cast_to(text_of(template[0]), args[0], node, names)
    if name in CASTS and len(args) == 1 and not template:
        return _cast_to(name, args[0], node, names)
    if _MADE.match(name) and args and all(one.kind in (INT, UNSIGNED, BOOL) for one in args):
        if template and not all(kind_of_type(text_of(one), names.calls.aliases) for one in template):
            return None
        return Value(ast.Tuple([one.tree for one in args], ast.Load()), UNKNOWN)
    if any(one.kind in (UNKNOWN, RECORD) for one in args) or not name.isidentifier():
        return None
    kind = INT
    for one in args:
        kind = _both(kind, one.kind)
    if name in _SAME and len(args) == 1:
        return Value(args[0].tree, kind)
    trees = [converted(one, kind, node, names) for one in args]
    if name in BUILTINS:
        other = names.calls.included(name)
        if template or (other is not None and getattr(other, "takes_integers", True)):
            return None
        call = ast.Call(ast.Name(name, ast.Load()), trees, [])
        call.is_builtin = True  # type: ignore[attr-defined]
        return Value(call, kind)
    return Value(ast.Call(ast.Name(name, ast.Load()), trees, []), kind) if not template else None


def _own_call(name: str, given: list[Node], template: list[Node], node: Node, names: Names) -> Value | None:
    """Call of a function of the file, a template's numbers by their names."""
    keywords = numbers_of(name, template, names)
    if names.calls.references.get(name) or keywords is None:
        return None
    return _handed(name, names.calls.kinds[name], given, keywords, node, names)


def numbers_of(name: str, template: list[Node], names: Names) -> list[ast.keyword] | None:
    """Numbers that a function's template is given, by their names; None where they do not fit."""
    numbers = names.calls.templates.get(name, [])
    if len(template) > len(numbers):
        return None
    pairs = zip(numbers, template, strict=False)
    return [ast.keyword(known, value_of(_inside(one), names).tree) for known, one in pairs if known is not None]


def _handed(
    name: str, wanted: list[Variable], given: list[Node], keywords: list[ast.keyword], node: Node, names: Names
) -> Value | None:
    """Call with each argument as its parameter takes it."""
    if len(given) > len(wanted):
        return None
    args = []
    for one, parameter in zip(given, wanted, strict=False):
        value = value_of(one, names)
        args.append(converted(value, parameter.kind, node, names) if value.kind and parameter.kind else value.tree)
    kind = names.calls.results.get(name, INT)
    return Value(ast.Call(ast.Name(name, ast.Load()), args, keywords), kind)


def _inside(node: Node) -> Node:
    """Name or number of a template's argument, which the grammar may take for a type."""
    return node.named_children[0] if node.type == "type_descriptor" and node.named_children else node


def _cast_to(text: str, value: Value, node: Node, names: Names) -> Value | None:
    kind = kind_of_type(text, names.calls.aliases)
    if not kind or value.kind in (UNKNOWN, RECORD):
        return None
    return Value(converted(value, kind, node, names), kind)


def _cast(node: Node, names: Names) -> Value | None:
    kind = node.child_by_field_name("type")
    return _cast_to(text_of(kind), _field(node, "value", names), node, names) if kind is not None else None


def _listed(node: Node, names: Names) -> Value | None:
    parts = [value_of(one, names) for one in node.named_children if one.type != "comment"]
    if len(parts) == 1:
        return parts[0]
    return Value(ast.Tuple([one.tree for one in parts], ast.Load()), UNKNOWN) if parts else None


def _made(node: Node, names: Names) -> Value | None:
    """``dim3{a, b, c}``, ``int2{a, b}``."""
    value, kind = node.child_by_field_name("value"), node.child_by_field_name("type")
    if value is None or kind is None:
        return None
    if is_listed(text_of(kind), names.calls.aliases):
        return _listed(value, names)
    inner = _listed(value, names)
    if inner is not None and isinstance(inner.tree, ast.Tuple):  # of a class that is not known
        return Value(unread(node, "", inner.tree.elts), UNKNOWN)
    return _cast_to(text_of(kind), inner, node, names) if inner is not None else None


def _launch(what: str, axis: str) -> ast.expr:
    """``tl.program_id(k)`` or ``tl.num_programs(k)``."""
    function = ast.Attribute(ast.Name("tl", ast.Load()), what, ast.Load())
    return ast.Call(function, [ast.Constant("xyz".index(axis.lower()))], [])


_READERS: dict[str, Callable[[Node, Names], Value | None]] = {
    "number_literal": _number,
    "true": lambda node, names: Value(ast.Constant(1), BOOL),
    "false": lambda node, names: Value(ast.Constant(0), BOOL),
    "identifier": _identifier,
    "type_identifier": _identifier,
    "qualified_identifier": _identifier,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "conditional_expression": _choice,
    "parenthesized_expression": _parenthesized,
    "condition_clause": _parenthesized,
    "field_expression": _record_field,
    "subscript_expression": _element,
    "call_expression": _call,
    "cast_expression": _cast,
    "initializer_list": _listed,
    "compound_literal_expression": _made,
}


def number_of(tree: ast.expr, known: Mapping[str, object]) -> int | None:
    """Number that an expression of constants is, none of them negative on the way; None where it is none."""
    match tree:
        case ast.Constant(int(value)):
            return int(value)
        case ast.Name(name) if isinstance(number := known.get(name), int):
            return number
        case ast.BinOp(left, op, right):
            a, b = number_of(left, known), number_of(right, known)
            if a is None or b is None or min(a, b) < 0 or (b == 0 and isinstance(op, ast.FloorDiv | ast.Mod)):
                return None
            rules = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}
            return rules.get(type(op), a // max(b, 1) if isinstance(op, ast.FloorDiv) else
                             a % max(b, 1) if isinstance(op, ast.Mod) else None)  # fmt: skip
    return None
