"""What a slice ran, as text: the part of a package that one kernel needs, which is imported without the package.

package/aiter/ops/triton/utils/pid_preprocessing.py    the functions that the kernel calls, and what they need
package/aiter/__init__.py                              empty: nothing of it was read
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterable
from pathlib import Path

from swizzle_sim.capture.sliced_module import SlicedModule, sliced_files, sliced_module

FUTURE = "from __future__ import annotations\n"


def text_of(module: SlicedModule) -> str:
    """Statements that a module has run so far, in the order of its file."""
    ran = sorted(module.ran, key=lambda one: (one.lineno, one.col_offset))
    found = [_text(stmt, module) for stmt in ran]
    if any(map(module.is_jit, ran)) and not any("triton.language" in one for one in found):
        found.insert(0, "import triton.language as tl")  # Triton's interpreter wants to see it
    return (FUTURE if module.annotates_later else "") + "".join(f"{one}\n\n" for one in found)


def dotted_package(path: Path) -> str:
    """Package that a file is a module of, from the folder that imports start from; empty for none."""
    return ".".join(_within(path).parts[:-1])


def package_files(arch: str, kernel: Path, texts: Iterable[Path]) -> dict[str, str]:
    """Text of every file that was read but a kernel's own and others, by its path from where imports start.

    Every folder has an ``__init__.py``: a package that is installed does not come before one of these.
    """
    without = {kernel, *texts}
    read = [path for path in sliced_files() if path not in without]
    found = {_within(path).as_posix(): text_of(sliced_module(path, arch)) for path in read}
    folders = {parent for name in found for parent in Path(name).parents} | set(_within(kernel).parents)
    folders.discard(Path("."))
    return {**{(folder / "__init__.py").as_posix(): "" for folder in folders}, **found}


def _within(path: Path) -> Path:
    """Path of a file from the folder that imports start from: of ``sys.path``, else the first that is no package."""
    roots = [root for root in map(Path, filter(None, sys.path)) if path.is_relative_to(root)]
    root = max(roots, key=lambda one: len(one.parts), default=path.parent)
    if not roots:
        while (root / "__init__.py").is_file():
            root = root.parent
    return path.relative_to(root)


def _text(stmt: ast.stmt, module: SlicedModule) -> str:
    if isinstance(stmt, ast.FunctionDef) and (module.annotates_later or module.is_jit(stmt)):
        decorators = "".join(f"@{ast.unparse(one)}\n" for one in stmt.decorator_list)
        own = copy.copy(stmt)
        own.decorator_list = []
        return decorators + (ast.get_source_segment(module.source_text, own) or ast.unparse(own))
    if isinstance(stmt, ast.Import | ast.ImportFrom) and not module.finds(stmt):
        return f"try:\n    {ast.unparse(stmt)}\nexcept ImportError:  # stood in for, so nothing needs it\n    pass"
    if module.annotates_later or isinstance(stmt, ast.ClassDef):
        return ast.unparse(stmt)
    return ast.unparse(ast.fix_missing_locations(_Unannotated(module).visit(copy.deepcopy(stmt))))


class _Unannotated(ast.NodeTransformer):
    """Leaves annotations out, which the slice did not work out; not those of Triton's functions, which it reads."""

    def __init__(self, module: SlicedModule):
        self._module = module

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without the types of its parameters and of what it returns."""
        if self._module.is_jit(node):
            return node
        self.generic_visit(node)
        node.returns = None
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if one is not None:
                one.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An assignment, or nothing where it says a type only."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def texts(paths: Iterable[str], path: Path, function: str, arch: str) -> list[str]:
    """For each text of a kernel's file, its part that the function needs; what they read of other files is read then.

    Parameters
    ----------
    paths : iterable of str
        Files with the texts.
    path : Path
        File that they are the text of.
    function, arch : str
        Of Triton, and the GPU that is there.
    """
    found = []
    for one in paths:
        module = sliced_module(path, arch, Path(one))
        jit = getattr(module.module, function)
        getattr(jit, "cache_key", None)  # looks up all that the function and those that it calls read
        found.append(text_of(module))
    return found
