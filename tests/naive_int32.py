"""A slow, obvious evaluator of forms: Python integers, and every rule of a 32-bit GPU integer checked by hand."""

from swizzle_sim.language.ir import Assign, Binary, Compare, Connect, For, If, Int, Name, Not, Select, Unary


class NaiveFault(Exception):
    """Evaluation stopped; the one argument is the code."""


def evaluate(form, inputs):
    """Run a form for one workgroup; returns the value of each result."""
    values = dict(inputs)
    _block(form.body, values)
    return tuple(values[name] for name in form.results)


def _block(body, values):
    for stmt in body:
        if isinstance(stmt, Assign):
            values[stmt.target] = number(stmt.value, values)
        elif isinstance(stmt, If):
            _block(stmt.body if truth(stmt.condition, values) else stmt.orelse, values)
        elif isinstance(stmt, For):
            for i in range(number(stmt.start, values), number(stmt.stop, values), stmt.step):
                values[stmt.var] = i
                _block(stmt.body, values)


def number(node, values):
    """Value of an integer expression."""
    if isinstance(node, Int):
        return node.value
    if isinstance(node, Name):
        return values[node.name]
    if isinstance(node, Select):
        condition = truth(node.condition, values)
        then, other = number(node.then, values), number(node.other, values)  # both, as a GPU does
        return then if condition else other
    if isinstance(node, Unary):
        operand = number(node.operand, values)
        return _fits(-operand if node.op == "-" else ~operand)
    assert isinstance(node, Binary)
    return _binary(node.op, number(node.left, values), number(node.right, values))


def truth(node, values):
    """Value of a condition."""
    if isinstance(node, Not):
        return not truth(node.operand, values)
    if isinstance(node, Connect):
        left, right = truth(node.left, values), truth(node.right, values)
        return (left and right) if node.op == "and" else (left or right)
    assert isinstance(node, Compare)
    left, right = number(node.left, values), number(node.right, values)
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
    }[node.op]


def _binary(op, left, right):
    if op == "cdiv":
        return _divide("//", _fits(_fits(left + right) - 1), right)
    if op in ("//", "%"):
        return _divide(op, left, right)
    if op in ("<<", ">>"):
        if not 0 <= right <= 31:
            raise NaiveFault("shift")
        return _fits(left << right if op == "<<" else left >> right)
    plain = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "&": left & right,
        "|": left | right,
        "^": left ^ right,
        "min": min(left, right),
        "max": max(left, right),
    }
    return _fits(plain[op])


def _divide(op, left, right):
    """Divide as C does and as Python does, and let nothing pass on which they differ."""
    if right == 0:
        raise NaiveFault("division-by-zero")
    sign = -1 if (left < 0) != (right < 0) else 1
    c_quotient = sign * (abs(left) // abs(right))
    c_remainder = left - c_quotient * right
    _fits(c_quotient)  # -2**31 by -1: the hardware divides first, whether quotient or remainder is asked for
    python_quotient, python_remainder = divmod(left, right)
    if (c_quotient, c_remainder) != (python_quotient, python_remainder):
        raise NaiveFault("signed-division")
    return _fits(python_quotient if op == "//" else python_remainder)


def _fits(value):
    if not -(2**31) <= value <= 2**31 - 1:
        raise NaiveFault("overflow")
    return value
