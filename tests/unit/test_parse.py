"""Does the parser accept what kernel engineers write, and refuse everything else by name?"""

import pytest

from swizzle_sim.language import parse_form
from swizzle_sim.language.ir import GRID_NAMES, Assign, Binary, Compare, Connect, Form, Int, Name, Select, Unary
from xcd_model.errors import LanguageError

PID = Name("pid")


def value_of(expression):
    """The tree of an expression assigned to pid."""
    return parse_form(f"pid = {expression}").body[-1].value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("pid // 8", Binary("//", PID, Int(8))),
        ("-5", Int(-5)),
        ("-2147483648", Int(-(2**31))),
        ("0x55555555", Int(0x55555555)),
        ("-pid", Unary("-", PID)),
        ("-(-5)", Int(5)),
        ("-True", Int(-1)),
        ("abs(-5)", Binary("max", Int(-5), Int(5))),
        ("-(-2147483648)", Unary("-", Int(-(2**31)))),
        ("~pid", Unary("~", PID)),
        ("True", Int(1)),
        ("int(pid)", PID),
        ("abs(pid)", Binary("max", PID, Unary("-", PID))),
        ("min(pid, 3, 4)", Binary("min", Binary("min", PID, Int(3)), Int(4))),
        ("tl.maximum(pid, 3)", Binary("max", PID, Int(3))),
        ("tl.cdiv(pid, 3)", Binary("cdiv", PID, Int(3))),
        ("triton.cdiv(pid, 3)", Binary("cdiv", PID, Int(3))),
        ("cdiv(pid, 3)", Binary("cdiv", PID, Int(3))),
        ("tl.program_id(0)", Name("program_id(0)")),
        ("tl.program_id(axis=1)", Name("program_id(1)")),
        ("tl.num_programs(2)", Name("num_programs(2)")),
        ("tl.where(pid < 3, 1, 2)", Select(Compare("<", PID, Int(3)), Int(1), Int(2))),
        ("1 if pid else 2", Select(Compare("!=", PID, Int(0)), Int(1), Int(2))),
        ("pid < 3", Select(Compare("<", PID, Int(3)), Int(1), Int(0))),
        ("1 + (pid < 3)", Binary("+", Int(1), Select(Compare("<", PID, Int(3)), Int(1), Int(0)))),
    ],
)
def test_expressions(text, tree):
    assert value_of(text) == tree


@pytest.mark.parametrize("text", ["1 <= pid < 3", "(1 <= pid) & (pid < 3)", "1 <= pid and pid < 3"])
def test_three_ways_to_say_between(text):
    both = Connect("and", Compare("<=", Int(1), PID), Compare("<", PID, Int(3)))
    assert value_of(text) == Select(both, Int(1), Int(0))


def test_tuples_are_assigned_at_once():
    form = parse_form("pid_m, pid_n = pid_n, pid_m")
    targets = [stmt.target for stmt in form.body]
    assert targets[2:] == ["pid_m", "pid_n"]
    assert set(targets[:2]).isdisjoint({"pid_m", "pid_n"})
    assert len(parse_form("pid_m, pid_n = pid // 4, pid % 4").body) == 2  # no clash, no fresh names
    quotient, remainder = parse_form("pid_m, pid_n = divmod(pid, 8)").body
    assert quotient == Assign("pid_m", Binary("//", PID, Int(8)))
    assert remainder == Assign("pid_n", Binary("%", PID, Int(8)))
    # lines take no part in equality
    assert parse_form("\n\n# why\npid = 1") == Form((Assign("pid", Int(1)),), ("pid",), ())


def test_statements_that_kernel_engineers_write():
    form = parse_form(
        '''
        """Group tiles in columns."""
        GROUP_M: tl.constexpr = 8  # tuned
        a = b = pid // GROUP_M
        a += b; pass
        for i in tl.static_range(0, 4, 2):
            a ^= i
        for i in range(3):
            a -= 1
        if a > M:
            "nothing"
        elif a:
            a = 0
        pid = a
        '''
    )
    assert form.results == ("pid",)
    assert form.inputs == ("M", "pid")


@pytest.mark.parametrize(
    ("text", "results", "inputs"),
    [
        ("pid = 0", ("pid",), ()),
        ("if M: pid = 0", ("pid",), ("M", "pid")),
        ("pid_m = 0", ("pid_m",), ()),
        ("pid_n = 0\npid_m = 0", ("pid_m", "pid_n"), ()),
        ("pid_m = 0\npid = 0", ("pid",), ()),
        ("pid = 0\npid_y = pid", ("pid_y",), ()),
        ("pid_x = 1\npid_m = pid_x\npid_n = pid_x", ("pid_m", "pid_n"), ()),
        ("z = x\ny = 0", ("y", "z"), ("x",)),
        ("for i in range(2): t = i\npid = t", ("pid",), ()),  # a range of literals runs
    ],
)
def test_results_and_inputs(text, results, inputs):
    form = parse_form(text)
    assert (form.results, form.inputs) == (results, inputs)


# text, code, line, column, a word that the message must have
REFUSED = [
    ("pid = 1 / 2", "node", 1, 7, "//"),
    ("pid = 2 ** pid", "node", 1, 7, r"\*\*"),
    ("pid = 5.0", "node", 1, 7, "float"),
    ("pid = 'a'", "node", 1, 7, "string"),
    ("pid = f'{pid}'", "node", 1, 7, "f-string"),
    ("pid = None", "node", 1, 7, "None"),
    ("pid = +pid", "node", 1, 7, "unary"),
    ("pid = ~(pid > 1)", "node", 1, 7, "not"),
    ("pid = pid or 1", "node", 1, 7, "or"),
    ("pid = 1 + (M and pid)", "node", 1, 12, "and"),
    ("pid = pid is 1", "node", 1, 7, "=="),
    ("pid = lut[pid]", "node", 1, 7, "subscript"),
    ("lut[0] = pid", "node", 1, 1, "subscript"),
    ("pid = tl.x", "node", 1, 7, "attribute"),
    ("pid = (a := 1)", "node", 1, 8, ":="),
    ("pid = [1]", "node", 1, 7, "list"),
    ("pid = sum(i for i in range(3))", "call", 1, 7, "sum"),
    ("pid = [i for i in range(3)]", "node", 1, 7, "comprehension"),
    ("pid = (lambda: 1)", "node", 1, 8, "lambda"),
    ("*a, pid = 1, 2", "node", 1, 1, r"\*"),
    ("pid, a = pid", "node", 1, 10, "divmod"),
    ("pid, a = 1, 2, 3", "node", 1, 1, "2 names"),
    ("pid += 1 / 2", "node", 1, 8, "//"),
    ("pid /= 2", "node", 1, 1, "//"),
    ("pid: int", "node", 1, 1, "annotation"),
    ("pid", "node", 1, 1, "nothing"),
    ("import os", "node", 1, 1, "import"),
    ("from os import *", "node", 1, 1, "import"),
    ("def f(): pass", "node", 1, 1, "def"),
    ("class A: pass", "node", 1, 1, "class"),
    ("while True: pid = 1", "node", 1, 1, "while"),
    ("return pid", "node", 1, 1, "return"),
    ("del pid", "node", 1, 1, "del"),
    ("with a: pid = 1", "node", 1, 1, "with"),
    ("try: pid = 1\nexcept: pid = 2", "node", 1, 1, "try"),
    ("pid = 1\n  \nraise pid", "node", 3, 1, "raise"),
    ("for i in range(3):\n    break", "node", 2, 5, "break"),
    ("for i in range(3):\n    pid = 1\nelse:\n    pid = 2", "node", 4, 5, "else"),
    ("for i in range(3):\n    i = 2", "node", 2, 5, "loop variable"),
    ("for i in range(3):\n    for i in range(3):\n        pid = 1", "node", 2, 9, "loop variable"),
    ("for i in M: pid = 1", "call", 1, 10, "range"),
    ("for i in range(9, 0, -1): pid = 1", "call", 1, 22, "step"),
    ("for i in range(0, 9, M): pid = 1", "call", 1, 22, "step"),
    ("for x in range(9): pid = 1", "name", 1, 5, "loop variable"),
    ("a = 0\nfor num_xcds in range(3): a += num_xcds\npid = pid % num_xcds", "name", 2, 5, "num_xcds"),
    ("i = 0\nfor i in range(9): pid = i", "name", 2, 5, "rename"),
    ("pid = __import__('os')", "call", 1, 7, "__import__"),
    ("pid = os.system(1)", "call", 1, 7, "os.system"),
    ("pid = tl.load(1)", "call", 1, 7, "tl.load"),
    ("pid = divmod(1, 2)", "call", 1, 7, "divmod"),
    ("pid = range(2)", "call", 1, 7, "range"),
    ("pid = min(1)", "call", 1, 7, "min"),
    ("pid = min(*a)", "call", 1, 7, "min"),
    ("pid = min(1, 2, key=3)", "call", 1, 7, "position"),
    ("pid = tl.program_id(3)", "call", 1, 7, "axis"),
    ("pid = tl.program_id(True)", "call", 1, 7, "axis"),
    ("pid = __name__", "name", 1, 7, "__name__"),
    ("tl = 1", "name", 1, 1, "tl"),
    ("pid = min", "name", 1, 7, "min"),
    ("é = 1", "name", 1, 1, "ASCII"),
    ("pid = 4294967295", "limit", 1, 7, "32-bit"),
    ("pid = (1", "syntax", 1, 7, "closed"),
    ("pid = 1\n    a = 2", "syntax", 2, 0, "indent"),
    ("```python\npid = 1\n```", "syntax", 1, 1, "not Python"),
    ("pid = 1 +", "syntax", 1, 0, "not Python"),
    ("", "result", 0, 0, "pid"),
    ("a = 1", "result", 0, 0, "pid"),
    ("pid_m = 1\ny = 2", "result", 2, 1, "pid_m"),
    ("if pid:\n    t = 1\npid = t", "unassigned", 3, 7, "'t'"),
    ("for i in range(M):\n    t = 1\npid = t", "unassigned", 3, 7, "'t'"),
    ("for i in range(3):\n    pid = i\npid = i", "unassigned", 3, 7, "'i'"),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "word"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_by_name_with_a_place(text, code, line, column, word):
    with pytest.raises(LanguageError, match=word) as caught:
        parse_form(text, "c.py")
    error = caught.value
    assert (error.code, error.line) == (code, line)
    if column:
        assert error.column == column
    assert str(error).startswith("c.py:")


HOSTILE = {
    "10000 brackets": "pid = " + "(" * 10_000 + "1" + ")" * 10_000,
    "10000 minus signs": "pid = " + "-" * 10_000 + "1",
    "10000 nots": "pid = " + "not " * 10_000 + "1",
    "a sum of 5000": "pid = " + "1+" * 5000 + "1",
    "a chain of 5000 comparisons": "pid = " + "1<" * 5000 + "1",
    "3000 lines": "pid = 1\n" * 3000,
    "200 elifs": "if pid:\n    pid = 1\n" + "elif pid:\n    pid = 2\n" * 200,
    "99 nested ifs": "".join("  " * i + "if pid:\n" for i in range(99)) + "  " * 99 + "pid = 1",
    "50 nested abs": "pid = " + "abs(" * 50 + "pid" + ")" * 50,
    "nested chains": "pid = " + "(0 < " * 20 + "pid" + " < 2)" * 20,
    "a null byte": "pid = 1\0",
    "a lone surrogate": "pid = 1 # \ud800",
    "a decimal of 6000 digits": "pid = " + "9" * 6000,
    "a hexadecimal of 60000 digits": "pid = 0x" + "f" * 60_000,
    "70 KiB": "#" * 70_000,
    "a name of 50000 letters": "a" * 50_000 + " = 1",
    "nothing but newlines": "\n" * 60_000,
    "a form feed and tabs": "\f\t\tpid = 1\n\tpid = 2",
    "terminal escapes": "pid = \x1b[31m1",
    "an invalid escape": "pid = '\\d'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_and_nothing_worse(name):
    with pytest.raises(LanguageError) as caught:
        parse_form(HOSTILE[name])
    assert caught.value.code in {"syntax", "limit", "node", "name", "result"}
    assert len(str(caught.value)) < 1000
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(name for name in GRID_NAMES if "(" not in name))
def test_no_name_of_the_grid_is_a_loop_variable(name):
    with pytest.raises(LanguageError, match="name of the grid") as caught:
        parse_form(f"a = 0\nfor {name} in range(3):\n    a = a + {name}\npid_n = {name}")
    assert (caught.value.code, caught.value.line, caught.value.column) == ("name", 2, 5)


def nested_loops(depth):
    """Loops within loops, each of which leaves something for the next."""
    lines = ["a = 0", *("    " * k + f"for i{k} in range(2):" for k in range(depth)), "    " * depth + "a = a + b + i0"]
    lines.insert(1, "b = 1")
    return "\n".join([*lines, "    " * depth + "b = a ^ 1", "pid = pid ^ a ^ a"])


def test_loops_nest_eight_deep_and_no_deeper():
    assert parse_form(nested_loops(8)).results == ("pid",)
    with pytest.raises(LanguageError, match="nest at most 8 deep") as caught:
        parse_form(nested_loops(9))
    assert (caught.value.code, caught.value.line) == ("limit", 11)


def test_columns_count_in_the_text_as_given():
    with pytest.raises(LanguageError) as caught:
        parse_form("    a = 1\n    pid = 'é' + a / 2\n")
    assert (caught.value.line, caught.value.column) == (2, 11)
    assert str(caught.value).splitlines()[-1].index("^") == 4 + 10
