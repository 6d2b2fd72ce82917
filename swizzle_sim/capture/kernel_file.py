"""Runs the file of a kernel and lists the source files that took part: for workers, since it executes user code."""

from __future__ import annotations

import hashlib
import importlib.util
import site
import sys
import sysconfig
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from swizzle_sim.capture.block_pointers import give_block_pointers
from swizzle_sim.capture.sliced_module import forget_sliced, sliced_files, sliced_module
from xcd_model.errors import CaptureError

LOADED = "swizzle_sim_loaded_"  # prefix of the module names of users' files
JITTED = ("JITFunction", "InterpretedFunction")
INSTALLED = ("site-packages", "dist-packages")
LANGUAGE_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "bool": "int1",
                  "fp8e4": "float8e4nv", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp8e4b8": "float8e4b8",
                  "fp8e5b16": "float8e5b16"}  # fmt: skip


def forget_files() -> None:
    """Forget the files that `load_function` ran: it runs them anew."""
    forget_sliced()
    for name in [name for name in sys.modules if name.startswith(LOADED)]:
        del sys.modules[name]


def load_file(path: Path, beside: Path | None = None) -> Any:
    """Module of a Python file, run once; it finds what lies in its folder, or beside another file."""
    if not path.is_file():
        raise CaptureError(f"{path}: no such file", code="declaration")
    name = f"{LOADED}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    folder = str((beside or path).parent)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    try:
        # not by `exec_module`: it takes kept bytecode for a file that was changed within a second to the same length
        exec(loader.source_to_code(loader.get_data(str(path)), str(path)), module.__dict__)
    except (Exception, SystemExit) as error:
        remedy = ""
        if isinstance(error, ModuleNotFoundError):
            files = [one.filename for one in traceback.extract_tb(error.__traceback__) if one.filename.endswith(".py")]
            where = Path(files[-1] if files else path).name  # of the innermost frame that is no library's
            remedy = f'; declare the kernel without importing its file: Kernel("{where}:FUNCTION", ...)'
        raise CaptureError(f"{line_of(error, path)}: {words_of(error)}{remedy}", code="declaration") from error
    return module


def line_of(error: BaseException, path: Path) -> str:
    """``file:line`` of the innermost frame in a file, of an error or what caused it."""
    place = str(path.name)
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{Path(error.filename or place).name}:{error.lineno}"
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == str(path) and frame.lineno:
            place = f"{path.name}:{frame.lineno}"
    return place


def words_of(error: BaseException) -> str:
    """Type and message of an error."""
    text = str(error) or "no message"
    return text if isinstance(error, CaptureError) else f"{type(error).__name__}: {text}"


def load_function(path: str | Path, function: str, sliced_for: str = "", text_from: str | Path = "") -> Any:
    """``@triton.jit`` function of a file, under its decorators; ``text_from`` is read in the file's place."""
    give_block_pointers()
    where, text = Path(path).resolve(), Path(text_from).resolve() if text_from else None
    if sliced_for:
        found = sliced_module(where, sliced_for, text).function(function)
    else:
        found = getattr(load_file(text or where, where), function, None)
    if found is None:
        raise CaptureError(f"{where.name} holds no function {function}", code="declaration")
    while type(found).__name__ not in JITTED:
        if not hasattr(found, "fn"):
            raise CaptureError(f"{where.name}: {function} is no @triton.jit function", code="declaration")
        found = found.fn
    return found


def constant(value: Any) -> Any:
    """Return a constexpr as the kernel gets it: text such as ``tl.float32`` is a part of the language."""
    if isinstance(value, str) and value.startswith("tl."):
        return getattr(sys.modules["triton.language"], value[3:])
    return value


def own_files() -> dict[str, str]:
    """SHA-256 of each imported Python file that belongs to no installed package, by path."""
    paths = sysconfig.get_paths()
    roots = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots |= {*site.getsitepackages(), site.getusersitepackages()}
    installed = [Path(root).resolve() for root in roots]
    found = {str(path): digest(path) for path in sliced_files()}
    for module in list(sys.modules.values()):
        where = getattr(module, "__file__", None)
        if not where or not where.endswith(".py") or not Path(where).is_file():
            continue
        path = Path(where).resolve()
        if not any(path.is_relative_to(root) for root in installed) and not set(INSTALLED) & set(path.parts):
            found[str(path)] = digest(path)
    return found


def digest(path: str | Path) -> str:
    """SHA-256 of a file; empty where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
