"""Oracle of the language: walks a form with Python's own integers."""

import operator

from swizzle_sim.language import ir as nodes


def _shifted(a, b):
    if b > 4096:  # such a candidate is refused, and its answer may not fit the memory
        raise ValueError(f"a shift by {b}")
    return a << b


_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": _shifted,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "min": min,
    "max": max,
    "cdiv": lambda a, b: -(-a // b),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def results(form, environment):
    """Answer of a form, a tuple, for one workgroup's values."""
    known = dict(environment)
    _block(form.body, known)
    return tuple(known[name] for name in form.results)


def _block(body, known):
    for stmt in body:
        if isinstance(stmt, nodes.Assign):
            known[stmt.target] = int(_value(stmt.value, known))
        elif isinstance(stmt, nodes.If):
            _block(stmt.body if _value(stmt.condition, known) else stmt.orelse, known)
        else:
            for value in range(_value(stmt.start, known), _value(stmt.stop, known), stmt.step):
                known[stmt.var] = value
                _block(stmt.body, known)


def _value(node, known):
    match node:
        case nodes.Int(value):
            return value
        case nodes.Name(name):
            return known[name]
        case nodes.Not(operand):
            return not _value(operand, known)
        case nodes.Unary(op, operand):
            return -_value(operand, known) if op == "-" else ~_value(operand, known)
        case nodes.Select(condition, then, other):
            return _value(then if _value(condition, known) else other, known)
    return _OPERATIONS[node.op](_value(node.left, known), _value(node.right, known))
