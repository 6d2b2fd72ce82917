"""Loads a kernel from its file, and says which source files that took. For workers: it runs what the file holds."""

from __future__ import annotations

import hashlib
import importlib.util
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any


def load_function(path: str, function: str) -> Any:
    """Return a module-level object of a file, with its folder on the import path as if the file had been run.

    Raises
    ------
    AttributeError
        If the file has no such name.
    """
    sys.path.insert(0, str(Path(path).resolve().parent))
    name = "kernel_" + hashlib.sha256(str(path).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AttributeError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise AttributeError(f"{path} has no {function!r}")
    return getattr(module, function)


def constant(value: Any) -> Any:
    """Return a constexpr as the kernel gets it: text such as ``tl.float32`` is a part of the language."""
    if isinstance(value, str) and value.startswith("tl."):
        return getattr(sys.modules["triton.language"], value[3:])
    return value


def own_files() -> dict[str, str]:
    """SHA-256 of each imported Python file that no package manager owns, by path."""
    owned = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    owned |= {*site.getsitepackages(), site.getusersitepackages()}
    roots = tuple(str(Path(place).resolve()) for place in owned)
    found = {}
    for module in list(sys.modules.values()):
        where = getattr(module, "__file__", None)
        if where and where.endswith(".py") and not str(Path(where).resolve()).startswith(roots):
            found[where] = digest(where)
    return found


def digest(path: str | Path) -> str:
    """SHA-256 of a file; empty where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
