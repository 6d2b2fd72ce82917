"""`Declared`, a kernel as a declaration: sizes, grid, tensors, tiles, what a workgroup touches, and a reference.

Call a declaration with sizes, ``softmax(M=64)``, and it is a `Kernel`: the checks of sizes with their messages, launch,
inputs, occupancy, other grids for the check over a lattice, and signature are worked out here, once for all kernels.

Three things are written as text in the names of sizes, so that they can be read in a line:

- a number: ``"M"``, ``"M/BLOCK_M"`` (a quotient, rounded up) or a product of such, ``"N/BLOCK_N*SPLITS"``;
- a shape or grid: numbers side by side, ``"M K"``;
- arguments of the Triton function: names side by side, ``"M N stride_am=K"`` where a parameter is called otherwise.

A name is a size or one of ``derived``: what follows from the sizes, worked out when something first asks for it.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel, faults_of
from swizzle_sim.workload.launch import ITEM_BYTES, Array, Launch
from xcd_model import Resources, Trace, TraceBuilder
from xcd_model.errors import SizeError
from xcd_model.trace.builder import PlacedArray

MAX_TILE_ITEMS = 1 << 20  # Triton's limit on the items of one tensor
MAX_OFFSET = 2**31 - 1  # the kernels compute offsets in 32-bit integers
MAX_WORKGROUPS = 1 << 20
MAX_INSTRUCTIONS = 3 << 24  # tensor instructions of all workgroups: three quarters of a GiB of trace
MAX_TOUCHES = 8e9  # line touches: about a minute of plain replay
LINE_BYTES = 128  # for estimates of a trace's size only

# Blocks are powers of two, as tl.arange needs. Least and most of one along an axis:
ARANGE = (1, 4096)
DOT = (16, 1024)  # of an operand of tl.dot

# Other grids that a candidate is checked on, in tiles along each axis, by the number of axes: square, skinny, prime,
# fewer workgroups than XCDs. Each is tried with whole tiles and with ragged ones.
GRIDS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: tuple((n,) for n in (1, 2, 3, 7, 8, 9, 13, 16, 31, 37, 64, 100, 127, 256, 304)),
    2: (
        *((1, 1), (1, 5), (3, 1), (2, 2), (4, 4), (4, 8), (7, 5), (8, 8), (5, 16), (13, 3), (11, 11), (16, 16)),
        *((32, 2), (37, 1)),
    ),
    3: ((1, 1, 1), (1, 8, 4), (2, 3, 5), (8, 2, 2), (3, 5, 7), (4, 8, 16), (16, 1, 3), (5, 16, 1), (2, 24, 8)),
}

COMPILER = "compiled for gfx942 with Triton 3.9"
WAVE_SIZE = 64
FEWEST_VGPRS, MOST_VGPRS = 16, 512
N = TypeVar("N", int, np.ndarray)
NUMPY = {"fp16": np.float16, "fp32": np.float32, "int8": np.int8, "int32": np.int32}


def cdiv(a: N, b: int) -> N:
    """Quotient, rounded up: tiles of ``b`` that ``a`` items need."""
    return -(-a // b)


def up(a: N, b: int) -> N:
    """Items of the whole tiles of ``b`` that ``a`` items need."""
    return cdiv(a, b) * b


def lines_of(rows: float, items: int, item_bytes: int = 2) -> float:
    """Lines that a tile covers, about: each row begins a line."""
    return rows * cdiv(items * item_bytes, LINE_BYTES)


class Sizes:
    """Sizes as attributes, and what a declaration derives from them, worked out at the first use and kept."""

    def __init__(self, problem: Mapping[str, int], derived: Mapping[str, Any] | None = None):
        self.__dict__ |= {"problem": dict(problem), "_derived": derived or {}, **problem}

    def __getattr__(self, name: str) -> Any:
        derived = vars(self).get("_derived", {})
        if name not in derived:
            known = ", ".join([*vars(self).get("problem", {}), *derived])
            raise AttributeError(f"{name} is no size and nothing derived from sizes; there are {known}")
        self.__dict__[name] = derived[name](self) if callable(derived[name]) else derived[name]
        return self.__dict__[name]


def number(s: Sizes, text: str | int) -> int:
    """Value of ``"M"``, ``"M/BLOCK_M"``, ``"N/BLOCK_N*SPLITS"`` at some sizes."""
    if isinstance(text, int):
        return text
    parts = (part.partition("/") for part in text.split("*"))
    return math.prod(cdiv(getattr(s, a), getattr(s, b)) if b else getattr(s, a) for a, _, b in parts)


def numbers(s: Sizes, text: str) -> tuple[int, ...]:
    """Values of numbers side by side."""
    return tuple(number(s, one) for one in text.split())


def _named(s: Sizes, text: str) -> dict[str, Any]:
    """Values by parameter of ``"M N stride_am=K"``."""
    pairs = (one.partition("=") for one in text.split())
    return {parameter: getattr(s, name or parameter) for parameter, _, name in pairs}


def normal(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values of unit scale."""
    return draw.standard_normal(shape, np.float32)


@dataclass(frozen=True)
class Tensor:
    """A tensor argument of the Triton function, ``x_ptr`` for ``x`` or ``X``."""

    shape: str = ""
    dtype: str = "fp16"
    role: str = "in"  # or "out", or "inout"
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] = normal  # makes an input,
    given: str = ""  # or the derived array of this name is the input, which has a shape of its own,
    fill: int | None = None  # or a launch begins with this number everywhere, and no reference sees the tensor
    is_index: bool = False
    is_counter: bool = False

    @property
    def is_input(self) -> bool:
        """Whether a reference takes it."""
        return self.role != "out" and self.fill is None

    @property
    def is_output(self) -> bool:
        """Whether a reference makes it."""
        return self.role != "in" and self.fill is None

    def shape_at(self, s: Sizes) -> tuple[int, ...]:
        """Items along each axis."""
        return getattr(s, self.given).shape if self.given else numbers(s, self.shape)

    def array_at(self, s: Sizes) -> Array:
        """What a launch knows of it."""
        index = self.is_index or bool(self.given)
        return Array(
            shape=self.shape_at(s), dtype=self.dtype, role=self.role, is_index=index, is_counter=self.is_counter
        )


def table(given: str) -> Tensor:
    """A tensor of 32-bit integers that decides addresses, as ``derived`` has it under this name."""
    return Tensor(dtype="int32", given=given)


def nothing(_: Sizes) -> dict[str, Any]:
    """No further fields."""
    return {}


def _named_faults(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(self: Declared, *given: Any, **how: Any) -> Any:
        with faults_of(self.name, self.access.__module__):
            return method(self, *given, **how)

    return checked


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A kernel of the suite, or of your own; functions take the sizes, ``lambda s: s.M``."""

    # What it is
    name: str  # of the kernel, and of the Triton function
    summary: str
    sharing: str  # which workgroups share which data, in words
    sources: tuple[str, ...]
    # Its sizes and its grid
    sizes: Mapping[str, int]  # by name, with defaults; one whose default is True or False is a switch
    optional: Mapping[str, int] = field(default_factory=dict)  # more, which a problem names where given
    derived: Mapping[str, Any] = field(default_factory=dict)  # functions of the sizes, or constants
    grid: str  # "M/BLOCK_M N/BLOCK_N": workgroups along x, y, z,
    flat: bool = False  # or of two numbers the tiles of a launch in one dimension, numbered row by row
    grids: tuple[tuple[int, ...], ...] = ()  # other grids, if not those of `GRIDS`,
    others: Callable[[Sizes], Iterable[Mapping[str, int]]] | None = None  # or sizes that have them
    # Its arguments, and what it does with them
    tensors: Mapping[str, Tensor]  # in the order of the function's parameters
    arguments: str = ""  # what follows them,
    constexprs: str = ""  # and the constants that it is compiled with; all blocks if not given
    access: Callable[..., None]  # access(s, build, pid, *tensors): what every workgroup touches, see `TraceBuilder`
    reference: Callable[..., Any]  # reference(s, *inputs): the outputs, in fp32 or better
    flops: Callable[[Sizes], float]
    issued: Callable[[Sizes], float] | None = None  # with masked ones; if not given, those of sizes in whole blocks,
    padded: str = ""  # which are those of the grid and these, "K/BLOCK_K"
    dtype: str = "fp16"  # in which it computes
    # Sizes that it takes
    blocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # least and most of each, names side by side
    rules: Mapping[str, Callable[[Sizes], bool]] = field(default_factory=dict)  # by the message, with "{s.M}" for M
    items: Mapping[str, str] | None = None  # shapes that 32-bit offsets reach, by name; of all tensors if not given
    work: Callable[[Sizes], tuple[float, float]]  # tensor instructions and line touches of a workgroup, about
    # What a workgroup of the compiled function occupies
    compiled: Any  # {(tile, waves): (VGPRs, LDS bytes[, code bytes])}, or a function of the sizes that returns it
    tile: str = ""  # the numbers that `compiled` knows a tile by; all blocks if not given
    estimate: Callable[[Sizes], tuple[int, int, str]] | None = None  # VGPRs, LDS and source of other tiles
    staged: Callable[[Sequence[int]], int] = math.prod  # items of a tile that LDS holds, in proportion
    num_warps: int | str = 4
    num_stages: int = 2
    in_flight: int  # tensor instructions that are issued before the first of them is waited for
    loads_per_step: int = 0  # of a pipelined loop, see `Resources`
    # The rest
    options: Callable[[Sizes], Mapping[str, int]] = nothing  # further ones of the compiler
    more: Callable[[Sizes], Mapping[str, Any]] = nothing  # further fields of `Kernel`, such as programs and claims
    triton: str = ""  # file that holds the function, beside that of `access`; NAME_triton.py if not given
    # its name, if not the kernel's; one that the sizes choose is in NAME_triton.py
    function: str | Callable[[Sizes], str] = ""

    def __post_init__(self):
        """Make it look like a function of its sizes, which is what the registry reads names and switches from."""
        known = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=type(value))
            for name, value in {**self.sizes, **self.optional}.items()
        ]
        object.__setattr__(self, "__signature__", inspect.Signature(known, return_annotation=Kernel))

    def __call__(self, **given: int) -> Kernel:
        """The kernel at some sizes; those not given have their default. SizeError says which of them make no sense."""
        inspect.signature(self).bind(**given)
        s = self.at({name: int(v) if name in self.switches else v for name, v in {**self.sizes, **given}.items()})
        self.check(s)
        return Kernel(
            name=self.name,
            summary=self.summary,
            problem=s.problem,
            dtype=self.dtype,
            grid=self.grid_at(s),
            flops=float(self.flops(s)),
            issued_flops=float(self.issued(s) if self.issued else self.flops(self.in_whole_blocks(s))),
            resources=self.resources(s),
            build_trace=self.tracer(s.problem),
            reference=lambda inputs: self.outputs(s, inputs),
            make_inputs=lambda seed: self.inputs(s, seed),
            triton_source=self.path.read_text(encoding="utf-8"),
            sharing=self.sharing,
            sources=self.sources,
            at_grids=lambda: self.lattice(s),
            make_launch=lambda: self.launch(s),
            **self.more(s),
        )

    def at(self, problem: Mapping[str, int]) -> Sizes:
        """Sizes, unchecked, with what is derived from them."""
        return Sizes(problem, {**self.optional, **self.derived})

    def in_whole_blocks(self, s: Sizes) -> Sizes:
        """Sizes rounded up to whole blocks: what the hardware computes, with what masks throw away."""
        parts = [part.partition("/") for part in re.split("[ *]", f"{self.grid} {self.padded}")]
        return self.at(s.problem | {size: up(getattr(s, size), getattr(s, block)) for size, _, block in parts if block})

    @property
    def switches(self) -> set[str]:
        """Sizes that are 0 or 1."""
        return {name for name, value in {**self.sizes, **self.optional}.items() if isinstance(value, bool)}

    @property
    def path(self) -> Path:
        """File of the Triton function."""
        return Path(inspect.getfile(self.access)).with_name(self.triton or f"{self.name}_triton.py")

    def grid_at(self, s: Sizes) -> Grid:
        """The launch at some sizes."""
        sides = numbers(s, self.grid)
        return Grid((sides[0] * sides[1],), (sides[0], sides[1])) if self.flat else Grid(sides)

    def check(self, s: Sizes) -> None:
        """Refuse sizes that Triton does not take, that offsets of 32 bits do not reach, or that no replay can hold."""
        self._check_blocks(s)
        for says, holds in self.rules.items():
            if not holds(s):
                raise SizeError(f"{self.name}: {says.format(s=s)}")
        shapes = {name: one.shape for name, one in self.tensors.items() if one.shape}
        for what, shape in (shapes if self.items is None else self.items).items():
            if (count := math.prod(numbers(s, shape))) > MAX_OFFSET:
                raise SizeError(
                    f"{self.name}: {what} has {count} items; the kernel's offsets are 32-bit, so at most {MAX_OFFSET}: "
                    "use a smaller problem"
                )
        workgroups = math.prod(numbers(s, self.grid))
        instructions, touches = (workgroups * float(each) for each in self.work(s))
        if workgroups > MAX_WORKGROUPS or instructions > MAX_INSTRUCTIONS or touches > MAX_TOUCHES:
            raise SizeError(
                f"{self.name}: {workgroups} workgroups with {instructions:,.0f} tensor instructions and about "
                f"{touches:,.0f} line touches; the limits are {MAX_WORKGROUPS}, {MAX_INSTRUCTIONS:,} and "
                f"{MAX_TOUCHES:,.0f}: use a smaller problem or larger blocks"
            )

    def _check_blocks(self, s: Sizes) -> None:
        tile: dict[str, int] = {}
        for names, (least, most) in self.blocks.items():
            why = "as tl.arange needs" if least == 1 else "as tl.dot and tl.arange need"
            for name in names.split():
                block = getattr(s, name)
                if block & (block - 1) or not least <= block <= most:
                    raise SizeError(f"{self.name}: {name} = {block}: a power of two from {least} to {most}, {why}")
                tile |= {name: block} if least == 1 else {}
        if (items := math.prod(tile.values())) > MAX_TILE_ITEMS:
            raise SizeError(f"{self.name}: {tile} is a tile of {items} items; Triton takes at most {MAX_TILE_ITEMS}")

    def resources(self, s: Sizes) -> Resources:
        """What a workgroup occupies: a compiler's figures, or in proportion to those of the nearest tile."""
        compiled = self.compiled(s) if callable(self.compiled) else self.compiled
        tile, num_warps = numbers(s, self.tile or " ".join(self.blocks)), number(s, self.num_warps)
        source, code = COMPILER, []
        if (tile, num_warps) in compiled:
            vgprs, lds, *code = compiled[tile, num_warps]
        elif self.estimate is not None:
            vgprs, lds, source = self.estimate(s)
        else:  # in items a thread
            load = np.prod(tile) / num_warps
            near = min(compiled, key=lambda known: abs(np.log(np.prod(known[0]) / known[1] / load)))
            known_vgprs, known_lds, *code = compiled[near]
            scaled = np.ceil(known_vgprs * load * near[1] / np.prod(near[0]))
            vgprs = int(np.clip(scaled, FEWEST_VGPRS, MOST_VGPRS))
            lds = int(np.ceil(known_lds * self.staged(tile) / self.staged(near[0])))
            source = f"estimated: in proportion to the tile {'x'.join(map(str, near[0]))} on {near[1]} waves, {source}"
        return Resources(
            threads=num_warps * WAVE_SIZE,
            vgprs=vgprs,
            lds_bytes=lds,
            instructions_in_flight=self.in_flight,
            source=source,
            code_bytes=sum(code),
            loads_per_step=self.loads_per_step,
        )

    def tracer(self, problem: Mapping[str, int], **how: Any) -> Callable[[int], Trace]:
        """``build_trace(line_bytes)`` of a `Kernel`; ``how`` are further arguments of the access model."""
        s = self.at(problem)

        @functools.wraps(self.access)  # so that who asks where a trace comes from is led to the kernel's file
        def build_trace(line_bytes: int) -> Trace:
            with faults_of(self.name, self.access.__module__):
                grid = self.grid_at(s)
                build = TraceBuilder(n_workgroups=grid.num_pids, line_bytes=line_bytes)
                placed: list[PlacedArray] = [
                    build.place(name, shape=one.shape_at(s), item_bytes=ITEM_BYTES[one.dtype])
                    for name, one in self.tensors.items()
                ]
                self.access(s, build, pids(grid), *placed, **how)
                return build.trace()

        return build_trace

    @_named_faults
    def inputs(self, s: Sizes, seed: int) -> dict[str, np.ndarray]:
        """What the reference takes, by lower-case name; a given table is the same for every seed."""
        draw, found = np.random.default_rng(seed), {}
        for name, one in self.tensors.items():
            if one.given:
                found[name.lower()] = getattr(s, one.given)
            elif one.is_input:
                found[name.lower()] = one.draw(draw, one.shape_at(s)).astype(NUMPY[one.dtype], copy=False)
        return found

    @_named_faults
    def outputs(self, s: Sizes, inputs: Mapping[str, np.ndarray], **how: Any) -> dict[str, np.ndarray]:
        """What the reference gives for them, in the outputs' types."""
        given = [inputs[name.lower()] for name, one in self.tensors.items() if one.is_input]
        out = {name.lower(): NUMPY[one.dtype] for name, one in self.tensors.items() if one.is_output}
        found = self.reference(s, *given, **how)
        several = found if isinstance(found, tuple) else (found,)
        return {name: values.astype(out[name], copy=False) for name, values in zip(out, several, strict=True)}

    @_named_faults
    def launch(self, s: Sizes) -> Launch:
        """Launch of the Triton function."""
        programs = self.more(s).get("programs")
        name = (self.function(s) if callable(self.function) else self.function) or self.name
        filled = {name: one for name, one in self.tensors.items() if one.fill is not None}
        constants = _named(s, self.constexprs or " ".join(self.blocks))

        def make_inputs(seed: int) -> dict[str, np.ndarray]:
            begun = {n: np.full(one.shape_at(s), one.fill, NUMPY[one.dtype]) for n, one in filled.items()}
            return {f"{name.lower()}_ptr": values for name, values in {**self.inputs(s, seed), **begun}.items()}

        return Launch(
            path=self.path.with_name(f"{name}_triton.py") if callable(self.function) else self.path,
            function=name,
            arguments={f"{name.lower()}_ptr": one.array_at(s) for name, one in self.tensors.items()}
            | _named(s, self.arguments),
            constexprs={name: bool(v) if name in self.switches else v for name, v in constants.items()},
            grid=(programs,) if programs else self.grid_at(s).launch,
            num_warps=number(s, self.num_warps),
            num_stages=self.num_stages,
            options=self.options(s),
            make_inputs=make_inputs,
        )

    def lattice(self, s: Sizes) -> Iterable[tuple[Grid, Mapping[str, int]]]:
        """The kernel at other grids, with its sizes there."""
        for other in (self.others or self._by_grids)(s):
            sizes = {**s.problem, **other}
            yield self.grid_at(self.at(sizes)), sizes

    def _by_grids(self, s: Sizes) -> Iterable[Mapping[str, int]]:
        """Other grids: sizes are whole numbers of blocks, and an item less where that leaves as many of them."""
        axes = [axis.partition("/")[::2] for axis in self.grid.split()]
        blocks = [number(s, block) if block else 1 for _, block in axes]
        for tiles in self.grids or GRIDS[len(axes)]:
            for cut in (0, 1) if max(blocks) > 1 else (0,):
                yield {
                    size: n * block - (cut if block > 1 else 0)
                    for (size, _), n, block in zip(axes, tiles, blocks, strict=True)
                }


def pids(grid: Grid) -> tuple[np.ndarray, ...]:
    """Place of each workgroup along each axis of its grid, (n_workgroups,) int64 each.

    The hardware counts the first axis of a launch fastest; a flat launch is decoded row by row, the last one fastest.
    """
    order = np.arange(grid.num_pids, dtype=np.int64)
    if grid.tiles:
        return np.divmod(order, grid.tiles[1])
    return tuple(np.unravel_index(order, grid.launch, order="F"))
