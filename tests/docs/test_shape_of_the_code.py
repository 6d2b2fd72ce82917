"""Do functions of the source tree stay small enough to be read at one sitting?

Arguments that belong together are one dataclass; of a command with `swizzle_sim.cli.arguments.grouped`.
"""

import ast

import pytest

from tests.docs.typed import ROOT

PACKAGES = ("xcd_model", "swizzle_sim", "agent", "benchmarks")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MOST_LINES_OF_A_FUNCTION = 60  # without its docstring
MOST_ARGUMENTS = 8


def functions(source):
    """Every function of a source text: methods and nested ones too."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def arguments(function):
    """Names of its arguments but for ``self`` and ``cls``; ``*args`` and ``**settings`` are one each."""
    given = function.args
    several = [one for one in (given.vararg, given.kwarg) if one is not None]
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *several)]
    return [name for name in names if name not in ("self", "cls")]


def lines(function):
    """How many lines it has without its docstring."""
    docstring = ast.get_docstring(function, clean=False) or ""
    return function.end_lineno - function.lineno + 1 - (docstring.count("\n") + 1)


def is_triton_kernel(function):
    """Whether it runs on a GPU: Triton passes pointers, sizes and strides one by one, and has no record of them."""
    return any(ast.unparse(decorator) in ("triton.jit", "jit") for decorator in function.decorator_list)


def is_suite_constructor(path, function):
    """Whether it makes a kernel of the suite: its arguments are the sizes that people type, ``conv_2d(N=8, H=56)``."""
    return path.parent == ROOT / "benchmarks" / "suite" and function.name == path.stem


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_every_package_is_looked_at():
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(PACKAGES)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_functions_of_a_file_are_short(path):
    source = path.read_text(encoding="utf-8")
    for function in functions(source):
        where = f"{name_of(path)}:{function.lineno}: {function.name}"
        assert lines(function) <= MOST_LINES_OF_A_FUNCTION, f"{where} has {lines(function)} lines"
        if not is_triton_kernel(function) and not is_suite_constructor(path, function):
            names = arguments(function)
            assert len(names) <= MOST_ARGUMENTS, f"{where} has {len(names)} arguments: {', '.join(names)}"


def test_arguments_of_all_kinds_are_counted():
    (method,) = functions('class A:\n def f(self, a, /, b, *args, c=1, **more):\n  """Two\n  lines."""\n  return a\n')
    assert arguments(method) == ["a", "b", "c", "args", "more"]
    assert lines(method) == 2
