"""Records the Triton launches of a program on a machine with a GPU; this file needs nothing but Triton and torch.

    with swizzle_sim.record("calls.json"):
        model(batch)

Copied alone to a node: ``from recorder import record``, or ``python recorder.py calls.json SCRIPT.py ARGUMENTS``.
The file holds each kind of launch and its count: grid, options, constants (those that an autotuner chose too), layout
of tensors, values of integer tensors up to a limit and of no others, and the kernels' source with what it reads.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import importlib
import inspect
import json
import os
import runpy
import struct
import sys
import tempfile
import textwrap
import threading
import types
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FORMAT, VERSION = "swizzle-sim-recording", 1
MAX_VALUES_BYTES = 1 << 22  # of one integer tensor, at 8 bytes an item
MAX_LAUNCHES = 1000  # kinds of launch in a file
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
_MISSING = object()
AS_RUN = ("num_warps", "num_stages", "num_ctas", "shared", "n_regs", "n_spills")
NOT_OPTIONS = ("grid", "warmup", "stream", "debug", "device", "device_type")


def record(path: str | os.PathLike[str], *, max_values_bytes: int = MAX_VALUES_BYTES) -> Recorder:
    """Context manager that writes the Triton launches inside it to a file, at its end.

    Parameters
    ----------
    path : str or path
        Ends in ``.json``, or gets that ending; a recording that is there is replaced, nothing else is.
    max_values_bytes : int
        Values of integer tensors above this are not stored, at 8 bytes an item [bytes].

    Raises
    ------
    ValueError
        If the file is there and is no recording.
    """
    return Recorder(Path(path), max_values_bytes)


class Recorder:
    """See `record`. Launches that an autotuner makes to measure are left out; of equal ones the first is kept."""

    _active: Recorder | None = None

    def __init__(self, path: Path, max_values_bytes: int):
        self.path = path if path.suffix == ".json" else path.with_name(f"{path.name}.json")
        self.max_values_bytes = max_values_bytes
        self.launches: dict[str, dict[str, Any]] = {}
        self.kernels: list[dict[str, Any]] = []
        self.problems: dict[str, None] = {}
        self._places: dict[int, tuple[int, Any]] = {}  # of kernels by id; each is held, so that its id stays its own
        self._lock, self._end, self._state = threading.RLock(), contextlib.ExitStack(), threading.local()

    def __enter__(self) -> Recorder:
        if Recorder._active is not None:
            raise ValueError("launches are being recorded already: one record(...) at a time")
        if self.path.exists() and not _is_recording(self.path):
            raise ValueError(f"{self.path}: exists and is no recording; it is not overwritten")
        with tempfile.TemporaryFile(dir=self.path.absolute().parent):  # a folder that takes no file is found now
            pass
        Recorder._active = self
        self._end.callback(setattr, Recorder, "_active", None)
        tuner = importlib.import_module("triton.runtime.autotuner").Autotuner
        jit = importlib.import_module("triton.runtime.jit").JITFunction
        interpreted = importlib.import_module("triton.runtime.interpreter").InterpretedFunction
        self._wrap(jit, "run", self._launched)
        self._wrap(interpreted, "run", self._launched)
        for kind in (kinds := [tuner]):
            kinds += kind.__subclasses__()
            self._wrap(kind, "_bench", functools.partial(self._within, "benching"))
            self._wrap(kind, "run", functools.partial(self._within, "tuner"))
        return self

    def __exit__(self, *_error: Any) -> None:
        self._end.close()
        if self.launches:
            self._write()
        else:
            print(f"{self.path}: not written, no launch was seen", file=sys.stderr)
        for problem in self.problems:
            print(f"{self.path.name}: {problem}", file=sys.stderr)

    def _wrap(self, kind: type, name: str, by: Callable[..., Any]) -> None:
        if name not in vars(kind):
            return
        original = vars(kind)[name]
        setattr(kind, name, lambda this, *args, **kwargs: by(original, this, *args, **kwargs))
        self._end.callback(setattr, kind, name, original)

    def _within(self, state: str, original: Any, this: Any, *args: Any, **kwargs: Any) -> Any:
        """Call an autotuner's method while it is known that it is at work, in this thread."""
        before = getattr(self._state, state, None)
        setattr(self._state, state, this)
        try:
            return original(this, *args, **kwargs)
        finally:
            setattr(self._state, state, before)

    def _launched(self, original: Any, this: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup") or getattr(self._state, "benching", None):
            return original(this, *args, **kwargs)
        launch, tuner = None, getattr(self._state, "tuner", None)
        try:
            launch = self._described(this, args, kwargs, tuner)
        except Exception as error:  # a program runs on whatever the recorder does not understand
            name = getattr(this, "__name__", str(this))
            self.problems[f"{name}: a launch is not recorded ({type(error).__name__}: {error})"] = None
        compiled = original(this, *args, **kwargs)
        if launch is not None:
            self._keep(launch, compiled)
        return compiled

    def _keep(self, launch: dict[str, Any], compiled: Any) -> None:
        with self._lock:
            key = launch.pop("key")
            if key not in self.launches and len(self.launches) >= MAX_LAUNCHES:
                self.problems[f"more than {MAX_LAUNCHES} kinds of launch: the others are left out"] = None
                return
            known = self.launches.setdefault(key, launch)
            known["count"] += 1
            metadata = getattr(compiled, "metadata", None)
            if "as_run" not in known and metadata is not None:
                found = {name: getattr(metadata, name, getattr(compiled, name, None)) for name in AS_RUN}
                known["as_run"] = {name: value for name, value in found.items() if isinstance(value, int)}

    def _described(self, jit: Any, args: Any, kwargs: Any, tuner: Any) -> dict[str, Any]:
        """One launch, JSON-ready; the values of integer tensors only where none like it was seen."""
        signature = inspect.signature(jit.fn)
        given = kwargs.keys() & signature.parameters.keys()
        bound = signature.bind(*args, **{name: kwargs[name] for name in given})
        bound.apply_defaults()
        grid = kwargs["grid"]
        sides = grid(dict(bound.arguments)) if callable(grid) else grid
        launch: dict[str, Any] = {
            "kernel": self._kernel(jit),
            "grid": [int(side) for side in ((sides,) if isinstance(sides, int) else sides)],
            "arguments": {},
            "constexprs": {},
            "options": {
                name: value
                for name, value in kwargs.items()
                if name not in (*given, *NOT_OPTIONS) and isinstance(value, bool | int | float | str)
            },
            "problems": [],
        }
        if len(getattr(tuner, "configs", ())) > 1 and tuner.best_config in tuner.configs:
            launch["config"] = {"place": tuner.configs.index(tuner.best_config), "of": len(tuner.configs)}
        tensors: dict[str, Any] = {}
        storages: dict[int, int] = {}
        for name, value in bound.arguments.items():
            annotation = signature.parameters[name].annotation
            is_constant = "constexpr" in str(getattr(annotation, "__name__", annotation))
            if not is_constant and (hasattr(value, "data_ptr") or hasattr(value, "block_shape")):
                tensors[name] = value
                launch["arguments"][name] = {"tensor": _tensor(value, storages)}
                continue
            try:
                launch["constexprs" if is_constant else "arguments"][name] = _scalar(value)
            except TypeError as error:
                launch["problems"].append(f"{name}: {error}")
        launch["key"] = json.dumps(launch, sort_keys=True)
        if launch["key"] not in self.launches:
            for name, value in tensors.items():
                launch["arguments"][name]["tensor"] |= self._values(_base(value))
        return {**launch, "count": 0}

    def _values(self, tensor: Any) -> dict[str, Any]:
        """Values of an integer tensor as text: int64, little-endian, compressed; or why they are not stored."""
        if str(tensor.dtype).rpartition(".")[2] not in INTEGERS:
            return {}
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return {"values_missing": "launched while a graph was captured"}
        if tensor.numel() * 8 > self.max_values_bytes:
            return {"values_missing": f"{tensor.numel() * 8} bytes, over the limit max_values_bytes"}
        values = [int(one) for one in tensor.detach().cpu().reshape(-1).tolist()]
        return {"values": base64.b64encode(zlib.compress(struct.pack(f"<{len(values)}q", *values), 6)).decode()}

    def _kernel(self, jit: Any) -> int:
        """Place in the file of a kernel, whose source is read at its first launch."""
        with self._lock:
            if id(jit) not in self._places:
                found = Sources(jit)
                kernel = {"module": str(jit.fn.__module__), "functions": found.functions}
                if kernel not in self.kernels:
                    self.kernels.append(kernel)
                self.problems |= dict.fromkeys(found.problems)
                self._places[id(jit)] = (self.kernels.index(kernel), jit)
            return self._places[id(jit)][0]

    def _write(self) -> None:
        launches = list(self.launches.values())
        document = {"format": FORMAT, "format_version": VERSION, "machine": _machine(), "kernels": self.kernels}
        whole = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        whole.write_text(json.dumps({**document, "launches": launches}, indent=1) + "\n", encoding="utf-8")
        os.replace(whole, self.path)
        count, kernels = sum(one["count"] for one in launches), len({one["kernel"] for one in launches})
        print(f"{self.path}: {count} launches of {kernels} kernels recorded", file=sys.stderr)


class Sources:
    """A kernel and the functions it calls, each with its text and what the globals mean that it reads."""

    def __init__(self, jit: Any):
        self.problems: list[str] = []
        self.functions: list[dict[str, Any]] = []
        self._places: dict[Any, int] = {}
        self._function(jit)

    def _function(self, jit: Any) -> int:
        """Place of a function in the list."""
        if jit.fn in self._places:
            return self._places[jit.fn]
        place = self._places[jit.fn] = len(self.functions)
        text = textwrap.dedent(inspect.getsource(jit.fn))
        node = next(one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef))
        options = {one: getattr(jit, one, None) for one in ("do_not_specialize", "noinline")}
        reads: dict[str, Any] = {}
        self.functions.append(
            {
                "name": node.name,
                "text": "\n".join(text.splitlines()[node.lineno - 1 :]),
                "kind": "constexpr_function" if type(jit).__name__ == "ConstexprFunction" else "jit",
                "options": {one: value for one, value in options.items() if value and _is_literal(value)},
                "reads": reads,
            }
        )
        cells = zip(jit.fn.__code__.co_freevars, jit.fn.__closure__ or (), strict=False)
        scope = {**jit.fn.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        for chain in _chains(node):
            if chain[0] in scope:
                self._read(chain, scope, reads, node.name)
        return place

    def _read(self, chain: list[str], scope: Mapping[str, Any], reads: dict[str, Any], function: str) -> None:
        """Note what the first names of ``a.b.c`` mean that the file can hold."""
        value: Any = None
        for k, name in enumerate(chain):
            value = scope[name] if k == 0 else getattr(value, name, _MISSING)
            meaning = self._meaning(value)
            if meaning is not None:
                reads[".".join(chain[: k + 1])] = meaning
                return
        self.problems.append(f"{function} reads {'.'.join(chain)}, a {type(value).__name__}, which is not stored")

    def _meaning(self, value: Any) -> dict[str, Any] | None:
        while not _is_jit(value) and hasattr(value, "fn") and hasattr(value, "run"):
            value = value.fn  # autotuners and heuristics
        if _is_jit(value):
            return {"function": self._function(value)}
        if isinstance(value, types.ModuleType):
            is_known = value.__name__ == "math" or value.__name__.partition(".")[0] == "triton"
            return {"module": value.__name__} if is_known else None
        if (text := _value_text(value)) is not None:
            return {"value": text}
        home, own = str(getattr(value, "__module__", "")), str(getattr(value, "__name__", ""))
        for module in (home, "triton.language"):
            if home.startswith("triton") and own and getattr(sys.modules.get(module), own, None) is value:
                return {"module": module, "name": own}
        return None


def _chains(function: ast.FunctionDef) -> list[list[str]]:
    """Names that a function reads and does not assign, with their attributes: ``tl.load`` as ``["tl", "load"]``."""
    arguments = [one for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
    own = {one.arg for one in arguments} | {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    found: list[list[str]] = []
    todo: list[ast.AST] = [function.args, *function.body]
    while todo:
        inner = node = todo.pop()
        chain: list[str] = []
        while isinstance(inner, ast.Attribute):
            chain.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id not in own:
            found.append([inner.id, *chain])
        elif isinstance(node, ast.arg):  # whose annotation may be torch's: of no use to Triton
            annotation = ast.unparse(node.annotation or ast.Constant(""))
            todo += [node.annotation] if node.annotation and ("tl." in annotation or "constexpr" in annotation) else []
        else:
            todo += ast.iter_child_nodes(inner)
    return found


def _is_jit(value: Any) -> bool:
    return type(value).__name__ in ("JITFunction", "InterpretedFunction", "ConstexprFunction")


def _is_literal(value: Any) -> bool:
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return False


def _value_text(value: Any) -> str | None:
    """Expression for a constant; what it names is ``triton`` alone."""
    if type(value).__name__ == "constexpr":
        inner = _value_text(value.value)
        return inner and f"triton.language.constexpr({inner})"
    if type(value).__name__ == "dtype" and type(value).__module__.startswith("triton"):
        return f"triton.{_language_name(value).replace('tl.', 'language.', 1)}"
    if isinstance(value, float):
        return repr(value) if abs(value) < float("inf") else f'float("{value}")'
    if isinstance(value, int) and not isinstance(value, bool):  # an enumeration's too
        return str(int(value))
    return repr(value) if _is_literal(value) else None


def _language_name(dtype: Any) -> str:
    language = importlib.import_module("triton.language")
    return next((f"tl.{n}" for n, one in vars(language).items() if type(one) is type(dtype) and one == dtype), "tl.?")


def _scalar(value: Any) -> Any:
    """Scalar as JSON has it; a type of the language as text."""
    value = value.value if type(value).__name__ == "constexpr" else value
    if type(value).__name__ == "dtype" and type(value).__module__.startswith("triton"):
        return _language_name(value)
    if value is None or isinstance(value, bool | str):
        return value
    for kind, method in ((int, "__index__"), (float, "__float__")):
        if hasattr(value, method):
            return kind(value)
    raise TypeError(f"a {type(value).__name__} as an argument is not stored")


def _tensor(value: Any, storages: dict[int, int]) -> dict[str, Any]:
    """Shape, strides, type and place of a tensor, or of the one that a host descriptor is about."""
    base = _base(value)
    is_descriptor = hasattr(value, "block_shape")
    shape, strides = (value.shape, value.strides) if is_descriptor else (base.shape, base.stride())
    storage = base.untyped_storage().data_ptr()
    return {
        "shape": [int(n) for n in shape],
        "strides": [int(n) for n in strides],
        "dtype": str(getattr(value, "dtype", None) or base.dtype).rpartition(".")[2],
        "storage": storages.setdefault(storage, len(storages)),
        "offset_bytes": base.data_ptr() - storage,
        **({"block": [int(n) for n in value.block_shape]} if is_descriptor else {}),
    }


def _base(value: Any) -> Any:
    """Tensor below a host descriptor or a `triton.reinterpret`."""
    return value if hasattr(value, "stride") and hasattr(value, "untyped_storage") else getattr(value, "base", value)


def _is_recording(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)


def _machine() -> Mapping[str, Any]:
    found = {name: str(getattr(sys.modules.get(name), "__version__", "")) for name in ("triton", "torch")}
    with contextlib.suppress(Exception):  # without a GPU there is none to name
        found["gpu"] = sys.modules["torch"].cuda.get_device_name()
        target = importlib.import_module("triton.runtime.driver").driver.active.get_current_target()
        found["target"] = f"{target.backend}:{target.arch}"
    return found


def main() -> None:
    """Run a script with its launches recorded."""
    if len(sys.argv) < 3 or sys.argv[1].endswith(".py"):
        sys.exit("usage: python recorder.py FILE.json SCRIPT.py [ARGUMENTS]")
    path, *sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).absolute().parent))
    with record(path):
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
