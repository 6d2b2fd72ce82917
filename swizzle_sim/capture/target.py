"""The function that a declaration is about: an object of Triton's, or text that says where it stands.

What autotuners and heuristics around it decide at a launch is decided here, for capture, compile and rewrite alike.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.capture.cuda.source import C_NAME, SUFFIXES
from swizzle_sim.capture.cuda.source import parameters_of as parameters_of_c
from swizzle_sim.capture.sliced_module import SlicedModule, file_of_module, read_once, sliced_module
from swizzle_sim.capture.stand_ins import StandIn, TensorStandIn
from swizzle_sim.triton_source.source_file import SourceFile, defaults_of, parameters_of
from swizzle_sim.workload.launch import Array
from xcd_model.errors import CaptureError, LanguageError

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
HERE = str(Path(__file__).parent)


@dataclass(frozen=True, eq=False)
class Target:
    """A Triton function."""

    path: Path  # file that it stands in
    name: str
    parameters: tuple[str, ...]
    summary: str  # first line of its docstring, empty without one
    decorated: Any  # as its file leaves it; None where only its part of the file is run
    # wrappers that an assignment puts around it, outermost first: ``fast = triton.autotune(...)(slow)``
    around: tuple[ast.expr, ...] = ()

    @classmethod
    def of(cls, function: Any) -> Target:
        """Target of a ``@triton.jit`` function, or of ``"FILE.py:FUNCTION"`` or ``"package.module:FUNCTION"``."""
        if isinstance(function, str):
            return cls._named(function)
        inner = function
        while not hasattr(inner, "rewrite") and hasattr(inner, "fn"):
            inner = inner.fn
        python = getattr(inner, "fn", inner)
        if not inspect.isfunction(python):
            raise CaptureError(
                f"Kernel({function!r}, ...): the first argument is a @triton.jit function, or where one stands: "
                '"FILE.py:FUNCTION"',
                code="declaration",
            )
        path = Path(inspect.getsourcefile(python) or "").resolve()
        about = inspect.getdoc(python) or ""
        return cls(path, python.__name__, tuple(inspect.signature(python).parameters), _first(about), function)

    @classmethod
    def _named(cls, text: str) -> Target:
        if of_c := re.fullmatch(C_NAME, text):
            return cls._of_c(_beside(of_c.group(1)), of_c.group(2))
        where, colon, name = text.rpartition(":")
        if not colon or not name.isidentifier():
            raise CaptureError(f"Kernel({text!r}, ...): write FILE.py:FUNCTION", code="declaration")
        path = _beside(where) if where.endswith(".py") else file_of_module(where)
        try:
            source = read_once(path)
            name, around = _inside(source, name)
            function = source.kernel(name)
        except LanguageError as error:
            raise CaptureError(str(error), code="declaration") from None
        parameters = tuple(one.arg for one in parameters_of(function))
        return cls(path.resolve(), name, parameters, _first(ast.get_docstring(function) or ""), None, around)

    @classmethod
    def _of_c(cls, path: Path, name: str) -> Target:
        try:
            parameters = parameters_of_c(path.read_text(encoding="utf-8", errors="replace"), name)
        except OSError as error:
            raise CaptureError(f"{path}: cannot be read ({error.strerror})", code="declaration") from None
        if parameters is None:
            raise CaptureError(f"{path.name} holds no __global__ function {name}", code="declaration")
        return cls(path.resolve(), name, tuple(parameters), f"{name} of {path.name}", None)

    @property
    def is_c(self) -> bool:
        """Whether it is CUDA's or HIP's."""
        return self.path.suffix in SUFFIXES

    def defaults(self) -> set[str]:
        """Parameters that have a default."""
        return set() if self.is_c else set(defaults_of(read_once(self.path).kernel(self.name)))

    def tuning(self, arch: str) -> Tuning:
        """What autotuners and heuristics around the function hold."""
        if self.is_c:
            return Tuning()
        if self.decorated is not None:
            return Tuning.around(self.decorated)
        return Tuning.above(sliced_module(self.path, arch), self.name, self.around)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Configurations and heuristics of a function."""

    configs: Sequence[Any] = ()
    prune: Any = None  # ``prune(configs, arguments)``: those that the autotuner would try, or others in their place
    heuristics: Sequence[Mapping[str, Any]] = ()  # rules by parameter, in the order in which a launch applies them
    problem: str = ""  # why there are no configurations, where the file does not give them

    @classmethod
    def around(cls, function: Any) -> Tuning:
        """Read off the objects around a function."""
        configs: Sequence[Any] = ()
        rules, prune = [], None
        while hasattr(function, "fn") and not hasattr(function, "rewrite"):
            if getattr(function, "configs", None):
                configs, prune = list(function.configs), getattr(function, "early_config_prune", None)
            elif isinstance(getattr(function, "values", None), Mapping):
                rules.append(function.values)
            function = function.fn
        return cls(configs, prune, rules)

    @classmethod
    def above(cls, module: SlicedModule, name: str, around: Sequence[ast.expr] = ()) -> Tuning:
        """Read off what is around a function whose file is not run: whatever it is called, by its arguments."""
        module.function(name)
        configs: Sequence[Any] = ()
        rules: list[Mapping[str, Any]] = []
        prune, problem = None, ""
        for decorator in (*around, *module.other_decorators(name)):
            if not isinstance(decorator, ast.Call):
                continue
            given = {one.arg: one.value for one in decorator.keywords if one.arg}
            kind = ast.unparse(decorator.func).rpartition(".")[2]
            first = decorator.args[0] if decorator.args else ast.Constant(None)
            try:
                if "configs" in given or (kind == "autotune" and decorator.args):
                    configs = list(module.value_of(given.get("configs", first)))
                    by = module.value_of(given["prune_configs_by"]) if "prune_configs_by" in given else None
                    prune = by.get("early_config_prune") if isinstance(by, Mapping) else None
                elif kind == "heuristics":
                    rules.append(dict(module.value_of(given.get("values", first))))
                else:
                    inner = cls._made(module, decorator, name)
                    configs, prune = inner.configs or configs, inner.prune or prune
                    rules += inner.heuristics
            except (CaptureError, TypeError) as error:
                problem = f"{ast.unparse(decorator.func)} of {name} cannot be evaluated ({error})"
        return cls(configs, prune, rules, problem)

    @classmethod
    def _made(cls, module: SlicedModule, decorator: ast.expr, name: str) -> Tuning:
        """Read off what a decorator of another kind makes, as a tuner that another file sets up."""
        with contextlib.suppress(Exception):  # it does what it likes, and may need the GPU
            made = module.value_of(decorator)(module.function(name))
            if type(made).__module__.startswith("triton."):
                return cls.around(made)
        return cls()

    def at(self, given: Mapping[str, Any]) -> tuple[Sequence[Any], list[int]]:
        """Configurations at a launch, a pruner's own in place of the file's, and the places of those that are tried."""
        every = list(range(len(self.configs)))
        if self.prune is None or not every:
            return self.configs, every
        try:
            left = list(self.prune(list(self.configs), dict(given), **given))
        except Exception:  # it asks the GPU, or for what is decided later: all stay
            return self.configs, every
        if not all(any(mine is one for mine in self.configs) for one in left):
            return left, list(range(len(left)))
        return self.configs, [i for i in every if any(self.configs[i] is one for one in left)] or every

    def decided(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values that the heuristics give."""
        found: dict[str, Any] = {}
        seen = {name: TensorStandIn(value) if isinstance(value, Array) else value for name, value in given.items()}
        for rules in self.heuristics:
            for name, rule in rules.items():
                if name in given:
                    continue
                try:
                    found[name] = _plain(rule({**seen, **found}))
                except Exception as error:
                    what = f"needs {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
                    raise CaptureError(
                        f"the heuristic of {name} {what}: give that, or {name} itself, in constexprs=...",
                        code="arguments",
                    ) from None
        return found


def chosen(config: Any, parameters: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Constants and compile options of a configuration."""
    constants = {name: _plain(value) for name, value in config.kwargs.items() if name in parameters}
    options = {name: _plain(value) for name, value in config.kwargs.items() if name not in parameters}
    given = {name: getattr(config, name, None) for name in ("num_warps", "num_stages", "num_ctas", "maxnreg")}
    options = {name: value for name, value in {**given, **options}.items() if value is not None}
    if options.get("num_ctas") == 1:
        del options["num_ctas"]
    return constants, options


def _plain(value: Any) -> Any:
    """Value of a constexpr, a type of the language as the text that names it."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if type(value).__module__.startswith("numpy") and hasattr(value, "item"):
        return value.item()
    if isinstance(value, StandIn):
        bool(value)
    return value


def _inside(source: SourceFile, name: str) -> tuple[str, tuple[ast.expr, ...]]:
    """Name of the jitted function that a name stands for, and the wrappers that an assignment puts around it."""
    made = source.wrapped.get(name)
    if made is None:  # a function that only an assignment jits goes by that name
        jitted = {one.function: other for other, one in source.wrapped.items() if one.is_jitted}
        return jitted.get(name, name), ()
    return (name if made.is_jitted else made.function), made.around


def _beside(name: str) -> Path:
    """Path of a file that a declaration names: from the folder of the declaration, else from here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((HERE, "<")):
        frame = frame.f_back
    beside = Path(frame.f_code.co_filename).parent / name
    return beside if beside.is_file() else Path(name)


def _first(text: str) -> str:
    return text.strip().split("\n", maxsplit=1)[0]
