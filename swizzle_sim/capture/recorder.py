"""Records the Triton launches of a program on a machine with a GPU; this file needs nothing but Triton and torch.

    with swizzle_sim.record("calls.json"):
        model(batch)

Copied alone to a node: ``from recorder import record``, or ``python recorder.py calls.json SCRIPT.py ARGUMENTS``.
The file holds each kind of launch and its count: grid, options, constants (those that an autotuner chose too), layout
of tensors, values of integer tensors up to a limit and of no others, and the kernels' source with what it reads; and
the order in which they were launched, each with the places of its tensors.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import importlib
import inspect
import itertools
import json
import os
import re
import runpy
import struct
import sys
import tempfile
import textwrap
import threading
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMAT, VERSION = "swizzle-sim-recording", 2
MAX_VALUES_BYTES = 1 << 22  # of one integer tensor, at 8 bytes an item
MAX_LAUNCHES, MAX_ORDER = 1000, 100_000  # kinds of launch in a file, and launches whose order is kept
PAGE_BYTES = 1 << 21  # that places are counted from
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
        self.order: list[tuple[str, list[int]]] = []  # of each launch its kind and the addresses of its tensors
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
            key, addresses = launch.pop("key"), launch.pop("addresses")
            if key not in self.launches and len(self.launches) >= MAX_LAUNCHES:
                self.problems[f"more than {MAX_LAUNCHES} kinds of launch: the others are left out"] = None
                return
            known = self.launches.setdefault(key, launch)
            known["count"] += 1
            self.order += [(key, addresses)] * (len(self.order) < MAX_ORDER)
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
        return {**launch, "count": 0, "addresses": [_base(one).data_ptr() for one in tensors.values()]}

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
                found = Source(jit)
                kernel = {"module": str(jit.fn.__module__), "name": found.name, "source": found.text}
                if kernel not in self.kernels:
                    self.kernels.append(kernel)
                self.problems |= dict.fromkeys(found.problems)
                self._places[id(jit)] = (self.kernels.index(kernel), jit)
            return self._places[id(jit)][0]

    def _write(self) -> None:
        launches, numbers = list(self.launches.values()), {key: i for i, key in enumerate(self.launches)}
        lowest = min((one for _, at in self.order for one in at), default=0) // PAGE_BYTES * PAGE_BYTES
        order = [" ".join([str(numbers[key]), *(f"{one - lowest:x}" for one in at)]) for key, at in self.order]
        document = {"format": FORMAT, "format_version": VERSION, "machine": _machine(), "kernels": self.kernels}
        whole = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        whole.write_text(
            json.dumps({**document, "launches": launches, "order": order}, indent=1) + "\n", encoding="utf-8"
        )
        os.replace(whole, self.path)
        count, kernels = sum(one["count"] for one in launches), len({one["kernel"] for one in launches})
        print(f"{self.path}: {count} launches of {kernels} kernels recorded", file=sys.stderr)


def recording_of(jit: Any, values: Mapping[str, Any], grid: Any) -> dict[str, Any]:
    """Recording of one launch that is not made: a kernel, its arguments and options by name, and its grid."""
    recorder = Recorder(Path("launch.json"), MAX_VALUES_BYTES)
    launch = recorder._described(jit, (), {**values, "grid": grid}, None)
    del launch["key"], launch["addresses"]
    about = {"format": FORMAT, "format_version": VERSION, "machine": {}, "kernels": recorder.kernels}
    return {**about, "launches": [{**launch, "count": 1}]}


class Source:
    """A kernel, the functions it calls and what the globals mean that they read, as one file; the kernel last.

    ``classes`` says whether it may hold aggregates of Triton's language.
    """

    def __init__(self, jit: Any, *, classes: bool = False):
        self.problems: list[str] = []
        self._classes = classes
        self._defined: dict[str, Any] = {"triton": ("triton", "")}  # what each name means: a function, or see `_line`
        self._written: list[str] = []
        self.name = self._function(jit, jit.fn.__name__)
        lines = [_line(name, *meaning) for name, meaning in self._defined.items() if isinstance(meaning, tuple)]
        head = sorted(lines, key=lambda line: (" = " in line, not line.startswith("import triton"), line))
        self.text = "\n".join(head) + "".join(f"\n\n\n{one}" for one in self._written) + "\n"

    def _bind(self, name: str, meaning: Any) -> str:
        """Name that stands for something: the given one, with a number where that is taken."""
        tried = (name if k == 1 else f"{name}_{k}" for k in itertools.count(1))
        name = next(one for one in tried if self._defined.get(one, meaning) == meaning)
        self._defined[name] = meaning
        return name

    def _function(self, jit: Any, wanted: str) -> str:
        """Name of a function in the file, written where it is not there."""
        known = [name for name, meaning in self._defined.items() if meaning is jit.fn]
        if known:
            return known[0]
        name = self._bind(wanted, jit.fn)
        text = textwrap.dedent(inspect.getsource(jit.fn))
        decorated = next(one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef))
        text = "\n".join(text.splitlines()[decorated.lineno - 1 :])
        cells = zip(jit.fn.__code__.co_freevars, jit.fn.__closure__ or (), strict=False)
        text = self._edited(text, {**jit.fn.__globals__, **{one: cell.cell_contents for one, cell in cells}})
        if name != decorated.name:
            text = re.sub(rf"\bdef\s+{decorated.name}\b", f"def {name}", text, count=1)
        options = {one: getattr(jit, one, None) for one in ("do_not_specialize", "noinline")}
        given = ", ".join(f"{one}={value!r}" for one, value in options.items() if value and _is_literal(value))
        kind = "constexpr_function" if type(jit).__name__ == "ConstexprFunction" else "jit"
        self._written.append(f"@triton.{kind}{f'({given})' if given else ''}\n{text}")
        return name

    def _aggregate(self, kind: type, wanted: str) -> str:
        """Name of an aggregate in the file, written with its methods where it is not there."""
        name = next((one for one, meaning in self._defined.items() if meaning is kind), "")
        if not name:
            name = self._bind(wanted, kind)
            method = next(one.fn for one in vars(kind).values() if _is_jit(one))
            text = Path(method.__code__.co_filename).read_text(encoding="utf-8")
            classes = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ClassDef))
            node = next(one for one in classes if one.name == kind.__name__)
            lines = text.splitlines()[node.decorator_list[0].lineno - 1 : node.end_lineno]
            own = self._edited(textwrap.dedent("\n".join(lines)), method.__globals__)
            self._written.append(re.sub(rf"\bclass\s+{kind.__name__}\b", f"class {name}", own, count=1))
        return name

    def _edited(self, text: str, scope: Mapping[str, Any]) -> str:
        """Function or class with the names of the file, without annotations that are of no use to Triton."""
        function: Any = ast.parse(text).body[0]
        is_class = isinstance(function, ast.ClassDef)
        names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
        own = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
        own |= {one.id for one in names if not isinstance(one.ctx, ast.Load)}
        edits = [(function.returns, "None")] if getattr(function, "returns", None) else []
        todo: list[Any] = [*(function.decorator_list if is_class else [function.args]), *function.body]
        while todo:
            inner = node = todo.pop()
            chain: list[Any] = []  # nodes of ``a.b.c`` from the innermost
            while isinstance(inner, ast.Attribute):
                chain.insert(0, inner)
                inner = inner.value
            if isinstance(inner, ast.Name):
                edits += self._read([inner, *chain], scope, function.name) if inner.id not in own else []
            elif isinstance(node, ast.arg) and node.annotation:
                annotation = ast.unparse(node.annotation)
                if isinstance(node.annotation, ast.Constant) or "tl." in annotation or "constexpr" in annotation:
                    todo.append(node.annotation)
                else:
                    edits.append((node, node.arg))
            else:
                todo += ast.iter_child_nodes(inner)
        return _applied(text, edits)

    def _read(self, chain: list[Any], scope: Mapping[str, Any], function: str) -> list[tuple[Any, str]]:
        """Name in the file for the first part of ``a.b.c`` that means something there."""
        value: Any = None
        for node in chain:
            name = getattr(node, "attr", None) or node.id
            if node is chain[0] and name not in scope:
                return []
            value = scope[name] if node is chain[0] else getattr(value, name, _MISSING)
            new = self._meaning(value, name)
            if new is not None:
                return [(node, new)]
        self.problems.append(f"{function} reads {ast.unparse(node)}, a {type(value).__name__}, which is not stored")
        return []

    def _meaning(self, value: Any, name: str) -> str | None:
        """Name in the file for what a kernel calls ``name``; None where the file cannot hold it."""
        while not _is_jit(value) and hasattr(value, "fn") and hasattr(value, "run"):
            value = value.fn  # autotuners and heuristics
        if _is_jit(value):
            return self._function(value, name)
        if self._classes and isinstance(value, type) and getattr(value, "__triton_aggregate__", False):
            return self._aggregate(value, name)
        if isinstance(value, types.ModuleType):
            # the device library that goes by the GPU that compiles, in place of the one of this GPU
            module = re.sub(r"\.(cuda|hip)\.libdevice$", ".libdevice", value.__name__)
            return self._bind(name, (module, "")) if re.fullmatch(r"math|triton(\.\w+)*", module) else None
        if (text := _value_text(value)) is not None:
            return self._bind(name, ("=", text))
        home, own = str(getattr(value, "__module__", "")), str(getattr(value, "__name__", ""))
        for module in (home, "triton.language"):
            if home.startswith("triton") and own and getattr(sys.modules.get(module), own, None) is value:
                return self._bind(name, (module, own))
        return None


def _line(name: str, module: str, own: str) -> str:
    """Line that gives a name its meaning: the value ``own``, or what a module calls so, or the module."""
    if module == "=":
        return f"{name} = {own}"
    line = f"from {module} import {own}" if own else f"import {module}"
    return line if name == (own or module) else f"{line} as {name}"


def _applied(text: str, edits: Sequence[tuple[Any, str]]) -> str:
    """Text with nodes replaced; the count of its lines stays."""
    lines = [line.encode() for line in text.splitlines()]
    places = [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset, new) for n, new in edits]
    for first, begin, last, end, new in sorted(places, reverse=True):
        whole = lines[first - 1][:begin] + new.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = [whole, *[b""] * (last - first)]
    return b"\n".join(lines).decode()


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
