"""Files of modules and packages, found without importing anything."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

from xcd_model.errors import CaptureError


def module_file(where: Path) -> Path | None:
    """File of a module or package, its folder where a package has no file, None where there is nothing."""
    for found in (where / "__init__.py", where.with_name(f"{where.name}.py")):
        if found.is_file():
            return found
    return where if where.is_dir() and any(where.rglob("*.py")) else None


def file_of_module(name: str) -> Path:
    """File of ``package.module``, found without importing anything.

    Raises
    ------
    CaptureError
        If there is none.
    """
    parts = name.split(".")
    places = [Path(one).joinpath(*parts) for one in sys.path]
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(parts[0])
        places += [Path(one).joinpath(*parts[1:]) for one in ((spec and spec.submodule_search_locations) or ())]
    for found in map(module_file, places):
        if found is not None and found.is_file():
            return found
    raise CaptureError(
        f"{name!r} is neither a Python file nor an installed module: write FILE.py:FUNCTION or package.module:FUNCTION",
        code="declaration",
    )


def module_name(path: Path) -> str:
    """Dotted name of the module of a file, as far as its folders are packages."""
    parts = [path.stem] if path.name != "__init__.py" else []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or path.stem
