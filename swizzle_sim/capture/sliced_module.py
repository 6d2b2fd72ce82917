"""A kernel's file of which only that is run which the kernel needs, so that its package need not be importable.

Of the file's top level the statements run that define the function, the globals and the helpers that it reads, and
what these need; modules that they import are found next to the file or on ``sys.path`` and sliced in their turn.
Packages that are not there are stood in for, torch always; the standard library, numpy and Triton are themselves.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from swizzle_sim.capture.recorder import Source
from swizzle_sim.capture.stand_ins import StandIn, driver_for, module_of, torch_for
from swizzle_sim.triton_source.source_file import SourceFile, opened, read_source
from swizzle_sim.triton_source.top_level_slice import LAST, TopLevelSlice, reads_of, undefined
from xcd_model.errors import CaptureError, LanguageError

INDUCTOR = "torch._inductor.runtime.triton_helpers"  # Triton's code, which the kernels that Inductor writes call
REAL = {"triton", "numpy", "packaging", "yaml", *sys.stdlib_module_names}
LATER_ANNOTATIONS = __future__.annotations.compiler_flag
_MODULES: dict[Path, SlicedModule] = {}


class SlicedModule:
    """Module of a file; what is asked of it is defined at the first time."""

    def __init__(self, path: Path, arch: str, text_from: Path | None = None):
        self.module = ModuleType(module_name(path))  # of the plain type, since Triton takes nothing else for one
        self._path, self._arch, self._file = path, arch, str(text_from or path)
        self._run: set[tuple] = set()
        self._lazy: Any = None
        self._source = _source(text_from or path)
        self._slice = _slice_of(text_from or path, _stamp(text_from or path))
        self.annotates_later = any(
            isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in self._source.tree.body
        )
        self._decorated: dict[str, list[ast.expr]] = {}  # decorators that are not run, by function
        self._tries = [
            (stmt.lineno, stmt.body[-1].end_lineno or 0)
            for stmt in ast.walk(self._source.tree)
            if isinstance(stmt, ast.Try)
        ]
        vars(self.module).update(
            __file__=self._file,
            __builtins__={**vars(builtins), "__import__": self._import},
            __getattr__=self._get,
            _sliced=self,
        )

    def _get(self, name: str) -> Any:
        own = vars(self.module)
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._slice.names:
            self._define(name)
        if name not in own:  # or is being defined, where a package imports from itself
            own[name] = self._elsewhere(name)
        return own[name]

    def has(self, name: str) -> bool:
        """Whether a name is bound at the top level here, as far as that is known without running anything."""
        return name in self._slice.names or self._submodule(name) is not None

    def function(self, name: str) -> Any:
        """A function of the file."""
        try:
            return getattr(self.module, name)
        except AttributeError:
            why = undefined(self._source.tree, name)
            raise CaptureError(f"{self._path.name}{why}", code="declaration") from None

    def is_jit(self, stmt: ast.AST) -> bool:
        """Whether a statement defines a function of Triton."""
        return isinstance(stmt, ast.FunctionDef) and self._source.aliases.jit_decorator(stmt) is not None

    def other_decorators(self, function: str) -> list[ast.expr]:
        """Decorators of a Triton function that were not run: autotuners, heuristics and whatever wraps them."""
        return self._decorated.get(function, [])

    def value_of(self, expression: ast.expr) -> Any:
        """Value of an expression in the file, such as a decorator's argument."""
        now, later = reads_of(expression)
        self._define(*now, line=expression.lineno)
        self._define(*later)
        code = compile(ast.Expression(expression), self._file, "eval", LATER_ANNOTATIONS)
        return self._located(
            expression, lambda: eval(code, vars(self.module))
        )  # the user's own file, as an import would

    def _define(self, *wanted: str, line: int = LAST) -> None:
        """Run what names need where they are read."""
        body, needed = self._slice.of(wanted, line)
        own = vars(self.module)
        for star in self._slice.stars:
            other = self._import(star.module or "", fromlist=("*",), level=star.level)
            for name in needed - self._slice.names - own.keys():
                if _has(other, name):
                    own[name] = getattr(other, name)
        for stmt in body:
            self._run_once(stmt)

    def _note(self, stmt: ast.stmt) -> bool:
        """Note a statement as run; whether it was not."""
        key = (stmt.lineno, stmt.col_offset, *sorted(self._imported(stmt)))
        new = key not in self._run
        self._run.add(key)
        return new

    def _left(self, stmt: ast.stmt) -> ast.stmt | None:
        """What of a statement has not run yet: of an ``if`` whose parts are needed one after the other the rest."""
        if not isinstance(stmt, ast.If):
            return self._undecorated(stmt) if not isinstance(stmt, ast.Pass) and self._note(stmt) else None
        then, other = ([left for one in part if (left := self._left(one))] for part in (stmt.body, stmt.orelse))
        if not then and not other:
            return None
        return ast.copy_location(ast.If(stmt.test, then or [ast.copy_location(ast.Pass(), stmt)], other), stmt)

    def _run_once(self, whole: ast.stmt) -> None:
        stmt = self._left(whole)
        if stmt is None:
            return
        # Triton reads annotations of its functions and aggregates
        reads_them = any(self.is_jit(one) or isinstance(one, ast.ClassDef) for one in ast.walk(stmt))
        later = 0 if reads_them and not self.annotates_later else LATER_ANNOTATIONS
        code = compile(ast.Module([stmt], []), self._file, "exec", later, dont_inherit=True)
        self._located(stmt, lambda: exec(code, vars(self.module)))

    def _undecorated(self, stmt: ast.stmt) -> ast.stmt:
        """Statement, of a Triton function without the decorators that are not run."""
        if not isinstance(stmt, ast.FunctionDef) or (kept := _decorators(self._source, stmt)) == stmt.decorator_list:
            return stmt
        self._decorated[stmt.name] = [one for one in stmt.decorator_list if one not in kept]
        bare = ast.FunctionDef(stmt.name, stmt.args, stmt.body, kept, stmt.returns, stmt.type_comment)
        return ast.copy_location(bare, stmt)

    @staticmethod
    def _imported(stmt: ast.stmt) -> list[str]:
        return [f"{one.name} {one.asname}" for one in getattr(stmt, "names", []) if isinstance(one, ast.alias)]

    def _located(self, node: ast.AST, run: Any) -> Any:
        try:
            return run()
        except (Exception, SystemExit) as error:
            if isinstance(error, CaptureError) and ".py:" in str(error):
                raise
            text = str(error) if isinstance(error, CaptureError) else f"{type(error).__name__}: {error}"
            line = getattr(node, "lineno", 0)
            raise CaptureError(f"{self._path.name}:{line}: {text}", code="declaration") from error

    # imports

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        """In place of ``__import__`` for this file's statements and functions."""
        top = name.partition(".")[0]
        if level:
            place = self._place(name, level)
            assert place is not None
            return self._at(place, name)
        if name in ("importlib", "importlib.metadata") or (top == "importlib" and not fromlist):
            return self._metadata() if fromlist and name == "importlib.metadata" else self._importlib(name)
        if top == "torch":
            place = self._place(INDUCTOR, 0) if name.startswith("torch._inductor") else None
            there = place is not None and module_file(place)
            found: Any = torch_for(self._arch, {INDUCTOR: self._at(place, INDUCTOR)} if place and there else {})
            for part in name.split(".")[1:] if fromlist else ():
                found = getattr(found, part)
            return found
        if top in REAL:
            with contextlib.suppress(ImportError):
                return builtins.__import__(name, None, None, fromlist, 0)
        place = self._place(name if fromlist else top, 0)
        return self._missing(name, fromlist) if place is None else self._at(place, name)

    def _place(self, name: str, level: int) -> Path | None:
        """Where a module would be; None for a package that is not there."""
        parts = [one for one in name.split(".") if one]
        if level:
            folder = self._path if self._path.is_dir() else self._path.parent
            for _ in range(level - 1):
                folder = folder.parent
            return folder.joinpath(*parts)
        root = None if parts[0] in REAL else self._root_of(parts[0])
        return None if root is None else root.joinpath(*parts)

    def _importlib(self, part: str) -> Any:
        """The module for imports by name, as a package's own choice of a backend is, with a part of it."""

        def import_module(name: str, package: str | None = None) -> Any:
            return self._import(name, fromlist=("",))

        importlib.import_module(part)
        found = ModuleType("importlib")
        vars(found).update({**vars(importlib), "import_module": import_module, "metadata": self._metadata()})
        return found

    def _metadata(self) -> Any:
        """``importlib.metadata``, to which a package that lies there unpacked is of version 0."""

        def version(package: str) -> str:
            try:
                return metadata.version(package)
            except metadata.PackageNotFoundError:
                if self._root_of(package) is None:
                    raise
                return "0"

        found = ModuleType("importlib.metadata")
        vars(found).update({**vars(metadata), "version": version})
        return found

    def _at(self, where: Path, name: str) -> Any:
        found = module_file(where)
        if found is None:
            return self._missing(name or where.name, ("",))
        return sliced_module(found, self._arch).module

    def _missing(self, name: str, fromlist: Sequence[str] | None) -> Any:
        """Stand in for a package; an import that a ``try`` covers fails as it would."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if any(first <= frame.f_lineno <= last for first, last in self._tries):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return module_of(StandIn(name if fromlist else name.partition(".")[0]))

    def _root_of(self, package: str) -> Path | None:
        """Folder that holds a package or module: around this file, or on ``sys.path``."""
        around = [self._path.parent, *self._path.parents]
        roots = [one for one in dict.fromkeys(around) if not (one / "__init__.py").is_file()]
        for root in (*roots, *map(Path, filter(None, sys.path))):
            if module_file(root / package) is not None and root != Path(root.anchor):
                return root
        return None

    def _submodule(self, name: str) -> Path | None:
        is_package = self._path.is_dir() or self._path.name == "__init__.py"
        folder = self._path if self._path.is_dir() else self._path.parent
        return module_file(folder / name) if is_package else None

    def _elsewhere(self, name: str) -> Any:
        """A submodule, a name of a module that is imported with a star, or one that the module makes when asked."""
        found = self._submodule(name)
        if found is not None:
            return sliced_module(found, self._arch).module
        for star in self._slice.stars:
            other = self._import(star.module or "", fromlist=("*",), level=star.level)
            if _has(other, name):
                return getattr(other, name)
        if "__getattr__" in self._slice.names:
            return self._own_getattr()(name)
        raise AttributeError(name)

    def _own_getattr(self) -> Any:
        """The file's own ``__getattr__``, which stands behind `_get`."""
        own = vars(self.module)
        if self._lazy is None:
            self._define("__getattr__")
            self._lazy, own["__getattr__"] = own["__getattr__"], self._get
        return self._lazy


def _has(module: ModuleType, name: str) -> bool:
    """Whether a module that a star imports from has a public name."""
    sliced = vars(module).get("_sliced")
    return not name.startswith("_") and (sliced.has(name) if sliced else name in vars(module))


def sliced_module(path: Path, arch: str, text_from: Path | None = None) -> SlicedModule:
    """Module of a file, the same at each call."""
    key = (text_from or path).resolve()
    if key not in _MODULES:
        _set_driver(arch)
        _MODULES[key] = SlicedModule(path.resolve(), arch, text_from)
    return _MODULES[key]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Texts for a bundle: ``function`` of several versions of a file, each as one file with all that it reads."""
    texts = []
    for place in request["texts"]:
        try:
            module = sliced_module(Path(request["path"]), request["arch"], Path(place).resolve())
            found = Source(module.function(request["function"]), classes=True)
        except CaptureError as error:
            return {"error": str(error)}
        # what is stood in for is not there on the node either
        if problems := [one for one in found.problems if f", a {StandIn.__name__}," not in one]:
            return {"error": "; ".join(problems)}
        named = "" if found.name == request["function"] else f"\n\n{request['function']} = {found.name}\n"
        texts.append(found.text + named)
    return {"texts": texts}


def sliced_files() -> dict[Path, SlicedModule]:
    """Module of each file that was read."""
    return {path: module for path, module in _MODULES.items() if path.is_file()}


def forget_sliced() -> None:
    """Read and run files anew."""
    _MODULES.clear()


def read_once(path: Path) -> SourceFile:
    """A file, parsed once while it does not change: a worker describes a kernel at dozens of sizes."""
    return _read(path, _stamp(path))


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


@lru_cache(maxsize=512)
def _read(path: Path, changed_ns: int) -> SourceFile:
    return opened(read_source(path))


@lru_cache(maxsize=512)
def _slice_of(path: Path, changed_ns: int) -> TopLevelSlice:
    source = _source(path)
    return TopLevelSlice(source.tree, partial(_decorators, source))


def _decorators(source: SourceFile, function: ast.FunctionDef) -> list[ast.expr]:
    """Decorators that are run: of a Triton function only the one that jits it."""
    for one in function.decorator_list:
        alone = ast.FunctionDef(function.name, function.args, function.body, [one])
        if source.aliases.jit_decorator(alone) is not None:
            return [one]
    return function.decorator_list


def _source(path: Path) -> SourceFile:
    if path.is_dir():
        return SourceFile(str(path), "", ast.Module([], []))
    try:
        return read_once(path)
    except LanguageError as error:
        raise CaptureError(str(error), code="declaration") from None


def _set_driver(arch: str) -> None:
    """Let ``triton.runtime.driver.active`` answer as the GPU that is asked for."""
    compiler = importlib.import_module("triton.backends.compiler")
    runtime = importlib.import_module("triton.runtime.driver")
    os.environ.setdefault("GEMS_VENDOR", "amd")  # else flag-gems runs each vendor's tool that lists GPUs
    runtime.driver.set_active(driver_for(compiler.GPUTarget("hip", arch, 64)))
    # asked by packages that define kernels only where one vendor's GPU is, as vLLM does: here AMD's, whatever there is
    for vendor, backend in importlib.import_module("triton.backends").backends.items():
        backend.driver.is_active = staticmethod(lambda vendor=vendor: vendor == "amd")


def module_file(where: Path) -> Path | None:
    """File of a module or package, its folder where a package has no file, None where there is nothing."""
    for found in (where / "__init__.py", where.with_name(f"{where.name}.py")):
        if found.is_file():
            return found
    return where if where.is_dir() and any(where.rglob("*.py")) else None


def file_of_module(name: str) -> Path:
    """File of ``package.module``, found without importing anything."""
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
