"""Writes the ``Kernel(...)`` declaration of a Triton function as far as its source goes; the file is not run."""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path

from swizzle_sim.capture.cuda.source import C_NAME, drafted
from swizzle_sim.capture.stand_ins import TORCH_DTYPES
from swizzle_sim.triton_source.definitions import Filled
from swizzle_sim.triton_source.parameters import FunctionFacts, Parameter, facts_of
from swizzle_sim.triton_source.source_file import SourceFile, defaults_of, opened, parameters_of, read_source
from swizzle_sim.triton_source.tile_axes import TileAxes
from xcd_model.errors import CaptureError, LanguageError

# What a kernel's launch in the same file says of its arguments. The host function around ``kernel[grid](...)`` is read,
# not run: ``M, K = a.shape`` names sizes, ``torch.empty((M, N))`` and ``empty_like`` give shapes, ``a.stride(0)`` is a
# product of sides. The numbers of a call at the top level or in a main, a test or a benchmark are defaults of sizes.
# What cannot be told stays open.

SHORT = {long: short for short, long in TORCH_DTYPES.items()} | {"half": "fp16", "float": "fp32", "long": "int64"}
MADE = ("empty", "zeros", "ones", "full", "randn", "rand", "new_empty", "new_zeros", "randint")
USUAL_TYPES = {"randint": "int64"}
SAME = (
    "contiguous", "clone", "to", "cuda", "detach", "half", "bfloat16", "float",
    "empty_like", "zeros_like", "ones_like", "rand_like", "randn_like",
)  # fmt: skip
SIDE = re.compile(r"^(\w+)\.shape\[(\d+)\]$")
EXAMPLE = re.compile(r"^$|main|test|bench|demo|example|profile")  # a host function, or the top level, that only tries
CALLED = {"cdiv": "triton.cdiv", "next_power_of_2": "triton.next_power_of_2", "min": "min", "max": "max"}
DEPTH, CALLERS = 8, 2
TYPES = ("float", "bfloat", "int", "uint")  # of Triton's language, without their bits


@dataclass
class Tensor:
    """A tensor of the host: texts of its sides, None where they are not known, and of its type."""

    sides: list[str] | None = None
    dtype: str = ""
    example: list[str] = field(default_factory=list)  # numbers of its sides where the file tries the host function
    block: str = ""  # sides of its blocks, where it is a descriptor that the host makes


@dataclass
class LaunchCall:
    """Answers of one launch, as texts for a declaration that reads sizes as ``s.NAME``."""

    line: int
    arguments: dict[str, str] = field(default_factory=dict)  # scalars and constants by parameter
    tensors: dict[str, Tensor] = field(default_factory=dict)
    grid: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    sizes: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)  # of sizes
    guessed: set[str] = field(default_factory=set)  # answers that are one of several in the source
    same: dict[str, str] = field(default_factory=dict)  # sizes that are equal to others


def launch_of(source: SourceFile, facts: FunctionFacts, wrapper: str = "") -> LaunchCall | None:
    """Answers of a launch of a kernel in its file, None where there is none.

    That is the wrapper's, else the first that hands over what its function is given, which a test of its own does not.
    """
    found = _calls_in(
        source.tree, lambda called: isinstance(called, ast.Subscript) and _last(called.value) == facts.function
    )
    if not found:
        return None

    def rank(one: tuple[ast.FunctionDef, ast.Call]) -> tuple[bool, bool]:
        names = {parameter.arg for parameter in parameters_of(one[0])}
        return one[0].name == wrapper, any(getattr(node, "id", "") in names for node in ast.walk(one[1]))

    host, call = max(found, key=rank)
    return _Host(host, call, _outer(source.tree, host, CALLERS)).launch(facts.parameters)


def _outer(tree: ast.Module, host: ast.FunctionDef, left: int) -> _Host | None:
    """Read the function of the file that calls a host function, which may know what it hands over."""
    found = _calls_in(tree, lambda called: _last(called) == host.name) if left and host.name else []
    return None if not found or found[0][0] is host else _Host(*found[0], _outer(tree, found[0][0], left - 1))


def _calls_in(tree: ast.Module, is_it: Callable[[ast.expr], bool]) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """Functions with a call of something, and that call; the top level counts as a function with no name."""
    top = [one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
    script = ast.parse("def script(): pass").body[0]
    assert isinstance(script, ast.FunctionDef)
    script.name, script.body = "", top
    hosts = [*(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), script]
    calls = ((host, node) for host in hosts for node in ast.walk(host) if isinstance(node, ast.Call))
    return [(host, call) for host, call in calls if is_it(call.func)]


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and _last(node.func) == "wrap_triton":  # torch.library's
        return _last(node.args[0])
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _Host:
    """A host function up to a call in it, with what its own caller hands it."""

    def __init__(self, host: ast.FunctionDef, call: ast.Call, caller: _Host | None = None):
        self.call, self.known = call, dict[str, str]()
        self.tensors: dict[str, Tensor] = {}
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.tries = bool(EXAMPLE.search(host.name.lower()))
        self.sizes: list[str] = caller.sizes if caller else []
        self.defaults: dict[str, str] = caller.defaults if caller else {}
        self.numbers: dict[str, str] = {}  # that an example hands over, by parameter
        self.guesses = False  # whether a text was asked for that is one of several
        self.same: dict[str, str] = {}  # sizes that the host says are equal to others
        if caller:
            self._take(caller, host)
        given = self.known.keys() | self.numbers.keys() | self.tensors.keys()
        self.values |= {name: value for name, value in defaults_of(host).items() if name not in given}
        inside = [node for part in host.body for node in ast.walk(part) if isinstance(node, ast.stmt)]
        before = [node for node in inside if node.lineno < call.lineno]
        always = {id(node) for node in _unconditional(host.body)}
        for stmt in sorted(before, key=lambda node: node.lineno):
            if isinstance(stmt, ast.FunctionDef):
                self.functions[stmt.name] = stmt
            elif isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
                self._assign(stmt.targets[0], stmt.value, id(stmt) in always)
            elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
                changed = ast.BinOp(ast.Name(stmt.target.id), stmt.op, stmt.value)
                self._changed(stmt.target.id, changed if id(stmt) in always else None)
        for stmt in before:
            if isinstance(stmt, ast.Assert):
                self._equal(stmt.test, ast.Eq, ast.Or)
            elif isinstance(stmt, ast.If) and isinstance(stmt.body[0], ast.Raise):
                self._equal(stmt.test, ast.NotEq, ast.And)
        self._gather()

    def _take(self, caller: _Host, host: ast.FunctionDef) -> None:
        """Take what the caller hands over; the numbers of an example are defaults, not constants."""
        names = [one.arg for one in parameters_of(host)]
        given = dict(zip(names, caller.call.args, strict=False))
        given |= {one.arg: one.value for one in caller.call.keywords if one.arg in names}
        for name, value in given.items():
            tensor, text = caller._tensor(value), caller.text(value)
            if tensor.sides and all(one.isdigit() for one in tensor.sides):
                tensor = Tensor(None, tensor.dtype, tensor.sides)
            self.tensors[name] = tensor
            if caller.tries and text is not None and text.isdigit():
                self.numbers[name] = text
            elif text is not None:
                self.known[name] = text

    def launch(self, parameters: Sequence[Parameter]) -> LaunchCall:
        found = LaunchCall(self.call.lineno)
        kinds = {one.name: one.kind for one in parameters}
        named = {one.arg: one.value for one in self.call.keywords if one.arg}
        given = dict(zip(kinds, self._positional(len(kinds) - len(kinds.keys() & named)), strict=False)) | named
        for name, value in given.items():  # what the host does not explain is a size of its own
            if kinds.get(name) == "size" and self.text(value) in (None, "None"):
                if "stride" in [_last(one.func) for one in ast.walk(value) if isinstance(one, ast.Call)]:
                    found.arguments[name] = "..."
                    continue
                number = self.numbers.get(ast.unparse(value), "")
                self.known[ast.unparse(value)] = self._size(name, number)
        for name, value in given.items():
            self.guesses = False
            text = self.text(value)
            if kinds.get(name) == "pointer" and text != "None":
                found.tensors[name] = self._tensor(value)
            elif text is not None and (text != "None" or kinds.get(name) in ("pointer", "constexpr")):
                (found.arguments if name in kinds else found.options)[name] = text
                found.guessed |= {name} if self.guesses else set()
        found.grid, found.sizes, found.defaults, found.same = self._grid(), self.sizes, self.defaults, self.same
        return found

    def _positional(self, count: int) -> list[ast.expr]:
        """Arguments by position, ``*a.stride()`` and ``*a.shape`` as one for each axis; ``count`` is what they fill.

        What comes behind a ``*`` of unknown length has no place.
        """
        args = [part for one in self.call.args for part in _parts(one)]
        stars = {id(one): self._tensor(tensor).sides for one in args if (tensor := _starred(one)[0])}
        open_stars = [one for one, sides in stars.items() if sides is None]
        left = count - (len(args) - len(stars)) - sum(len(sides) for sides in stars.values() if sides)
        each = max(left, 0) // max(len(open_stars), 1)
        found: list[ast.expr] = []
        for one in args:
            tensor, form = _starred(one)
            if tensor is None and isinstance(one, ast.Starred):
                break
            if tensor is None:
                found.append(one)
                continue
            sides, text = stars[id(one)], ast.unparse(tensor)
            axes = range(each if sides is None else len(sides))
            found += [ast.parse(form.format(text, axis), mode="eval").body for axis in axes]
        return found

    def _size(self, name: str, default: str = "") -> str:
        if name not in self.sizes:
            self.sizes.append(name)
        if default:
            self.defaults.setdefault(name, default)
        return f"s.{name}"

    def _changed(self, name: str, value: ast.expr | None) -> None:
        """Keep the new value of a name that had one; None where it may have either."""
        text = self.text(value) if value is not None else None
        self.known[name] = "..." if text is None else text

    def _assign(self, target: ast.expr, value: ast.expr, always: bool = True) -> None:
        match target, value:
            case ast.Tuple(names), ast.Attribute(tensor, "shape"):
                self._unpacked(names, [tensor] if len(names) else [])
            case ast.Tuple(names), ast.Call(ast.Attribute(tensor, "size" | "shape"), []):
                self._unpacked(names, [tensor])
            case ast.Tuple(names), ast.Tuple([ast.Starred(ast.Attribute(tensor, "shape")), *rest]):
                self._unpacked(names[: len(names) - len(rest)], [tensor])
                for one, part in zip(names[len(names) - len(rest) :], rest, strict=True):
                    self._assign(one, part, always)
            case ast.Tuple(names), ast.Tuple(values) if len(names) == len(values):
                for one, part in zip(names, values, strict=True):
                    self._assign(one, part, always)
            case ast.Tuple(names), ast.GeneratorExp(each) | ast.ListComp(each):
                for one in names:
                    self._assign(one, each, always)
            case ast.Tuple(names), _:
                for one in names:
                    self._changed(ast.unparse(one), None)
            case ast.Name(name), _:
                self._named(name, value, always)

    def _named(self, name: str, value: ast.expr, always: bool) -> None:
        made = self._made(value)
        if made is not None:
            self.tensors[name] = made
        elif name in self.sizes or any(getattr(one, "id", "") == name for one in ast.walk(value)):
            self._changed(name, value if always else None)
            return
        elif (example := self._example(value)) is not None and self.text(value) is None:
            self.known[ast.unparse(value)] = self._size(name, example)
        several = name in self.values and ast.unparse(self.values[name]) != ast.unparse(value)
        self.values[name] = ast.Constant(...) if several and made is None else value

    def _unpacked(self, names: Sequence[ast.expr], tensors: Sequence[ast.expr]) -> None:
        sides = []
        for place, one in enumerate(names):
            if not isinstance(one, ast.Name):
                return
            self.values.pop(one.id, None)
            self.known.pop(one.id, None)
            # ``_, N = b.shape``: the side is what another tensor calls it, and has no name here
            examples = [self._tensor(tensor).example[place : place + 1] for tensor in tensors]
            default = next((one[0] for one in examples if one), "")
            sides.append("..." if one.id.startswith("_") else self._size(one.id, default))
            for tensor in tensors:
                self.known[f"{ast.unparse(tensor)}.shape[{place}]"] = sides[-1]
        for tensor in tensors:
            dtype = self.tensors.get(ast.unparse(tensor), Tensor()).dtype
            self.tensors[ast.unparse(tensor)] = Tensor(sides, dtype)

    def _equal(self, test: ast.expr, what: type[ast.cmpop], loose: type[ast.boolop]) -> None:
        """Fill in what ``assert a.shape[1] == b.shape[0]``, ``a.shape == b.shape`` or ``a.dtype == b.dtype`` give.

        Nothing where they stand with others of which one is enough.
        """
        for node in [] if any(isinstance(one, loose) for one in ast.walk(test)) else ast.walk(test):
            if isinstance(node, ast.Compare) and all(isinstance(op, what) for op in node.ops):
                sides = [node.left, *node.comparators]
                for one, other in permutations(sides, 2):
                    self._fill(one, other)

    def _fill(self, one: ast.expr, other: ast.expr) -> None:
        match one, other:
            case ast.Attribute(mine, "shape"), ast.Attribute(its, "shape"):
                known, sides = self._tensor(mine), self._tensor(its).sides
                if known.sides is None and sides is not None:
                    self.tensors[ast.unparse(mine)] = Tensor(list(sides), known.dtype, known.example)
            case ast.Attribute(mine, "dtype"), ast.Attribute(its, "dtype"):
                known = self._tensor(mine)
                self.tensors[ast.unparse(mine)] = replace(known, dtype=known.dtype or self._tensor(its).dtype)
            case ast.Subscript(ast.Attribute(mine, "shape"), axis), _:
                known, place, text = self._tensor(mine), _integer(axis), self.text(other)
                if text and self.text(one) is None and place is not None:
                    if known.sides is None:
                        self.known[ast.unparse(one)] = text
                    elif place < len(known.sides):
                        known.sides[place] = text
                else:
                    self._alike(one, other)
            case _:
                self._alike(one, other)

    def _alike(self, one: ast.expr, other: ast.expr) -> None:
        """Give two sizes that are equal one name, that of the first."""
        names = [text[2:] for text in (self.text(one), self.text(other)) if text and text[2:] in self.sizes]
        first, *others = sorted({self.same.get(name, name) for name in names}, key=self.sizes.index)[:2] or [""]
        for later in others:
            self.same = {name: first if to == later else to for name, to in self.same.items()} | {later: first}

    def _gather(self) -> None:
        """Give a tensor the sides that are known one by one, where they are two or more and leave none out."""
        found: dict[str, dict[int, str]] = {}
        for text, known in self.known.items():
            if (side := SIDE.match(text)) and known != "...":
                found.setdefault(side[1], {})[int(side[2])] = known
        for name, sides in found.items():
            tensor = self.tensors.get(name, Tensor())
            whole = sorted(sides) == list(range(len(tensor.example) or max(2, len(sides))))
            if tensor.sides is None and whole:
                self.tensors[name] = Tensor([sides[axis] for axis in sorted(sides)], tensor.dtype, tensor.example)

    def _example(self, side: ast.expr) -> str | None:
        """Number of a side, ``a.shape[0]``, where the file tries the host function; None of what is no side."""
        match side:
            case ast.Subscript(ast.Attribute(tensor, "shape"), axis) | ast.Call(ast.Attribute(tensor, "size"), [axis]):
                place, example = _integer(axis), self._tensor(tensor).example
                return example[place] if place is not None and -len(example) <= place < len(example) else ""
            case ast.Call(ast.Attribute(_, "size" | "numel"), _):
                return ""
        return None

    def _descriptor(self, tensor: ast.expr, given: Sequence[ast.expr]) -> Tensor:
        """Tensor behind a descriptor; its sides are as open as its block has them where nobody names them."""
        known, sides = self._tensor(tensor), getattr(given[-1], "elts", []) if given else []
        block = [self.text(side) or "..." for side in sides] or ["..."]
        whole = known.sides or ["..."] * len(block)
        return Tensor(whole, known.dtype, known.example, ", ".join(block) + "," * (len(block) == 1))

    def _made(self, value: ast.expr) -> Tensor | None:
        """Tensor that an expression makes; None where it makes none that is understood."""
        match value:
            case ast.Call(made, [tensor, *given], keywords) if "TensorDescriptor" in ast.unparse(made):
                blocks = [one.value for one in keywords if one.arg == "block_shape"]
                return self._descriptor(tensor, [*given, *blocks])
            case ast.Call(ast.Attribute(owner, name), given) if name in (*MADE, *SAME):
                written = [one.value for one in value.keywords if one.arg == "dtype"] + (given if name == "to" else [])
                named = [self._dtype(one) for one in written] + ([SHORT[name]] if name in SHORT else [])
                like = self._tensor(given[0] if name.endswith("_like") and given else owner)
                usual = like.dtype if name in SAME or name.startswith("new_") else USUAL_TYPES.get(name, "fp32")
                dtype = next(filter(None, named), "" if written and name != "to" else usual)
                if name in SAME:
                    return Tensor(like.sides, dtype, like.example)
                sides = given[0].elts if given and isinstance(given[0], ast.Tuple | ast.List) else given
                sides = sides[:1] if name == "full" and sides is given else sides
                texts = [self.text(side) for side in sides]
                is_one = sides is given and texts == [None]  # a whole shape, perhaps
                return Tensor(None if is_one else [text or "..." for text in texts], dtype) if sides else None
            case ast.BinOp(left, _, right):
                return next((one for one in (self._tensor(left), self._tensor(right)) if one != Tensor()), None)
        return None

    def _dtype(self, value: ast.expr) -> str:
        match value:
            case ast.Attribute(ast.Name("torch"), name):
                return SHORT.get(name, "")
            case ast.Attribute(tensor, "dtype"):
                return self._tensor(tensor).dtype
            case ast.Name(name) if name in self.values and not isinstance(self.values[name], ast.Name):
                return self._dtype(self.values[name])
        return ""

    def _tensor(self, value: ast.expr) -> Tensor:
        return self.tensors.get(ast.unparse(value)) or self._made(value) or Tensor()

    def _grid(self) -> list[str]:
        subscript = self.call.func
        assert isinstance(subscript, ast.Subscript)
        grid: ast.expr | None = subscript.slice
        if isinstance(grid, ast.Name):
            helper = self.functions.get(grid.id)
            returned = [one.value for one in ast.walk(helper) if isinstance(one, ast.Return)] if helper else []
            grid = returned[0] if returned else self.values.get(grid.id)
        grid = grid.body if isinstance(grid, ast.Lambda) else grid
        sides = grid.elts if isinstance(grid, ast.Tuple | ast.List) else [grid] if grid is not None else []
        texts = [self.text(side) for side in sides]
        return ["..." if text is None else ast.unparse(ast.parse(text, mode="eval")) for text in texts]

    def text(self, node: ast.expr, depth: int = DEPTH) -> str | None:
        """Text of an expression over sizes; None where it is not known."""
        if (known := self.known.get(ast.unparse(node))) is not None:
            return None if known == "..." else known
        found: str | None = None
        match node:
            case ast.Constant(bool() | int() | float() | str() | None) | ast.UnaryOp(
                ast.USub(), ast.Constant(int() | float())
            ):
                found = ast.unparse(node)
            case ast.Attribute(ast.Name("tl"), name) if name.rstrip("0123456789") in TYPES:
                found = f'"tl.{name}"'
            case ast.Name(name) if name in self.values and depth:
                found = self.text(self.values[name], depth - 1)
            case ast.Name(name) if name in self.sizes:
                found = f"s.{name}"
            case ast.Subscript(ast.Name(), ast.Constant(str(name))):  # META["BLOCK_M"]
                found = f"s.{name}"
            case ast.Subscript(ast.Attribute(tensor, "shape"), side) | ast.Call(ast.Attribute(tensor, "size"), [side]):
                found = next((one for one in self._from(tensor, side)[:1] if one != "..."), None)
            case ast.Call(ast.Attribute(tensor, "stride"), [axis]):
                found = self._stride(tensor, axis)
            case ast.Call(ast.Attribute(tensor, "numel"), []):
                sides = self._tensor(tensor).sides or ["..."]
                found = None if "..." in sides else f"({' * '.join(sides)})"
            case ast.BinOp(left, op, right):
                parts = [self.text(left, depth), self.text(right, depth)]
                word = ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b")))[1:-1]
                found = None if {None, "None"} & {*parts} else f"({word.join(filter(None, parts))})"
            case ast.Call(ast.Attribute(_, name) | ast.Name(name), given, []) if name in CALLED:
                parts = [self.text(one, depth) for one in given]
                found = None if {None, "None"} & {*parts} else f"{CALLED[name]}({', '.join(filter(None, parts))})"
            case ast.IfExp(_, yes, _):
                found, self.guesses = self.text(yes, depth), True
        return found

    def _from(self, tensor: ast.expr, axis: ast.expr) -> list[str]:
        """Sides of a tensor from an axis on; none where they are not known."""
        sides, place = self._tensor(tensor).sides or [], _integer(axis)
        return sides[place % len(sides) :] if place is not None and -len(sides) <= place < len(sides) else []

    def _stride(self, tensor: ast.expr, axis: ast.expr) -> str | None:
        """Stride of a tensor that lies row by row."""
        _, *inner = self._from(tensor, axis) or ["", "..."]
        return None if "..." in inner else " * ".join(inner) or "1"


def _unconditional(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run whenever the function does, those under ``with`` among them."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, ast.With):
            yield from _unconditional(stmt.body)


def _parts(node: ast.expr) -> list[ast.expr]:
    """Items of ``*(a, b)`` and of ``*((a, b) if given else (0, 0))``; anything else as it is."""
    match node:
        case ast.Starred(ast.Tuple(items)):
            return items
        case ast.Starred(ast.IfExp(test, ast.Tuple(yes), ast.Tuple(no))) if len(yes) == len(no):
            return [ast.IfExp(test, *both) for both in zip(yes, no, strict=True)]
    return [node]


def _starred(node: ast.expr) -> tuple[ast.expr | None, str]:
    """Tensor of ``*a.stride()``, ``*a.size()`` or ``*a.shape``, and the form of one of its items."""
    match node:
        case ast.Starred(ast.Call(ast.Attribute(tensor, "stride"), [])):
            return tensor, "{}.stride({})"
        case ast.Starred(ast.Call(ast.Attribute(tensor, "size"), []) | ast.Attribute(tensor, "shape")):
            return tensor, "{}.shape[{}]"
    return None, ""


def _integer(node: ast.expr) -> int | None:
    value = ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else None
    return value if type(value) is int else None


BLOCKS = re.compile(r"^(BLOCK|TILE)|SIZE$")
GROUPS = re.compile(r"GROUP")
TYPED = re.compile(r"DTYPE|_TYPE$|dtype")
ALONG = "items from one to the next along this axis"
USUAL_SIZES = (  # of what a name is the number
    (re.compile(r"^(b|bs|bsz|z)$|batch|experts?$|num_(reqs|seqs)$|n_?seqs?$", re.I), 4),
    (re.compile(r"head_?(dim|size)|^d_?head$|^group_(size|[nk])$", re.I), 128),
    (re.compile(r"heads?(_num)?$|^h[qkv]*$", re.I), 16),
    (re.compile(r"groups?(_num)?$|ratio$|^top_?k$", re.I), 2),
    (re.compile(""), 1024),
)
GUESSES = (
    (GROUPS, "8", "a guess"),
    (BLOCKS, "64", "a guess"),
    (TYPED, '"tl.float32"', "a type of Triton's language, as text"),
)


def write_declaration(target: str, output: Path | None) -> tuple[Path, list[str]]:
    """Write the declaration of ``FILE:FUNCTION``."""
    if of_c := re.fullmatch(C_NAME, target):
        source, function = Path(of_c[1]), of_c[2]
        path = output or source.with_name(f"{function.rpartition(':')[2]}_kernel.py")
        return path, _written(
            path, *drafted(source, function, os.path.relpath(source.resolve(), path.parent.resolve()))
        )
    name, colon, function = target.rpartition(":")
    if not colon or not function.isidentifier():
        raise CaptureError(f"{target!r}: write FILE:FUNCTION, such as my_kernel.py:matmul", code="declaration")
    source = Path(name)
    try:
        text = opened(read_source(source))
        wrapper, function = function, _launched(text.tree, function)
        path = output or source.with_name(f"{function.removesuffix('_kernel')}_kernel.py")
        facts = facts_of(text, function)
        call = launch_of(text, facts, wrapper)
        tiles = tiles_of(text, facts, call)
    except LanguageError as error:
        raise CaptureError(str(error), code="declaration") from None
    beside = os.path.relpath(source.resolve(), path.parent.resolve())
    return path, _written(path, *declaration_of(facts, beside, call, tiles))


def _written(path: Path, declaration: str, open_points: list[str]) -> list[str]:
    """Write a new file; what it leaves open."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(declaration)
    except FileExistsError:
        raise CaptureError(f"{path}: exists and is not overwritten; name another with -o", code="declaration") from None
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written ({error.strerror})", code="declaration") from None
    return open_points


def _launched(tree: ast.Module, name: str) -> str:
    """Function itself, or the kernel that it launches where it is a wrapper of one."""
    host = next((one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name), None)
    calls = [one.func for one in ast.walk(host or ast.Module([], [])) if isinstance(one, ast.Call)]
    launched = {_last(one.value) for one in calls if isinstance(one, ast.Subscript)}
    kernels = sorted({one.name for one in tree.body if isinstance(one, ast.FunctionDef)} & launched)
    if host and len(kernels) > 1:
        raise CaptureError(f"{name} launches {', '.join(kernels)}: name one of them", code="declaration")
    return kernels[0] if len(kernels) == 1 else name


def declaration_of(
    facts: FunctionFacts, file: str, call: LaunchCall | None, tiles: tuple[str, str] | None
) -> tuple[str, list[str]]:
    """Text of the declaration, with tile rows and columns of a one-dimensional launch, and what is left to complete."""
    call = call or LaunchCall(0)
    lines, open_points = _lines(facts, call, is_constant=False)
    constants, open_constants = _lines(facts, call, is_constant=True)
    sides = call.grid if call.grid and len(call.grid) >= facts.axes else ["..."] * facts.axes
    open_points += [*open_constants, *(["grid"] if any("..." in side for side in sides) else [])]
    unanswered = (p for p in facts.parameters if p.name not in call.arguments and p.default is None)
    named = [p.name for p in unanswered if p.kind == "size"]
    sizes = [one for one in dict.fromkeys([*call.sizes, *named]) if one not in call.same]
    usual = {name: next(size for names, size in USUAL_SIZES if names.search(name)) for name in sizes}
    size_text = ", ".join(f'"{name}": {call.defaults.get(name, usual[name])}' for name in sizes)
    rest = f" The rest is of the launch in its line {call.line}." if call.line else ""
    text = "\n".join(
        [
            f'"""Declaration of {facts.function} in {file}: complete each ... and see each CHECK.{rest}"""',
            "",
            "import triton  # for triton.cdiv and the like",
            "",
            "from swizzle_sim.capture import Array, Kernel",
            "",
            "kernel = Kernel(",
            f'    "{file}:{facts.function}",',
            f"    sizes={{{size_text}}},  # CHECK: names and defaults; what follows reads them as s.NAME",
            "    arguments=lambda s: {",
            *lines,
            "    },",
            "    constexprs=lambda s: {",
            *constants,
            "    },",
            *_grid_lines(facts, call, sides, tiles),
            *_option_lines(facts, call),
            "    # make_inputs=lambda s, seed: {...},  # numpy arrays; needed for tensors with is_index=True",
            "    # reference=lambda inputs: {...},",
            '    # programs="PROGRAMS",  # the size that is the number of programs, if each steps through tiles',
            ")",
            "",
        ]
    )
    text = re.sub(r"\bs\.(\w+)", lambda size: f"s.{call.same.get(size[1], size[1])}", text)
    ast.parse(text)
    return text, open_points


def _grid_lines(facts: FunctionFacts, call: LaunchCall, sides: list[str], tiles: tuple[str, str] | None) -> list[str]:
    hints = f" The source divides: {'; '.join(facts.divisions)}." if facts.divisions and not call.grid else ""
    found = [
        f"    # CHECK: programs along {' and '.join('xyz'[: len(sides)])}.{hints}",
        f"    grid=lambda s: ({', '.join(sides)}{',' if len(sides) == 1 else ''}),",
    ]
    if tiles:
        rows, columns = tiles
        rows = rows or ("..." if "..." in sides[0] else _over(sides[0], columns))
        found.append(f"    tiles=lambda s: ({rows}, {columns}),  # CHECK: rows and columns; the id is divided so")
    elif len(sides) == 1:
        found.append("    # tiles=lambda s: (rows, columns),  # without it no order by rows and columns is tried")
    return found


def _over(whole: str, part: str) -> str:
    """Text of a quotient; of a product by one of its factors the other."""
    match ast.parse(whole, mode="eval").body:
        case ast.BinOp(one, ast.Mult(), other) if part in (ast.unparse(one), ast.unparse(other)):
            return ast.unparse(one) if ast.unparse(other) == part else ast.unparse(other)
        case ast.Name() | ast.Attribute() | ast.Call():
            return f"{whole} // {part}"
    return f"({whole}) // ({part})"


def _option_lines(facts: FunctionFacts, call: LaunchCall) -> list[str]:
    if facts.is_tuned and "num_warps" not in call.options:
        return [
            "    # constants, num_warps and num_stages that are not here: the autotuner's; config=0 takes its first"
        ]
    usual = {"num_warps": "4", "num_stages": "2"}
    return [
        f"    {name}={call.options.get(name, value)},"
        + ("" if name in call.options and name not in call.guessed else "  # CHECK: of your launch")
        for name, value in usual.items()
        if "s." not in call.options.get(name, "")
    ]


def tiles_of(source: SourceFile, facts: FunctionFacts, call: LaunchCall | None) -> tuple[str, str] | None:
    """Texts of tile rows, empty where unknown, and columns, that the source divides the program id by."""
    found = TileAxes(source, facts.function).axes() if facts.axes == 1 else None
    if found is None:
        return None
    kinds = {p.name: p.kind for p in facts.parameters}
    meaning = {p.name: f"s.{p.name}" for p in facts.parameters if p.kind in ("size", "constexpr")}
    meaning |= {name: text for name, text in (call.arguments if call else {}).items() if kinds.get(name) == "size"}
    rows, columns = (_in_sizes(one, meaning) if one is not None else "" for one in found)
    return (rows or "", columns) if columns else None


def _in_sizes(node: ast.expr, meaning: Mapping[str, str]) -> str:
    """Text over sizes of an expression over parameters; empty where one of them is no size."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {"tl", "triton", "min", "max", "cdiv"}
    if not names <= meaning.keys():
        return ""
    filled = Filled({name: ast.parse(meaning[name], mode="eval").body for name in names}).visit(copy.deepcopy(node))
    return re.sub(r"\b(tl\.|triton\.)?cdiv\(", "triton.cdiv(", ast.unparse(filled))


def _lines(facts: FunctionFacts, call: LaunchCall, *, is_constant: bool) -> tuple[list[str], list[str]]:
    """Lines for the arguments, or for the constexprs that need a value, and the names that are left open."""
    lines, open_points = [], []
    for parameter in facts.parameters:
        name, answered = parameter.name, parameter.name in call.arguments
        is_tuned = is_constant and facts.is_tuned and (GROUPS.search(name) or BLOCKS.search(name))
        is_decided = parameter.default is not None or name in facts.decided or is_tuned
        if (parameter.kind == "constexpr") != is_constant or (is_decided and not answered):
            continue
        if answered:
            value, note = call.arguments[name], "one of several in the source" if name in call.guessed else ""
            note = ALONG if value == "..." else note
        elif is_constant:
            guesses = ((text, note) for names, text, note in GUESSES if names.search(name))
            value, note = next(guesses, ("...", "not in the source"))
        else:
            value, note = _argument(parameter, call.tensors.get(name, Tensor()))
        lines.append(f'        "{name}": {value},' + (f"  # CHECK: {note}" if note else ""))
        if "..." in value:
            open_points.append(name)
    return lines, open_points


def _argument(parameter: Parameter, known: Tensor) -> tuple[str, str]:
    """Text and remark of an argument that is no constant."""
    if parameter.kind == "pointer":
        dtype = known.dtype or ("int32" if parameter.is_index else "fp16")
        index = ", is_index=True" if parameter.is_index else ""
        role = "" if parameter.role == "in" else f', role="{parameter.role}"'
        sides = known.sides or []
        shape = f"({', '.join(sides)}{',' if len(sides) == 1 else ''})" if sides else "..."
        note = "shape and dtype" if "..." in shape else "" if known.dtype else "dtype"
        sides_of_block = known.block or "..." * parameter.is_descriptor
        block = f", block=({sides_of_block})" if sides_of_block else ""
        return f'Array(shape={shape}, dtype="{dtype}"{role}{index}{block})', note
    if parameter.kind == "stride":
        return "...", ALONG
    return ("1.0", "value") if parameter.kind == "float" else (f"s.{parameter.name}", "")
