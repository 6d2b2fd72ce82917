"""What a slice ran, as text: the part of a package that one kernel needs, which is imported without the package.

Of ``aiter/ops/triton/utils/pid_preprocessing.py`` there are the functions that the kernel calls and what they need; of
``aiter/__init__.py``, of which nothing was read, nothing. `answer` runs in a process with Triton and the user's files.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from swizzle_sim.capture.sliced_module import SlicedModule, sliced_files, sliced_module
from xcd_model.errors import CaptureError

FUTURE = "from __future__ import annotations\n"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request with ``texts``, ``path``, ``function`` and ``arch``."""
    places = [Path(one).resolve() for one in request["texts"]]
    try:
        return sliced(places, Path(request["path"]).resolve(), request["function"], request["arch"])
    except CaptureError as error:
        return {"error": str(error)}


def sliced(places: Iterable[Path], path: Path, function: str, arch: str) -> dict[str, Any]:
    """Part of a kernel's file, in several versions, that its function needs, and what that imports."""
    root = _start_of(path)
    versions = [sliced_module(path, arch, place) for place in places]
    for module in versions:
        module.roots.add(root)
        jit = getattr(module.module, function)
        getattr(jit, "cache_key", None)  # looks up all that the function and those that it calls read
    _read_all_imports()
    return {
        "texts": [text_of(module) for module in versions],
        "package": _package_files(path.relative_to(root), versions),
        "dotted": ".".join(path.relative_to(root).parts[:-1]),
    }


def text_of(module: SlicedModule) -> str:
    """Statements that a module has run so far, in the order of its file."""
    ran = sorted(module.ran, key=lambda one: (one.lineno, one.col_offset))
    found = [_text(stmt, module) for stmt in ran]
    if any(map(module.is_jit, ran)) and not any("triton.language" in one for one in found):
        found.insert(0, "import triton.language as tl")  # Triton's interpreter wants to see it
    return (FUTURE if module.annotates_later else "") + "".join(f"{one}\n\n" for one in found)


def _read_all_imports() -> None:
    """Read what the statements that ran import where another GPU takes another branch, and what that imports."""
    seen: set[int] = set()
    left = True
    while left:
        left = False
        for module in list(sliced_files().values()):
            for one in (node for stmt in list(module.ran) for node in ast.walk(stmt)):
                if isinstance(one, ast.Import | ast.ImportFrom) and id(one) not in seen:
                    seen.add(id(one))
                    left = True
                    with contextlib.suppress(Exception):  # what it needs is not here, so it is not there either
                        module.read_imports(one)


def _package_files(kernel: Path, versions: Iterable[SlicedModule]) -> dict[str, str]:
    """Text of every file that was read but versions of the kernel's own.

    Every folder has an ``__init__.py``: a package that is installed does not come before one of these.
    """
    found: dict[str, str] = {}
    for path, module in sliced_files().items():
        if module not in versions:
            for root in filter(path.is_relative_to, module.roots):
                found[path.relative_to(root).as_posix()] = text_of(module)
    folders = {parent for name in (*found, kernel.as_posix()) for parent in Path(name).parents} - {Path(".")}
    return {**{(folder / "__init__.py").as_posix(): "" for folder in folders}, **found}


def _start_of(path: Path) -> Path:
    """Folder that imports of a kernel's file start from: of ``sys.path``, else the first that is no package."""
    roots = [root for root in map(Path, filter(None, sys.path)) if path.is_relative_to(root)]
    root = max(roots, key=lambda one: len(one.parts), default=path.parent)
    if not roots:
        while (root / "__init__.py").is_file():
            root = root.parent
    return root


def _text(stmt: ast.stmt, module: SlicedModule) -> str:
    if isinstance(stmt, ast.FunctionDef) and (module.annotates_later or module.is_jit(stmt)):
        decorators = "".join(f"@{ast.unparse(one)}\n" for one in stmt.decorator_list)
        own = copy.copy(stmt)
        own.decorator_list = []
        return decorators + (ast.get_source_segment(module.source_text, own) or ast.unparse(own))
    return ast.unparse(ast.fix_missing_locations(_AsRun(module).visit(copy.deepcopy(stmt))))


class _AsRun(ast.NodeTransformer):
    """Statements as the slice ran them: annotations that it did not work out left out, stand-ins imported if there."""

    def __init__(self, module: SlicedModule):
        self._module, self._tried = module, False

    def _import(self, node: ast.Import | ast.ImportFrom) -> ast.AST:
        if self._tried or self._module.finds(node):
            return node
        passes = ast.ExceptHandler(ast.Name("ImportError", ast.Load()), None, [ast.Pass()])
        return ast.copy_location(ast.Try([node], [passes], [], []), node)

    visit_Import = visit_ImportFrom = _import

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Imports that are tried fail as they would."""
        before, self._tried = self._tried, True
        self.generic_visit(node)
        self._tried = before
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """As it is: Triton reads the annotations of its aggregates."""
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without the types of its parameters and of what it returns; Triton reads those of its own."""
        if self._module.annotates_later or self._module.is_jit(node):
            return node
        node.returns = None
        for one in ast.walk(node.args):
            if isinstance(one, ast.arg):
                one.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An assignment, or nothing where it says a type only."""
        if self._module.annotates_later:
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)
