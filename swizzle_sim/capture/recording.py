"""A recording of launches, as `swizzle_sim.capture.recorder` writes it, as declarations of its kernels.

The file is text that somebody else may have written: each value is checked before it is used, and nothing of it is run
but the kernels' sources, which a capture runs as it runs any kernel's file.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import itertools
import json
import math
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.disk_cache import cache_home
from swizzle_sim.base.rules import ANY, TEXT, Rule, check, integer
from swizzle_sim.capture.declare import KernelDeclaration, Sizes
from swizzle_sim.capture.recorder import FORMAT, MAX_ORDER, VERSION
from swizzle_sim.capture.stand_ins import TORCH_DTYPES
from swizzle_sim.capture.target import OPTIONS
from swizzle_sim.triton_source import read_source
from swizzle_sim.triton_source.parameters import facts_of
from swizzle_sim.triton_source.tile_axes import TileAxes
from swizzle_sim.workload.launch import Array
from xcd_model.errors import CaptureError, LanguageError, RunError
from xcd_model.files import read_text

MAX_FILE_BYTES, MAX_SOURCE_BYTES, MAX_LAUNCHES = 1 << 28, 1 << 21, 1000
DEPTH = 1000  # calls of Python, those that read the file among them
MAX_VALUES = 1 << 26  # items of one integer tensor
MAX_PARAMETERS, MAX_AXES, MAX_SIDE = 1000, 8, 1 << 40
DTYPES = {long: short for short, long in TORCH_DTYPES.items()} | {
    "fp8e4nv": "fp8e4", "float8e4nv": "fp8e4", "float8e5": "fp8e5", "float8e4b8": "fp8e4b8", "float8e5b16": "fp8e5b16",
    **{short: short for short in TORCH_DTYPES},
}  # fmt: skip


def recorded_declaration(path: Path, name: str | None) -> KernelDeclaration:
    """Declaration of one launch in a recording."""
    document = read_recording(path)
    launch = _chosen(path, document, name)
    if launch["problems"]:
        raise CaptureError(f"{path.name}: {launch['name']}: {'; '.join(launch['problems'])}", code="arguments")
    return _declaration(path, document, launch)


def read_recording(path: Path) -> dict[str, Any]:
    """Checked content of a recording."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise CaptureError(f"{path.name}: {size} bytes; a recording has at most {MAX_FILE_BYTES}", code="format")
        document = _parsed(read_text(path, most=MAX_FILE_BYTES))
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read ({error.strerror})", code="declaration") from None
    except (ValueError, RecursionError) as error:
        raise CaptureError(f"{path.name}: is no JSON ({str(error)[:80]})", code="format") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CaptureError(f"{path.name}: is no recording of swizzle_sim.record", code="format")
    if document.get("format_version") != VERSION:
        _refuse(path, "format_version", document.get("format_version"), f"this version reads {VERSION}")
    kernels, launches = document.get("kernels"), document.get("launches")
    if not isinstance(kernels, list) or not isinstance(launches, list) or len(launches) > MAX_LAUNCHES:
        raise CaptureError(f"{path.name}: a list of kernels, and one of at most {MAX_LAUNCHES} launches", code="format")
    for kernel in kernels:
        check(kernel, {"name": TEXT, "source": TEXT}, "kernels", partial(_refuse, path))
        if wrong := check_source(kernel["name"], kernel["source"], MAX_SOURCE_BYTES):
            _refuse(path, "source", kernel["source"], wrong)
    for launch in launches:
        _check_launch(path, launch, len(kernels))
    return document


def _parsed(text: str) -> Any:
    """JSON, nested no deeper than Python's own limit: the process that reads it has set that one far higher."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit, DEPTH))
    try:
        return json.loads(text)
    finally:
        sys.setrecursionlimit(limit)


SIDES = [integer(0, MAX_SIDE)]
SCALAR = Rule("a number, a text or null", lambda value: value is None or isinstance(value, bool | int | float | str))
LAUNCH = {
    "grid": [integer(0, 2**31)], "arguments": {}, "constexprs": {ANY: SCALAR}, "options": {ANY: SCALAR},
    "problems": [TEXT], "count": integer(1, 2**62),
}  # fmt: skip
TENSOR = {
    "shape": SIDES, "strides": SIDES, "block?": SIDES, "values?": TEXT,
    "dtype": Rule(f"one of {', '.join(TORCH_DTYPES.values())}", lambda one: isinstance(one, str) and one in DTYPES),
}  # fmt: skip


def _check_launch(path: Path, launch: Any, n_kernels: int) -> None:
    refuse = partial(_refuse, path)
    check(launch, {"kernel": integer(0, n_kernels - 1), **LAUNCH}, "launches", refuse)
    if not 1 <= len(launch["grid"]) <= 3:
        refuse("grid", launch["grid"], "one to three integers")
    if max(len(launch[key]) for key in ("arguments", "constexprs", "options")) > MAX_PARAMETERS:
        refuse("arguments", "...", f"values by name, at most {MAX_PARAMETERS}")
    for name, value in launch["arguments"].items():
        check(value, {"tensor": TENSOR} if isinstance(value, dict) else SCALAR, name, refuse)
        if isinstance(value, dict):
            tensor = value["tensor"]
            shape, strides = tensor["shape"], tensor["strides"]
            if len(shape) != len(strides) or len(shape) > MAX_AXES:
                rule = f"a side and a stride for each of at most {MAX_AXES} axes"
                refuse(f"{name}.shape", (shape, strides), rule)
            if "values" in tensor and math.prod(shape) > MAX_VALUES:
                refuse(f"{name}.values", "...", f"text, for at most {MAX_VALUES} items")


def _refuse(path: Path, key: str, value: Any, rule: str) -> NoReturn:
    raise CaptureError(f"{path.name}: {key} = {repr(value)[:60]}: {rule}", code="format")


def launched_in_order(path: Path) -> list[tuple[int, dict[str, int]]]:
    """Launches as they were made: the place of each in the recording, and the addresses of its tensors [bytes]."""
    document = read_recording(path)
    names = [[name for name, one in launch["arguments"].items() if isinstance(one, dict)]
             for launch in document["launches"]]  # fmt: skip
    found, order = [], document.get("order")
    if not isinstance(order, list) or not 1 <= len(order) <= MAX_ORDER:
        raise CaptureError(
            f"{path.name}: has no order of its launches: record them again with this version", code="format"
        )
    for text in order:
        read = re.fullmatch(r"(\d{1,4})((?: [0-9a-f]{1,12})*)", text) if isinstance(text, str) else None
        if not read or int(read[1]) >= len(names) or len(at := read[2].split()) != len(names[int(read[1])]):
            _refuse(path, "order", text, "a launch by its place, then where each of its tensors lies, in hexadecimal")
        found.append((int(read[1]), {name: int(one, 16) for name, one in zip(names[int(read[1])], at, strict=True)}))
    return found


def launches_of(path: Path) -> list[tuple[str, str, int]]:
    """Launches of a recording: name as in ``calls.json:NAME``, kernel, and how often it was launched."""
    return [(name, one["name"], one["count"]) for name, one in _named(read_recording(path)).items()]


def _named(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    launches: dict[str, dict[str, Any]] = {}
    for launch in document["launches"]:
        kernel = document["kernels"][launch["kernel"]]["name"]
        numbered = (kernel if k == 1 else f"{kernel}.{k}" for k in itertools.count(1))
        launches[next(one for one in numbered if one not in launches)] = {**launch, "name": kernel}
    return launches


def _chosen(path: Path, document: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    launches = _named(document)
    if name is None and len(launches) == 1:
        return next(iter(launches.values()))
    if name in launches:
        return launches[name]
    listed = [
        f"{path.name}:{key} ({' x '.join(map(str, one['grid']))} programs, {one['count']} times)"
        for key, one in launches.items()
    ]
    what = "say which launch" if name is None else f"no launch {name!r}"
    raise CaptureError(f"{path.name}: {what}: {', '.join(listed) or 'it holds none'}", code="declaration")


def _declaration(path: Path, document: Mapping[str, Any], launch: Mapping[str, Any]) -> KernelDeclaration:
    function, text = (document["kernels"][launch["kernel"]][key] for key in ("name", "source"))
    source = _unpacked(function, text)
    try:
        facts, axes = facts_of(read_source(source), function), TileAxes(read_source(source), function)
    except LanguageError as error:
        raise CaptureError(f"{path.name}: {launch['name']}: {error}", code="format") from None
    given = launch["arguments"]
    tensors = {name: value["tensor"] for name, value in given.items() if isinstance(value, dict)}
    roles = {one.name: one.role for one in facts.parameters if one.kind == "pointer"}
    inputs = {name: _values(path, name, one) for name, one in tensors.items() if "values" in one and all(one["shape"])}
    indices = {name for name in inputs if roles.get(name, "in") == "in"}
    integers = {name: value for name, value in given.items() if type(value) is int}
    constants = {**integers, **{name: v for name, v in launch["constexprs"].items() if type(v) is int}}
    same_as = _given_twice(tensors)
    # a tensor without items is never read; it is declared with one
    shapes = {name: ([n or 1 for n in one["shape"] or [1]], one["strides"] or [1]) for name, one in tensors.items()}
    sizes = RecordedSizes(integers, shapes, indices, launch["grid"], axes.counts(constants))

    def arguments(s: Sizes) -> dict[str, Any]:
        numbers = sizes.values(s)
        found: dict[str, Any] = {}
        for name, value in given.items():
            found[name] = numbers.get(name, value)
            if name in tensors:
                layout = sizes.layouts[name]
                found[name] = Array(
                    shape=tuple(one(s) for one in layout.sides),
                    dtype=DTYPES[tensors[name]["dtype"]],
                    strides=tuple(one(s) for one in layout.strides),
                    role=roles.get(name, "in"),
                    is_index=name in indices,
                    block=tuple(tensors[name]["block"]) if tensors[name].get("block") else None,
                    same_as=same_as.get(name, ""),
                )
        return found

    def tiles(s: Sizes) -> Any:
        return axes.tiles({**constants, **s, **sizes.values(s)}, [one(s) for one in sizes.grid])

    options = {name: v for name, v in launch["options"].items() if name in OPTIONS and v is not None}
    options.pop("num_ctas", None)  # clusters of an NVIDIA GPU; AMD's compiler takes one
    machine: Any = document.get("machine")
    gpu = str(machine.get("gpu", "a machine") if isinstance(machine, dict) else "a machine")[:80]
    has_tiles = axes.tiles(constants, launch["grid"]) is not None
    return KernelDeclaration(
        f"{source}:{function}",
        sizes=sizes.defaults or {"calls": 1},
        arguments=arguments,
        constexprs=dict(launch["constexprs"]),
        grid=lambda s: tuple(one(s) for one in sizes.grid),
        options=options,
        make_inputs=lambda s, seed: dict(inputs),
        tiles=tiles if has_tiles else None,
        name=launch["name"],
        summary=f"Recorded {launch['count']} times on {gpu}, in {path.name}",
    )


def _given_twice(tensors: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """First argument that is the same tensor, of those that have one before them."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, one in tensors.items():
        place = [one.get(key) for key in ("storage", "offset_bytes", "dtype", "shape", "strides")]
        owner = name if place[0] is None else first.setdefault(json.dumps(place), name)
        found |= {name: owner} if owner != name else {}
    return found


def _values(path: Path, name: str, tensor: Mapping[str, Any]) -> np.ndarray:
    """Values of an integer tensor: as many as it has items, and not one byte more is unpacked."""
    count, kind = math.prod(tensor["shape"]), DTYPES[tensor["dtype"]]
    try:
        unpack = zlib.decompressobj()
        raw = unpack.decompress(base64.b64decode(tensor["values"], validate=True), 8 * count + 1)
    except (ValueError, zlib.error) as error:
        raise CaptureError(f"{path.name}: values of {name} cannot be unpacked ({error})", code="format") from None
    if len(raw) != 8 * count or kind.startswith(("fp", "bf")):
        _refuse(path, f"{name}.values", f"{len(raw)} bytes", f"{8 * count} bytes of integers")
    found = np.frombuffer(raw, "<i8")
    return found.astype(kind).reshape(tensor["shape"] or [1])


def _unpacked(function: str, text: str) -> Path:
    """File with a kernel's source in the user's cache, under its digest."""
    folder = cache_home() / "recorded" / hashlib.sha256(text.encode()).hexdigest()[:24]
    path = folder / f"{function}.py"
    with contextlib.suppress(OSError):
        if path.read_text(encoding="utf-8") == text:
            return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except (OSError, RunError) as error:
        raise CaptureError(f"{path}: the kernel's source cannot be written ({error})", code="declaration") from None
    return path


# What a recorded launch would be at other sizes: sides, strides and grid as expressions of its integer arguments.
#
# A recording has numbers. A side that equals the argument ``M`` is taken for M, arguments that are equal are scaled
# together, a side of the grid may be a quotient of the source. At the recorded sizes all is as recorded; at others this
# is a guess, which the bounds checks of a capture test.

Expression = Callable[[Mapping[str, int]], int]
PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


@dataclass(frozen=True)
class Layout:
    """Sides and strides of a tensor as expressions."""

    sides: tuple[Expression, ...]  # each ``expression(sizes) -> int``
    strides: tuple[Expression, ...]


class RecordedSizes:
    """Sizes of a recorded launch, and what depends on them; of ``tensors`` there are shapes and strides."""

    def __init__(
        self,
        scalars: Mapping[str, int],
        tensors: Mapping[str, tuple[Sequence[int], Sequence[int]]],
        fixed: set[str],
        grid: Sequence[int],
        quotients: Sequence[Callable[[Mapping[str, int]], int | None]] = (),
    ):
        self.defaults: dict[str, int] = {}
        self._scalars, self._quotients = scalars, quotients
        for name, value in scalars.items():
            if value >= 2 and "stride" not in name.lower() and value not in self.defaults.values():
                self.defaults[name] = value
        explained = [any(q(scalars) == side for q in quotients) for side in grid]
        for axis, (side, known) in enumerate(zip(grid, explained, strict=True)):
            is_side = any(side in shape for name, (shape, _) in tensors.items() if name not in fixed)
            if side >= 2 and is_side and not known and side not in self.defaults.values():
                self.defaults[f"programs_{'xyz'[axis]}"] = side
        self.layouts = {name: self._layout(shape, strides, name in fixed) for name, (shape, strides) in tensors.items()}
        self.scalars = {name: self._scalar(name, value) for name, value in scalars.items()}
        self.grid = tuple(self._side_of_grid(side) for side in grid)

    def values(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Integer arguments at given sizes."""
        return {name: expression(sizes) for name, expression in self.scalars.items()}

    def _named(self, value: int) -> Expression | None:
        """Size or product of two with a value."""
        for name, size in self.defaults.items():
            if size == value:
                return itemgetter(name)
        for one, other in combinations(self.defaults, 2):
            if self.defaults[one] * self.defaults[other] == value:
                return _times(itemgetter(one), itemgetter(other))
        return None

    def _layout(self, shape: Sequence[int], strides: Sequence[int], is_fixed: bool) -> Layout:
        sides = [None if is_fixed else self._named(side) for side in shape]
        whole = [found or _literal(side) for found, side in zip(sides, shape, strict=True)]
        steps: list[Expression] = [_literal(stride) for stride in strides]
        before: tuple[int, Expression] = (1, _literal(1))  # length of the axes inside, as recorded and at other sizes
        for axis in sorted(range(len(shape)), key=lambda k: (strides[k], shape[k])):
            if strides[axis] and shape[axis] > 1:
                length, inside = before
                if strides[axis] % length == 0:
                    steps[axis] = _times(_literal(strides[axis] // length), inside)
                before = (strides[axis] * shape[axis], _times(steps[axis], whole[axis]))
        return Layout(tuple(whole), tuple(steps))

    def _scalar(self, name: str, value: int) -> Expression:
        """Integer argument: a size, or a stride or length of a tensor."""
        if "stride" not in name.lower() and value in self.defaults.values():
            found = self._named(value)
            assert found is not None
            return found
        if value < 2:
            return _literal(value)
        strides = [one for layout in self.layouts.values() for one in layout.strides]
        lengths = [
            _times(*layout.sides[axis:]) for layout in self.layouts.values() for axis in range(len(layout.sides))
        ]
        return self._only(value, [strides, lengths]) or _literal(value)

    def _side_of_grid(self, side: int) -> Expression:
        if side < 2:
            return _literal(side)
        counts: list[Expression] = [lambda s, q=q: q({**s, **self.values(s)}) or 0 for q in self._quotients]  # type: ignore[misc]
        names: list[Expression] = [itemgetter(name) for name in self.defaults]
        pairs = [_times(one, other) for one, other in combinations(counts, 2)]
        triples = [_times(one, other, name) for one, other in combinations(counts, 2) for name in names]
        mixed = [_times(one, name) for one in counts for name in names]
        sides = [
            _times(one, other)
            for layout in self.layouts.values()
            for one, other in combinations(layout.sides, 2)
        ]  # fmt: skip
        return self._only(side, [counts, pairs, names, mixed, sides, triples]) or _literal(side)

    def _only(self, value: int, groups: Sequence[Sequence[Expression]]) -> Expression | None:
        """The first expression of the first group that has a value; None where that group has several that differ."""
        scaled = {name: size * prime for (name, size), prime in zip(self.defaults.items(), PRIMES * 4, strict=False)}
        for group in groups:
            fitting = [one for one in group if one(self.defaults) == value]
            if fitting:
                return fitting[0] if len({one(scaled) for one in fitting}) == 1 else None
        return None


def _literal(value: int) -> Expression:
    return lambda s: value


def _times(*factors: Expression) -> Expression:
    return lambda s: math.prod(one(s) for one in factors)


# Source of a recorded kernel: one file with imports of Triton, constants, and functions that Triton jits.

MODULE = re.compile(r"math|triton(\.\w+)*")
VALUE_CALLS = ("triton.language.constexpr", "float")
JITS = ("triton.jit", "triton.constexpr_function")


def check_source(name: str, text: str, most_bytes: int) -> str:
    """Reason why a text is no source of a recorded kernel; empty where it is."""
    if len(text) > most_bytes:
        return f"text of at most {most_bytes} bytes"
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "text that parses"
    if not all(map(_may_stand, body)):
        return "imports of triton and math, literals, and functions that triton jits"
    return "" if name in [one.name for one in body if isinstance(one, ast.FunctionDef)] else "a function of its name"


def _may_stand(stmt: ast.stmt) -> bool:
    match stmt:
        case ast.Import(names):
            return all(MODULE.fullmatch(one.name) for one in names)
        case ast.ImportFrom(str(module), _, 0):
            return MODULE.fullmatch(module) is not None
        case ast.Assign([ast.Name()], value):
            return _is_value(value)
        case ast.FunctionDef(decorator_list=[ast.Call(decorator, [], options)]):
            named = all(one.arg in ("do_not_specialize", "noinline") and _is_value(one.value) for one in options)
            return named and ast.unparse(decorator) in JITS
        case ast.FunctionDef(decorator_list=[decorator]):
            return ast.unparse(decorator) in JITS
    return False


def _is_value(node: ast.expr) -> bool:
    """Whether an expression is a literal, a type of the language, or a constexpr of one."""
    while isinstance(node, ast.Call) and ast.unparse(node.func) in VALUE_CALLS and len(node.args) == 1:
        node = node.args[0]
    if re.fullmatch(r"triton\.language\.\w+", ast.unparse(node)):
        return True
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True
