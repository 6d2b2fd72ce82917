"""Does the code of the machine keep to the limits of the house style?"""

import ast
from pathlib import Path

import pytest

import xcd_model

FILES = sorted(Path(str(xcd_model.__file__)).parent.rglob("*.py"))
MOST_ARGUMENTS, MOST_LINES, MOST_LINES_OF_A_KERNEL = 8, 400, 60


def functions(path):
    """Functions of a file, with their arguments but for ``self`` and ``cls``, and their lines without a docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            words = (ast.get_docstring(node, clean=False) or "").count("\n") + 1
            yield (
                node,
                [name for name in names if name not in ("self", "cls")],
                node.end_lineno - node.lineno + 1 - words,
            )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_and_its_functions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for node, arguments, lines in functions(path):
        assert len(arguments) <= MOST_ARGUMENTS, f"{node.name}: {arguments}"
        assert lines <= MOST_LINES_OF_A_KERNEL, node.name
