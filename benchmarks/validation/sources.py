"""A digest of what a prediction depends on: code without docstrings, followed through imports, and tables it reads."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from swizzle_sim.workload.kernels import GROUP, registered

FOLLOWED = ("xcd_model", __name__.partition(".")[0])
TABLES = {f"{__package__}.workloads.h200": "../data/machine/h200_stencil_code.csv"}  # from the module's folder
IDLE = (*("xcd_model.analysis.bounds", "xcd_model.errors", "xcd_model.spec.modes"),)


@lru_cache
def digest_of(*modules: str) -> str:
    """Sixteen hexadecimal digits that change with ``modules``, what they import from this project, and its tables."""
    digest = hashlib.sha256()
    for module in modules_behind(*modules):
        path = Path(_path(module) or "")
        digest.update(module.encode() + b"\0" + _read(_text(path)).code)
        if module in TABLES:
            digest.update((path.parent / TABLES[module]).read_bytes())
    return digest.hexdigest()[:16]


def kernel_modules(kernel: str) -> tuple[str, ...]:
    """Module of a kernel of the registry, by its entry point; none where no kernel has this name."""
    found = registered(GROUP)
    return (found[kernel].module,) if kernel in found else ()


def modules_behind(*modules: str) -> list[str]:
    """``modules`` and all that they import from this project, sorted.

    Only `FOLLOWED` packages are followed, `swizzle_sim` is not: of it, what a prediction runs is among the arguments.
    Modules of `IDLE` take no part in a count.
    """
    todo, seen = list(modules), set()
    while todo:
        module = todo.pop()
        if module in seen or module in IDLE:
            continue
        seen.add(module)
        path = _path(module)
        if path is None:
            continue
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        imported = _read(_text(path)).imported(package)
        todo += sorted(name for name in imported if name.split(".")[0] in FOLLOWED)
    return sorted(module for module in seen if _path(module))


@lru_cache
def _path(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(found.origin) if found and found.origin and found.origin.endswith(".py") else None


def _text(path: Path) -> str:
    """Source of a module, and of the stub beside a package that imports its names on first use."""
    return "\n".join(one.read_text(encoding="utf-8") for one in (path, path.with_suffix(".pyi")) if one.exists())


class _Source(NamedTuple):
    """What a text imports, as (dots, module, names), and its code without docstrings."""

    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    code: bytes

    def imported(self, package: str) -> list[str]:
        """Modules, and names that may be modules, for a text that stands in ``package``."""
        found = []
        for dots, module, names in self.imports:
            base = ".".join(part for part in (package if dots else "", module) if part)
            found += [base, *(f"{base}.{name}" for name in names)]
        return found


@cache
def _read(text: str) -> _Source:
    """A text parsed, once: the digests of two kernels have most of their modules in common."""
    tree, imports = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return _Source(tuple(imports), ast.dump(tree).encode())
