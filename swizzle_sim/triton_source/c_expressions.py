"""Expressions of C in Python's syntax tree: operators, names, fields of records, and the ids and counts of a launch.

An allow-list of node kinds (calls: `c_calls`) and of types (`c_types`). A subtraction of unsigned values, and a signed
value that becomes an unsigned one, are computed in a statement before, ``x = a - b; x = x + (0 << min(x, 0))``, which
no launch with a negative value passes. So is a choice whose other side must not be evaluated.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tree_sitter import Node

from swizzle_sim.triton_source.c_names import Names, Value, assigned, is_unread, named, placed, unread
from swizzle_sim.triton_source.c_types import (
    BOOL,
    INT,
    OPEN,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    fields,
    kind_of_type,
    listed_kinds,
    parts,
    text_of,
)

_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.FloorDiv, "%": ast.Mod, "<<": ast.LShift, ">>": ast.RShift,
    "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "bitand": ast.BitAnd, "bitor": ast.BitOr, "xor": ast.BitXor,
}  # fmt: skip
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq, "not_eq": ast.NotEq,
}  # fmt: skip
_CONNECT: dict[str, type[ast.boolop]] = {"&&": ast.And, "and": ast.And, "||": ast.Or, "or": ast.Or}
_RECORDS = {"blockIdx": "program_id", "gridDim": "num_programs"}
_LAUNCHED = {
    "program_id": re.compile(
        r"^(?:__builtin_amdgcn_workgroup_id_|block_id_|hipBlockIdx_|get_block_id_|blockIdx_|RematerializeBlockIdx)([xyzXYZ])$"
    ),
    "num_programs": re.compile(r"^(?:grid_dim|hipGridDim|num_blocks|gridDim)_([xyz])$"),
}
_NUMBER = re.compile(r"^([-+]?)(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)([uUlLzZ]*)$")
_COMPUTED: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Not: operator.not_, ast.USub: operator.neg,
    ast.Invert: operator.invert,
}  # fmt: skip
LAUNCHED = (*_RECORDS, "blockDim", "threadIdx")
LAUNCH = ("tl.program_id(", "tl.num_programs(")


def expression(node: Node, names: Names) -> ast.expr:
    """Expression in Python; `unread` where there is none."""
    return value_of(node, names).tree


def value_of(node: Node | None, names: Names) -> Value:
    """Expression in Python with its kind."""
    assert node is not None
    reader = READERS.get(node.type)
    found = reader(node, names) if reader and not node.has_error else None
    return Value(placed(found.tree, node), found.kind) if found is not None else Value(unread(node), UNKNOWN)


def apart(node: Node | None, names: Names) -> tuple[Value, list[ast.stmt]]:
    """A value, and the statements that go before it, which may stand under a condition."""
    outer, names.before = names.before, []
    found = value_of(node, names)
    inner, names.before = names.before, outer
    return found, inner


def converted(value: Value, kind: str, node: Node, names: Names) -> ast.expr:
    """Value as one of another kind."""
    if kind == BOOL and value.kind != BOOL:
        test = ast.Compare(value.tree, [ast.NotEq()], [ast.Constant(0)])
        return placed(ast.IfExp(test, ast.Constant(1), ast.Constant(0)), node)
    known = isinstance(value.tree, ast.Name) and value.tree.id in names.not_negative
    if kind == UNSIGNED and value.kind == INT and not known:
        return names.guarded(value.tree, node)
    return value.tree


def kinds_in(tree: ast.expr) -> tuple[str, ...]:
    """Kinds of a list's values, where they are known."""
    return getattr(tree, "kinds", ())


def tuple_of(values: list[Value], kinds: Sequence[str], node: Node, names: Names) -> Value:
    """List of values of these kinds; without any, of their own."""
    kinds = (*kinds[: len(values)],) or tuple(one.kind for one in values)
    trees = [converted(one, kind, node, names) for one, kind in zip(values, kinds, strict=False)]
    tree = ast.Tuple(trees, ast.Load())
    tree.kinds = kinds  # type: ignore[attr-defined]
    return Value(tree, UNKNOWN)


def tuple_as(tree: ast.Tuple, kinds: Sequence[str], node: Node, names: Names) -> Value:
    """List as one of a type with these kinds."""
    return tuple_of([Value(*one) for one in zip(tree.elts, kinds_in(tree), strict=True)], kinds, node, names)


def cast_to(text: str, value: Value, node: Node, names: Names) -> Value | None:
    """Value as one of the type that a text names; None for what is not read."""
    kind = kind_of_type(text, names.calls.aliases)
    return Value(converted(value, kind, node, names), kind) if kind and value.is_number else None


def both(a: str, b: str) -> str:
    """Kind of an operation of two kinds."""
    return UNKNOWN if UNKNOWN in (a, b) or RECORD in (a, b) else UNSIGNED if UNSIGNED in (a, b) else INT


def launch(name: str) -> Value | None:
    """Id or count of a launch by a name of libraries for it."""
    for what, pattern in _LAUNCHED.items():
        if match := pattern.match(name):
            return of_launch(what, match.group(1))
    return None


def of_launch(what: str, axis: str) -> Value:
    """``tl.program_id(k)`` or ``tl.num_programs(k)``."""
    function = ast.Attribute(ast.Name("tl", ast.Load()), what, ast.Load())
    return Value(ast.Call(function, [ast.Constant("xyz".index(axis.lower()))], []), UNSIGNED)


def _number(node: Node, names: Names) -> Value | None:
    match = _NUMBER.match(text_of(node))
    if match is None:
        return None
    digits = match.group(2).replace("'", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    value = int(digits, 8 if octal else 0)
    is_unsigned = "u" in match.group(3).lower() or value >= 2**31
    if match.group(1) == "-":
        return Value(ast.UnaryOp(ast.USub(), ast.Constant(value)), INT) if not is_unsigned else None
    return Value(ast.Constant(value), UNSIGNED if is_unsigned else INT)


def _binary(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    sign, left, right = fields(node, "operator", "left", "right")
    op = text_of(sign)
    if left is None or right is None:
        return None
    if op == "/":
        sides = re.fullmatch(r"(?:\w+::)*grid_size_([xyz])\(\)", text_of(left))
        if sides and text_of(right).endswith(f"block_size_{sides.group(1)}()"):  # work-items over those of a workgroup
            return Value(of_launch("num_programs", sides.group(1)).tree, INT)
    if op in _CONNECT:
        return _connected(node, op, left, right, names)
    b = value_of(right, names)
    outer, names.divisor = names.divisor, ast.unparse(b.tree) if op in ("/", "%") else names.divisor
    a = value_of(left, names)
    names.divisor = outer
    kind = both(a.kind, b.kind)
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
    return value.tree if value.is_number or is_unread(value.tree) else unread(node)


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


def _connected(node: Node, op: str, left: Node, right: Node, names: Names) -> Value:
    """``a && b``: what ``b`` needs before is computed only where ``a`` holds."""
    a = value_of(left, names).tree
    b, inner = apart(right, names)
    if not inner and not _may_fault(b.tree):
        return Value(ast.BoolOp(_CONNECT[op](), [a, b.tree]), BOOL)
    settled = _CONNECT[op] is ast.Or
    name = names.set_before(ast.Constant(int(settled)), node)
    test = a if not settled else ast.UnaryOp(ast.Not(), a)
    truth = ast.IfExp(b.tree, ast.Constant(1), ast.Constant(0))
    names.before.append(placed(ast.If(test, [*inner, assigned(name, truth, node)], []), node))
    return Value(ast.Compare(named(name, node), [ast.NotEq()], [ast.Constant(0)]), BOOL)


def _may_fault(tree: ast.expr) -> bool:
    """Whether a value may have none: a division, a remainder or a shift by what is no literal, or a subtraction."""
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.FloorDiv | ast.Mod | ast.LShift | ast.RShift)
        and not isinstance(one.right, ast.Constant)
        for one in ast.walk(tree)
    )


def _unary(node: Node, names: Names) -> Value | None:
    sign, argument = fields(node, "operator", "argument")
    op, value = text_of(sign), value_of(argument, names)
    if not value.is_number:
        return None
    if op in ("!", "not"):
        return Value(ast.UnaryOp(ast.Not(), value.tree), BOOL)
    if op == "+":
        return Value(value.tree, INT if value.kind == BOOL else value.kind)
    if op not in ("-", "~", "compl") or value.kind == BOOL:
        return None
    whole = placed(ast.UnaryOp(ast.USub() if op == "-" else ast.Invert(), value.tree), node)
    return Value(names.guarded(whole, node) if value.kind == UNSIGNED else whole, value.kind)


def _choice(node: Node, names: Names) -> Value | None:
    condition, yes, no = fields(node, "condition", "consequence", "alternative")
    if condition is None or yes is None or no is None:
        return None
    test = value_of(condition, names).tree
    (a, of_a), (b, of_b) = apart(yes, names), apart(no, names)
    kind = BOOL if a.kind == b.kind == BOOL else both(a.kind, b.kind)
    if isinstance(a.tree, ast.Tuple) and isinstance(b.tree, ast.Tuple):
        names.before += [*of_a, *of_b]
        whole = ast.IfExp(test, a.tree, b.tree)
        whole.kinds = kinds_in(a.tree) if kinds_in(a.tree) == kinds_in(b.tree) else ()  # type: ignore[attr-defined]
        return Value(whole, UNKNOWN)
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
    sides = [[*of_a, assigned(name, first, node)], [*of_b, assigned(name, second, node)]]
    names.before.append(placed(ast.If(test, sides[0], sides[1]), node))
    return Value(named(name, node), kind)


def _parenthesized(node: Node, names: Names) -> Value | None:
    inner = parts(node)
    return value_of(inner[0], names) if len(inner) == 1 else None


def record_field(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    """``blockIdx.x``, or a field of a record of arguments, by its name."""
    record, part = fields(node, "argument", "field")
    if record is None or part is None:
        return None
    what, name = text_of(record), text_of(part)
    known = names.find(what)
    if what in _RECORDS and known is None and name in ("x", "y", "z") and name not in names.dirty:
        return of_launch(_RECORDS[what], name)
    if what == "threadIdx" or not name.isidentifier():
        return None
    if name == "divisor" and what.rpartition(".")[2] in names.calls.divmods and (by := divisor(record, names)):
        return Value(by, UNSIGNED)
    base = re.match(r"\w+", what)
    root = names.find(base.group()) if base else None
    is_record = (root.kind == RECORD) if root else base is not None and base.group() not in names.calls.unread
    if not is_record or name in names.dirty or names.fields.setdefault(name, what) != what or {*"(["} & {*what}:
        return None
    if what == "blockDim":
        return Value(ast.Name(f"{what}_{name}", ast.Load()), UNSIGNED)
    own = (name in names.declared and name not in names.copied) or name in names.calls.constants
    return Value(ast.Name(f"own_{name}" if own else name, ast.Load()), UNSIGNED)


def divisor(of: Node, names: Names) -> ast.expr | None:
    """Name for the number that an object divides by."""
    if of.type == "field_expression":
        found = record_field(of, names)
        return found.tree if found is not None else None
    known = names.find(text_of(of))
    return ast.Name(known.name, ast.Load()) if known is not None and known.kind == RECORD else None


def _element(node: Node, names: Names) -> Value | None:
    """``index[I0]``, an element of a record that is not known, by the name of both."""
    record, listed = fields(node, "argument", "indices")
    known = names.find(text_of(record)) if record is not None and record.type == "identifier" else None
    inner = parts(listed)
    if known is None or known.kind != RECORD or known.why or len(inner) != 1 or names.find(text_of(inner[0])):
        return None
    if not (inner[0].type == "number_literal" or re.fullmatch(r"I\d", text_of(inner[0]))):
        return None
    name, whole = f"{known.name}_{text_of(inner[0])}", text_of(node).replace(" ", "")
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
        found = ast.Name(known.name, ast.Load())
        if known.name in names.flags:  # a caller's value is none, or one
            return Value(ast.Compare(found, [ast.NotEq()], [ast.Constant(0)]), BOOL)
        return Value(found, known.kind)
    if name.startswith(OPEN):
        return None
    around = whole.rpartition("::")[0].rpartition("::")[2].strip()
    if around and around != names.calls.owners.get(name, around):
        name = f"own_{name}"  # of another class: a template's
    if name in names.calls.unread:
        return Value(unread(node, names.calls.unread[name]), UNKNOWN)
    if (found_id := launch(name)) is not None:
        return found_id
    is_hidden = name in names.declared  # ``::name``, which the function has for something else
    if (
        not name.isidentifier()
        or is_hidden
        or names.fields.setdefault(name, whole.replace(" ", "")) != whole.replace(" ", "")
    ):
        return None  # a name of two scopes
    return Value(ast.Name(name, ast.Load()), names.calls.constants.get(name, UNSIGNED))


def _cast(node: Node, names: Names) -> Value | None:
    kind, value = fields(node, "type", "value")
    return cast_to(text_of(kind), value_of(value, names), node, names) if kind is not None else None


def _listed(node: Node, names: Names) -> Value | None:
    inner = [value_of(one, names) for one in parts(node)]
    if len(inner) == 1:
        return inner[0]
    return tuple_of(inner, (), node, names) if inner else None


def _made(node: Node, names: Names) -> Value | None:
    """``dim3{a, b, c}``, ``int2{a, b}``."""
    value, kind = fields(node, "value", "type")
    inner = _listed(value, names) if value is not None else None
    kinds = listed_kinds(text_of(kind), names.calls.aliases)
    if inner is None or kinds:
        return tuple_as(inner.tree, kinds, node, names) if inner and isinstance(inner.tree, ast.Tuple) else inner
    if isinstance(inner.tree, ast.Tuple):  # of a class that is not known
        return Value(unread(node, "", inner.tree.elts), UNKNOWN)
    return cast_to(text_of(kind), inner, node, names)


READERS: dict[str, Callable[[Node, Names], Value | None]] = {  # `c_calls` adds the calls
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
    "field_expression": record_field,
    "subscript_expression": _element,
    "cast_expression": _cast,
    "initializer_list": _listed,
    "compound_literal_expression": _made,
}


def number_of(tree: ast.expr, known: Mapping[str, object] = MappingProxyType({})) -> int | None:  # noqa: PLR0911
    """Number that an expression of constants is; None where a name decides it, or no 32 bits hold a part of it."""
    match tree:
        case ast.Constant(int(value)):
            return int(value) if value < 2**31 else None
        case ast.Name(name):
            return found if isinstance(found := known.get(name), int) else None
        case ast.BoolOp(op, values):
            sides, ends = [number_of(one, known) for one in values], isinstance(op, ast.Or)
            if any(one is not None and bool(one) is ends for one in sides):
                return int(ends)
            return None if None in sides else int(not ends)
        case ast.IfExp(test, yes, no):
            truth = number_of(test, known)
            return None if truth is None else number_of(yes if truth else no, known)
        case ast.UnaryOp(sign, one):
            return _computed(sign, [number_of(one, known)])
        case ast.BinOp(a, sign, b) | ast.Compare(a, [sign], [b]):
            return _computed(sign, [number_of(a, known), number_of(b, known)])
    return None


def _computed(sign: ast.AST, values: list[int | None]) -> int | None:
    numbers = [one for one in values if one is not None]
    shift = isinstance(sign, ast.LShift | ast.RShift)
    if len(numbers) < len(values) or type(sign) not in _COMPUTED:
        return None
    if isinstance(sign, ast.FloorDiv | ast.Mod | ast.LShift | ast.RShift) and (
        min(numbers) < 0 or numbers[1] > 31 * shift + 2**31 * (not shift) or (numbers[1] == 0 and not shift)
    ):
        return None
    found = int(_COMPUTED[type(sign)](*numbers))
    return found if abs(found) < 2**31 else None
