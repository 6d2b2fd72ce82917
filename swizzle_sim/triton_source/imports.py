"""Functions that a file takes from others of its own tree: looked up in their text, never imported."""

from __future__ import annotations

import ast
import contextlib
import copy
from functools import cached_property
from pathlib import Path
from typing import ClassVar
from weakref import WeakKeyDictionary

from swizzle_sim.triton_source.c_preprocessor import FINDERS, Headers, Macro, called_in, defined_in
from swizzle_sim.triton_source.source_file import SourceFile, read_source
from xcd_model.errors import LanguageError

_ELSEWHERE = ("triton", "torch", "numpy", "math", "typing", "jax", "tl")  # no files of the user's tree
_DEEPEST = 5  # files that hand a name on
_FILES: dict[tuple[Path, frozenset[tuple[str, Macro]]], SourceFile | None] = {}  # read in this process


class Imports:
    """What the imported names of one file stand for."""

    _known: ClassVar[WeakKeyDictionary[SourceFile, Imports]] = WeakKeyDictionary()

    def __init__(self, source: SourceFile):
        self.source = source

    @classmethod
    def of(cls, source: SourceFile) -> Imports:
        """Imports of a file, made once."""
        if source not in cls._known:
            cls._known[source] = cls(source)
        return cls._known[source]

    def resolve(self, name: str, left: int = _DEEPEST) -> tuple[SourceFile, str] | None:
        """File and name of the function that a name, or ``module.name``, stands for; None if it cannot be found."""
        if name in self.source.every_function:
            return self.source, name
        if name in self.source.named:
            return self.source, self.source.named[name].name
        first, _, rest = name.partition(".")
        if self.source.in_c:
            return self._included(name) if left == _DEEPEST else None
        known = self._names.get(first)
        if known is None or not left:
            return self._starred(name, left) if left else None
        level, module, original = known
        steps = [*(module.split(".") if module else []), *([original] if original else []), *rest.split(".")]
        steps = [step for step in steps if step]
        for cut in range(len(steps) - 1, -1, -1):
            found = self._read(level, steps[:cut])
            if found is not None:
                return Imports.of(found).resolve(".".join(steps[cut:]), left - 1)
        return None

    def file_of(self, name: str) -> SourceFile | None:
        """File of the user's tree from which a file takes a name that is no function; None where there is none."""
        level, module, original = self._names.get(name, (0, "", ""))
        return self._read(level, [one for one in module.split(".") if one]) if original and (module or level) else None

    @cached_property
    def _names(self) -> dict[str, tuple[int, str, str]]:
        """Level, module and original name of each imported name; the original is empty for a module."""
        found: dict[str, tuple[int, str, str]] = {}
        checked = {id(one) for node in ast.walk(self.source.tree) if isinstance(node, ast.If)
                   and "TYPE_CHECKING" in ast.unparse(node.test) for one in node.body}  # fmt: skip
        for node in ast.walk(self.source.tree):
            if id(node) in checked:  # seen by a type checker alone
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _ELSEWHERE:
                for one in node.names:
                    found[one.asname or one.name] = (node.level, node.module or "", one.name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    if one.name.partition(".")[0] not in _ELSEWHERE:
                        known = one.name if one.asname else one.name.partition(".")[0]
                        found[one.asname or known] = (0, known, "")
        return found

    def _starred(self, name: str, left: int) -> tuple[SourceFile, str] | None:
        """Function that ``from module import *`` brings."""
        homes = (Imports.of(found).resolve(name, left - 1) for found in self.star_files)
        return next((home for home in homes if home is not None), None)

    @cached_property
    def star_files(self) -> list[SourceFile]:
        """Files of the user's tree from which a file takes every name."""
        stars = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.ImportFrom)
                 and node.names[0].name == "*" and (node.module or "").partition(".")[0] not in _ELSEWHERE]  # fmt: skip
        files = [self._read(node.level, node.module.split(".") if node.module else []) for node in stars]
        return [one for one in files if one is not None]

    def _included(self, name: str) -> tuple[SourceFile, str] | None:
        """Function of a header of the user's tree, or of one that it includes."""
        return included(name, getattr(self.source.tree, "headers", {}))

    def _read(self, level: int, steps: list[str]) -> SourceFile | None:
        """Module in the folder of the file, or in one above it; None where there is none that can be read."""
        here = Path(self.source.filename).resolve().parent
        folders = [here, *here.parents] if level == 0 else [here, *here.parents][level - 1 : level]
        for folder in folders:
            base = folder.joinpath(*steps)
            for path in ([base.with_suffix(".py")] if steps else []) + [base / "__init__.py"]:
                if path.is_file() and path != Path(self.source.filename).resolve():
                    return parsed(path)
        return None


def parsed(path: Path, given: frozenset[tuple[str, Macro]] = frozenset()) -> SourceFile | None:
    """File of the user's tree, read once among some macros; None where it cannot be, or is being read."""
    if (path, given) not in _FILES:
        _FILES[path, given] = None
        with contextlib.suppress(LanguageError):
            _FILES[path, given] = read_source(path, given)
    return _FILES[path, given]


def included(name: str, headers: Headers) -> tuple[SourceFile, str] | None:
    """Function of a header, or of one that it includes."""
    homes: list[SourceFile] = []
    for path, context in headers.items():
        wanted = defined_in(path) if homes else called_in(path)
        found = parsed(path, context.given) if name.rpartition(".")[2] in wanted else None
        homes += [found] if found is not None and name in found.every_function else []
    functions = [one.every_function[name] for one in homes]
    if len({ast.dump(one) for one in functions}) < 2:
        return (homes[0], name) if homes else None
    several = copy.copy(functions[0])  # of two namespaces, or for other types
    several.is_one_of_several = True  # type: ignore[attr-defined]
    several.is_standard = all(getattr(one, "is_standard", False) for one in functions)  # type: ignore[attr-defined]
    return SourceFile(homes[0].filename, homes[0].text, ast.Module([several], [])), name


def _header_function(name: str, headers: Headers) -> ast.FunctionDef | None:
    home = included(name, headers)
    return home[0].every_function[name] if home is not None else None


FINDERS.append(_header_function)  # for the reader of C, which every file is read with
