"""What there is to check in a file: its text, its marked functions, its Triton functions."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swizzle_sim.testing.directive import Options, is_directive, read_directives
from swizzle_sim.triton_source.source_file import SourceFile, read_source
from xcd_model.errors import LanguageError

TEXTS = (".txt", ".swizzle")
SUFFIXES = (*TEXTS, ".py")  # of what is read in a folder


@dataclass(frozen=True)
class Target:
    """One thing to check.

    Parameters
    ----------
    path : Path
    kind : {"text", "triton", "function"}
    name : str
        ``file`` or ``file::function``.
    function : str
        Empty for a text.
    line : int
        Where it begins, counted from 1.
    text : str
        Of a text.
    marked : bool
        Whether it has to hold: a text, or a function with a ``# swizzle-check`` comment. A Triton function without
        one is checked if it can be, and skipped if not.
    options : Options
    """

    path: Path
    kind: str
    name: str
    function: str = ""
    line: int = 1
    text: str = ""
    marked: bool = True
    options: Options = field(default_factory=Options)

    def imported(self) -> Callable[..., Any]:
        """Plain Python function, its file imported: it is the caller's own code."""
        name = f"swizzle_check_{self.path.stem}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            sys.modules.pop(name, None)
        return getattr(module, self.function)


def targets_of(path: Path) -> list[Target]:
    """Return what there is to check in one file, in text order.

    Raises
    ------
    LanguageError
        If the file cannot be read, or is neither text nor Python.
    OptionError
        If a ``# swizzle-check:`` comment cannot be read.
    """
    if path.suffix == ".py":
        return _of_python(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LanguageError(f"not UTF-8 text (byte {error.start})", filename=str(path), code="file") from None
    except OSError as error:
        raise LanguageError(f"cannot be read ({error.strerror})", filename=str(path), code="file") from None
    options = read_directives(enumerate(text.splitlines(), 1), str(path))
    return [] if options.off else [Target(path, "text", path.name, text=text, options=options)]


def is_there(path: str | Path) -> bool:
    """Whether there is a file or folder; a text that no path can be is none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _of_python(path: Path) -> list[Target]:
    source = read_source(path)
    found = []
    for node in sorted(source.functions.values(), key=lambda one: one.lineno):
        lines = _above(node, source)
        marked = any(is_directive(line) for _, line in lines)
        options = read_directives(lines, str(path))
        kind = "triton" if node.name in source.kernels else "function"
        if options.off or (kind == "function" and not marked):
            continue
        name = f"{path.name}::{node.name}"
        found.append(Target(path, kind, name, node.name, node.lineno, "", marked, options))
    return found


def _above(node: ast.FunctionDef, source: SourceFile) -> list[tuple[int, str]]:
    """Comment lines right above a function and among its decorators."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    start = first - 1
    while start and source.lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return [(k + 1, source.lines[k]) for k in range(start, node.lineno - 1) if is_directive(source.lines[k])]
