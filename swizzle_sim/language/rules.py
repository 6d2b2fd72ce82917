"""Allow-list of the closed language, and the message for everything that is not on it.

The lists are data, shared by the parser, the documentation and the prompt of a proposer.
"""

from __future__ import annotations

import ast

MAX_TEXT_BYTES = 64 * 1024
MAX_NODES = 2000
MAX_DEPTH = 100  # the readers recurse a few Python frames a level; the interpreter's own limit is 1000
MAX_NAME_LENGTH = 100
MAX_LOOPS = 8  # one inside another; CPython compiles 20, and a GPU unrolls or spills long before
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

# Steps of the virtual machine, 0.1 to 9 ns each, and at first up to a second of a process. Counted and not timed, so
# that every machine gives the same verdict.
MAX_STEPS_PER_PID = 100_000
# From the text to the verdict at a grid, whichever is more: some seconds, or what the longest honest candidates need.
MAX_STEPS = 1_000_000_000
MEAN_STEPS_PER_PID = 1_000
LATTICE_STEPS = 100_000_000  # of all other grids together: about a second at most
CHECK_STEPS = 2_000_000_000  # of all launches of a check that looks for one to refute
MOST_TRIED = 2**22  # workgroups of a launch that a check tries all of; of a larger one it draws a sample
STEPS_PER_BYTE, STEPS_PER_INSTRUCTION = 100, 4_000  # reading 64 KiB and compiling 2000 parts takes some 0.1 s

# Groups of names that may be the result, in order of precedence.
RESULT_GROUPS = (("pid",), ("pid_m", "pid_n"), ("pid_x", "pid_y", "pid_z"), ("x", "y", "z"))

BINARY_OPS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
COMPARE_OPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

# Spelling in a candidate -> what it is. Triton's spellings are allowed as well as Python's.
FUNCTIONS = {
    "tl.program_id": "program_id",
    "tl.num_programs": "num_programs",
    "tl.cdiv": "cdiv",
    "triton.cdiv": "cdiv",
    "cdiv": "cdiv",
    "min": "min",
    "max": "max",
    "tl.minimum": "min",
    "tl.maximum": "max",
    "abs": "abs",
    "int": "int",
    "tl.where": "where",
}
RANGES = ("range", "tl.range", "tl.static_range")
PAIR_FUNCTION = "divmod"
ANNOTATIONS = ("int", "constexpr", "tl.constexpr", "tl.int32", "tl.int64")
RESERVED = frozenset({"tl", "triton", "cdiv", "min", "max", "abs", "int", "divmod", "range"})
CALL_HINT = f"the calls are {', '.join(FUNCTIONS)}, {PAIR_FUNCTION} and, in a for, {', '.join(RANGES)}"

ASSIGN_RESULT = "assign pid, or the coordinates (pid_m, pid_n), (pid_x, pid_y) or (x, y)"

# Node -> (what the writer typed, what to do instead).
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Div: ("'/'", "use // (integers only)"),
    ast.Pow: ("'**'", "multiply, or shift for powers of two"),
    ast.MatMult: ("'@'", "there are only integers"),
    ast.UAdd: ("unary '+'", "leave it out"),
    ast.Import: ("'import'", "leave the line out: tl and triton are known"),
    ast.ImportFrom: ("'import'", "leave the line out: tl and triton are known"),
    ast.FunctionDef: ("'def'", "write the statements themselves, without a function around them"),
    ast.AsyncFunctionDef: ("'async def'", "write the statements themselves"),
    ast.ClassDef: ("'class'", "write plain assignments"),
    ast.Return: ("'return'", ASSIGN_RESULT),
    ast.While: ("'while'", "use a bounded for ... in range(...)"),
    ast.AsyncFor: ("'async for'", "use for ... in range(...)"),
    ast.Break: ("'break'", "bound the range, or guard the body with if"),
    ast.Continue: ("'continue'", "guard the body with if"),
    ast.Lambda: ("'lambda'", "write the expression in place"),
    ast.Attribute: ("attribute access", CALL_HINT),
    ast.Subscript: ("a subscript", "a candidate has no arrays or tables: compute the value"),
    ast.JoinedStr: ("an f-string", "there are only integers"),
    ast.NamedExpr: ("':='", "assign on a line of its own"),
    ast.Starred: ("'*' unpacking", "name each value"),
    ast.List: ("a list", "a candidate has no arrays: use plain variables"),
    ast.Tuple: ("a tuple", "a tuple may only stand on both sides of one assignment"),
    ast.Dict: ("a dict", "use plain variables"),
    ast.Set: ("a set", "use plain variables"),
    ast.ListComp: ("a comprehension", "use for ... in range(...)"),
    ast.SetComp: ("a comprehension", "use for ... in range(...)"),
    ast.DictComp: ("a comprehension", "use for ... in range(...)"),
    ast.GeneratorExp: ("a comprehension", "use for ... in range(...)"),
    ast.Is: ("'is'", "use =="),
    ast.IsNot: ("'is not'", "use !="),
    ast.In: ("'in'", "compare with == and or"),
    ast.NotIn: ("'not in'", "compare with != and and"),
    ast.With: ("'with'", "leave it out"),
    ast.Try: ("'try'", "guard the case with if or tl.where"),
    ast.Raise: ("'raise'", "leave it out: verification finds what is wrong"),
    ast.Assert: ("'assert'", "leave it out: verification finds what is wrong"),
    ast.Delete: ("'del'", "leave it out"),
    ast.Global: ("'global'", "leave it out"),
    ast.Nonlocal: ("'nonlocal'", "leave it out"),
    ast.Await: ("'await'", "leave it out"),
    ast.Yield: ("'yield'", ASSIGN_RESULT),
    ast.YieldFrom: ("'yield from'", ASSIGN_RESULT),
}


def refusal(node: ast.AST) -> str:
    """Message for a node outside the language: the rule, and what to write instead."""
    if isinstance(node, ast.Constant):
        return f"{_kind(node.value)} is not in the language: there are only integers and True/False"
    what, instead = REFUSED.get(type(node), (f"'{type(node).__name__.lower()}'", "see the allow-list of the language"))
    return f"{what} is not in the language: {instead}"


def _kind(value: object) -> str:
    """Name a literal by its type; its text may be long or hostile."""
    return {str: "a string", float: "a float", bytes: "a bytes literal", complex: "a complex number"}.get(
        type(value), f"{value!r}"[:20]
    )
