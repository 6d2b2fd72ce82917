"""Random forms of the closed language, for properties."""

from functools import cache

from hypothesis import strategies as st

from swizzle_sim.language.ir import (
    COMPARISONS,
    INT_OPS,
    Assign,
    Binary,
    Compare,
    Connect,
    For,
    Form,
    If,
    Int,
    Name,
    Not,
    Select,
    Unary,
)

INPUTS = ("M", "num_pids", "num_xcds", "pid")
VARIABLES = ("a", "b", "c")

# Small numbers mostly, so that most forms run to the end; the edges of 32 bits sometimes.
integers = st.one_of(
    st.integers(-4, 40).map(Int),
    st.sampled_from((2**31 - 1, -(2**31), -1, 1 << 16, 31, 32)).map(Int),
)


@cache
def expressions(names, depth=2):
    """Integer expressions over ``names``."""
    leaf = st.one_of(st.sampled_from(names).map(Name), integers)
    if depth == 0:
        return leaf
    part = expressions(names, depth - 1)
    return st.one_of(
        leaf,
        st.builds(Binary, st.sampled_from(INT_OPS), part, part),
        st.builds(Unary, st.sampled_from(("-", "~")), part),
        st.builds(Select, conditions(names, depth - 1), part, part),
    )


@cache
def conditions(names, depth=2):
    """Conditions over ``names``."""
    part = expressions(names, max(depth - 1, 0))
    compare = st.builds(Compare, st.sampled_from(COMPARISONS), part, part)
    if depth <= 0:
        return compare
    inner = conditions(names, depth - 1)
    return st.one_of(compare, st.builds(Not, inner), st.builds(Connect, st.sampled_from(("and", "or")), inner, inner))


def assignments(names):
    """Assignments to a variable, or to ``pid`` itself."""
    return st.builds(Assign, st.sampled_from((*VARIABLES, "pid")), expressions(names), st.integers(1, 9))


@cache
@st.composite
def statements(draw, names, depth=2):
    """One statement; a loop's variable is named after its depth, so that no body assigns it."""
    kind = draw(st.sampled_from(("assign", "assign", "if", "for"))) if depth else "assign"
    if kind == "assign":
        return draw(assignments(names))
    if kind == "if":
        body = st.lists(statements(names, depth - 1), max_size=2).map(tuple)
        return If(draw(conditions(names)), draw(body), draw(body))
    var = f"i{depth}"
    body = draw(st.lists(statements((*names, var), depth - 1), min_size=1, max_size=2).map(tuple))
    stop = draw(st.one_of(st.integers(-2, 6).map(Int), st.just(Name("num_xcds")), st.just(Name("c"))))
    if stop == Name("c"):
        stop = Binary("min", stop, Int(8))  # so that no loop runs into the step limit
    return For(var, Int(draw(st.integers(-3, 3))), stop, draw(st.integers(1, 3)), body)


@st.composite
def forms(draw):
    """Whole candidates: three variables, some statements, and a ``pid`` brought near the grid."""
    names = INPUTS + VARIABLES
    start = [Assign(name, draw(st.one_of(integers, st.sampled_from(INPUTS).map(Name)))) for name in VARIABLES]
    middle = draw(st.lists(statements(names), min_size=1, max_size=4))
    last = Assign("pid", draw(expressions(names)))
    return Form((*start, *middle, last), ("pid",), INPUTS)
