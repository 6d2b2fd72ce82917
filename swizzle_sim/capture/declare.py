"""Declaration of a function in a user's file, there called ``Kernel``: arguments, constants, grid, inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from swizzle_sim.capture.kernel_file import LANGUAGE_NAMES, line_of
from swizzle_sim.capture.sliced_module import read_once
from swizzle_sim.capture.target import OPTIONS, Target, chosen
from swizzle_sim.language.grid import MAX_WORKGROUPS, Grid
from swizzle_sim.triton_source.tile_axes import TileAxes
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Claims
from xcd_model.errors import CaptureError, LanguageError, SizeError, UnknownName
from xcd_model.integers import is_whole

PEAK = {
    **dict.fromkeys(("fp8e4", "fp8e5", "fp8e4b8", "fp8e5b16"), "fp8"),
    **{name: name for name in ("fp16", "bf16", "fp32", "fp64", "int8")},
}

MAX_THREADS, MAX_SHARED_BYTES = 1024, 1 << 18  # of a workgroup


def _line(given: Any, error: BaseException) -> str:
    """``file:line`` of the innermost frame in the file that a function comes from."""
    return line_of(error, Path(getattr(getattr(given, "__code__", None), "co_filename", "")))


class Sizes(dict):
    """Problem sizes, read as ``s.M`` or ``s["M"]``."""

    def __getattr__(self, name: str) -> int:
        if name in self:
            return self[name]
        raise AttributeError(f"no size is called {name}; there is: {', '.join(self)}")


@dataclass(kw_only=True, frozen=True)
class Cuda:
    """What a launch of a CUDA or HIP kernel says beside its grid and arguments.

    Parameters
    ----------
    block : tuple of int, or callable
        Threads along x, y, z; ``block(s)`` of the sizes.
    template : str
        Arguments of a template, such as ``"float, 128"``.
    shared_bytes : int, or callable
        Shared memory that the launch asks for; what the kernel declares with its size is counted [bytes].
    flags : tuple of str
        Options of the compiler: folders of headers, macros.
    vgprs : int
        Registers of a thread as compiled, from ``hipcc --resource-usage`` or ``cuobjdump -res-usage``; 64 is assumed.
    instructions_in_flight : int
        Loads of a workgroup under way at a time; 2 is assumed.
    """

    block: Any
    template: str = ""
    shared_bytes: Any = 0
    flags: tuple[str, ...] = ()
    vgprs: int = 64
    instructions_in_flight: int = 2

    def at(self, s: Sizes, parameters: Sequence[str]) -> dict[str, Any]:
        """Options of a launch, JSON-ready."""
        block = self.block(s) if callable(self.block) else self.block
        sides = (*(block if isinstance(block, Sequence) else (block,)), 1, 1)[:3]
        shared = self.shared_bytes(s) if callable(self.shared_bytes) else self.shared_bytes
        numbers = (*sides, shared, self.vgprs, self.instructions_in_flight)
        if not all(is_whole(one) for one in numbers) or min(sides) < 1 or not 1 <= math.prod(sides) <= MAX_THREADS:
            raise SizeError(f"cuda: block = {block!r}: one to three integers, at most {MAX_THREADS} threads in all")
        if not 0 <= shared <= MAX_SHARED_BYTES:
            raise SizeError(f"cuda: shared_bytes = {shared}: at most {MAX_SHARED_BYTES}")
        plain = {name: getattr(self, name) for name in ("template", "vgprs", "instructions_in_flight")}
        lists = {"flags": list(self.flags), "parameters": list(parameters), "block": [int(n) for n in sides]}
        return {**plain, **lists, "shared_bytes": int(shared)}


@dataclass(kw_only=True, eq=False)
class KernelDeclaration:
    """Declaration of a kernel of Triton, CUDA or HIP."""

    # the ``@triton.jit`` function, unchanged, or where it stands: ``"FILE.py:FUNCTION"``, from the folder of the
    # declaration, or ``"package.module:FUNCTION"``. Of a file that is named so only what the function needs is run, and
    # what is not installed, torch among it, is stood in for. Heuristics around it are evaluated as at a launch.
    # Of CUDA and HIP ``"FILE.cu:FUNCTION"``, ``.cuh`` or ``.hip``, with ``cuda=``.
    function: Any = field(kw_only=False)
    sizes: Mapping[str, int]  # problem sizes with their defaults; what follows gets them as ``s``
    arguments: Any  # ``arguments(s) -> {parameter: Array, int or float}``, every run-time parameter
    # ``grid(s) -> tuple`` of programs along x, y, z. It and ``tiles`` read the constants too, as ``s.BLOCK_M``.
    grid: Any
    # ``constexprs(s) -> {parameter: value}``, every ``tl.constexpr`` without default, and pointers that are None
    constexprs: Any = None
    num_warps: int | None = None  # compile options; by default those of the autotuner's configuration, else 4 and 2
    num_stages: int | None = None
    # further ones: ``waves_per_eu``, ``matrix_instr_nonkdim``, ``kpack``, ``maxnreg``
    options: Mapping[str, Any] = field(default_factory=dict)
    # which of an autotuner's configurations, counted from 0; by default the first that it keeps at these sizes, that
    # compiles and that fits a CU. What ``constexprs`` and the options here say goes before it.
    # Or itself, as constants and options by name: ``{"BLOCK_M": 128, "num_warps": 8}``.
    config: int | Mapping[str, Any] | None = None
    # ``make_inputs(s, seed) -> {parameter: numpy array}``. Tensors left out are drawn at random where they are needed;
    # those with ``is_index=True`` have to be given.
    make_inputs: Callable[[Sizes, int], Mapping[str, Any]] | None = None
    # ``reference(inputs) -> {parameter: numpy array}``, the expected outputs
    reference: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    # ``flops(s) -> float``, operations of one launch; by default those of its matrix products, as captured
    flops: Callable[[Sizes], float] | None = None
    # type the arithmetic runs in; by default that of most operations of its matrix products, without any that of the
    # first floating-point tensor
    dtype: str | None = None
    # ``tiles(s) -> (num_pid_m, num_pid_n)`` where a 1-D grid is decoded row-major into tiles, by default as far as the
    # source tells by what it divides the program id by; of a persistent kernel also ``tiles(s) -> number of tiles``
    tiles: Callable[[Sizes], Sequence[int] | int] | None = None
    # of a persistent kernel, whose program p computes tiles p, p + programs, ...: the size that says how many programs
    # are launched. With as many programs as tiles each computes one tile, which is how the kernel is captured; a
    # capture at the real number of programs is compared with it.
    programs: str | None = None
    # of a persistent kernel whose programs claim tiles from atomic counters instead, arrays with ``is_counter=True``:
    # ``claims(s) -> (pools, tiles in them)``, see `xcd_model.Claims`; ``(1, tiles)`` of a single counter. A third, true
    # value says that programs steal from other pools.
    claims: Callable[[Sizes], tuple[int, ...]] | None = None
    cuda: Cuda | None = None  # of a CUDA or HIP kernel
    name: str = ""  # for people: what the kernel is, and in words which workgroups share data
    summary: str = ""
    sharing: str = ""

    def __post_init__(self) -> None:
        self.target, self.arch = Target.of(self.function), "gfx942"
        self.sizes, self.constexprs = dict(self.sizes), self.constexprs or {}
        self.name = self.name or self.target.name.rpartition(":")[2]
        if self.target.is_c != (self.cuda is not None) or (self.target.is_c and self.programs):
            raise self._wrong("a CUDA or HIP file, and no other, has cuda=Cuda(block=...), and none has programs=")
        self.summary = self.summary or self.target.summary or f"Triton kernel {self.name}"
        if self.programs is not None and self.programs not in self.sizes:
            raise self._wrong(f"programs = {self.programs!r} is no size; there is: {', '.join(self.sizes)}")
        if self.claims is not None and self.programs is None:
            raise self._wrong("claims= are those of persistent programs: give programs=")

    def _wrong(self, words: str, code: str = "declaration") -> CaptureError:
        return CaptureError(f"{self.name}: {words}", code=code)

    @property
    def path(self) -> Path:
        """File of the Triton function."""
        return self.target.path

    def sizes_at(self, sizes: Mapping[str, int]) -> Sizes:
        """Defaults with some sizes replaced, and constants of the kernel that are given like sizes."""
        for name in sizes:
            if name not in self.sizes and name not in self.target.parameters:
                raise UnknownName(f"size of kernel {self.name}", name, self.sizes)
        found = Sizes({**self.sizes, **sizes})
        for name, value in found.items():
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
                raise SizeError(f"{self.name}: {name} = {value!r}: a size is an integer from 1 to {2**31 - 1}")
        return found

    def at(self, **sizes: int) -> Launch:
        """Launch at given sizes; sizes not given keep their default."""
        s = self.sizes_at(sizes)
        given = {name: self._plain(name, value) for name, value in self._value("arguments", self.arguments, s).items()}
        constexprs = {
            name: self._constant(name, v) for name, v in self._value("constexprs", self.constexprs, s).items()
        }
        constexprs |= {name: None for name, value in given.items() if value is None}
        arguments = {name: value for name, value in given.items() if value is not None}
        if others := [name for name in s.keys() - self.sizes.keys() if name in arguments]:
            raise UnknownName(f"size of kernel {self.name}", others[0], self.sizes)
        constexprs |= {name: value for name, value in s.items() if name not in self.sizes}
        both = sorted(arguments.keys() & constexprs.keys())
        if both:
            raise self._wrong(f"{', '.join(both)} is both argument and constexpr", "arguments")
        unknown = {one for a in arguments.values() if isinstance(a, Array) for one in a.points_to} - arguments.keys()
        if unknown:
            raise self._wrong(f"points_to names no argument: {', '.join(unknown)}", "arguments")
        if not any(isinstance(value, Array) for value in arguments.values()):
            raise self._wrong("arguments hold no Array, so the kernel has no memory", "arguments")
        order = self.target.parameters
        place = {name: order.index(name) if name in order else len(order) for name in arguments}
        arguments = {name: arguments[name] for name in sorted(arguments, key=lambda n: place[n])}
        constexprs, options, config = self._decided(arguments, constexprs)
        if self.cuda is not None:
            pointed = {one for array in arguments.values() if isinstance(array, Array) for one in array.points_to}
            if (given.keys() - (pointed - set(order))) ^ set(order):
                raise self._wrong(
                    f"arguments are {', '.join(given)}; its parameters are {', '.join(order)}", "arguments"
                )
            options |= self.cuda.at(s, order)
        return Launch(
            path=self.path,
            function=self.target.name,
            arguments=arguments,
            constexprs=constexprs,
            grid=Grid(self._sides(Sizes({**constexprs, **s}))).launch,
            num_warps=options.pop("num_warps", 4),
            num_stages=options.pop("num_stages", 2),
            options=options,
            config=config,
            sliced_for="" if self.target.decorated is not None or self.cuda else self.arch,
            make_inputs=lambda seed: dict(self.make_inputs(s, seed)) if self.make_inputs else {},
        )

    def configs_at(self, s: Sizes) -> list[int]:
        """Places of the autotuner's configurations that it keeps at given sizes."""
        given = {**self._value("arguments", self.arguments, s), **self._value("constexprs", self.constexprs, s)}
        return self.target.tuning(self.arch).at(given)[1]

    def _decided(
        self, arguments: Mapping[str, Any], constexprs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Constants and compile options, the autotuner's and the heuristics' among them, and the configuration."""
        tuning, parameters = self.target.tuning(self.arch), self.target.parameters
        written = self._written_config()
        constexprs = {**written, **constexprs}
        own = {name: v for name, v in constexprs.items() if name not in OPTIONS or name in parameters}
        options = {name: v for name, v in constexprs.items() if name not in own} | dict(self.options)
        options |= {n: v for n in ("num_warps", "num_stages") if (v := getattr(self, n)) is not None}
        given, words = {**arguments, **own}, ""
        if isinstance(self.config, int) and not tuning.configs:
            raise self._wrong(f"config = {self.config}: there is no autotuner")
        if tuning.configs and not written:
            configs, tried = tuning.at(given)
            number = self.config if isinstance(self.config, int) else tried[0]
            if not 0 <= number < len(configs):
                raise self._wrong(f"config = {number}: the autotuner has 0 to {len(configs) - 1}")
            constants, of_config = chosen(configs[number], parameters)
            own = {**{name: self._constant(name, v) for name, v in constants.items()}, **own}
            options = {**of_config, **options}
            words = f"{number} of {len(configs)}"
        try:
            decided = tuning.decided({**arguments, **own})
        except CaptureError as error:
            raise CaptureError(f"{self.path.name}: {self.name}: {error}", code=error.code) from None
        own |= {name: self._constant(name, value) for name, value in decided.items()}
        if tuning.problem and set(parameters) - own.keys() - arguments.keys() - self.target.defaults():
            raise CaptureError(
                f"{self.path.name}: {tuning.problem}: give what it decides in constexprs=...", code="declaration"
            )
        return own, options, words

    def _written_config(self) -> dict[str, Any]:
        """Constants and options of a configuration that the declaration itself writes."""
        if self.config is None or type(self.config) is int:
            return {}
        if not isinstance(self.config, Mapping) or not self.config:
            raise self._wrong(f"config = {self.config!r}: a number of the autotuner's list, or constants by name")
        if odd := [name for name in self.config if name not in (*OPTIONS, *self.target.parameters)]:
            raise self._wrong(
                f"config: {odd[0]} is no parameter of the kernel and no option; options: {', '.join(OPTIONS)}"
            )
        return {name: self._constant(name, value) for name, value in self.config.items()}

    def _sides(self, s: Sizes) -> tuple[int, ...]:
        found = self._value("grid", self.grid, s)
        if found is ... or (isinstance(found, tuple) and ... in found):
            raise CaptureError(f"{self.name}: grid is still `...`; fill it in", code="declaration")
        if isinstance(found, int):
            found = (found,)
        try:
            sides = tuple(int(side) for side in found)
        except (TypeError, ValueError):
            raise self._wrong(f"grid gives {found!r}: one to three integers") from None
        while self.tiles and len(sides) > 1 and sides[-1] == 1:  # such as the parts of K that a GEMM is not split into
            sides = sides[:-1]
        return sides

    def grid_at(self, s: Sizes, launch: Launch) -> Grid:
        """Grid that a swizzle permutes: that of the launch, or a persistent kernel's tiles."""
        s = Sizes({**launch.constexprs, **s})
        given = self._value("tiles", self.tiles, s) if self.tiles else self._hidden_tiles(launch)
        if isinstance(given, int) and self.programs:
            return Grid((given,))
        try:
            tiles = None if given is None else tuple(int(n) for n in given)
            if tiles is not None and len(tiles) != 2:
                raise ValueError
        except (TypeError, ValueError):
            raise self._wrong(f"tiles gives {given!r}: two integers") from None
        if not self.programs:
            return Grid(launch.grid, (tiles[0], tiles[1]) if tiles else None)
        if tiles:
            return Grid((tiles[0] * tiles[1],), (tiles[0], tiles[1]))
        most = self._sides(Sizes({**s, self.programs: MAX_WORKGROUPS}))
        if len(most) != 1 or most[0] >= MAX_WORKGROUPS:
            raise self._wrong(
                f"programs = {self.programs!r}, and its grid does not end at the number of tiles: say "
                "tiles=lambda s: ..."
            )
        return Grid(most)

    def _hidden_tiles(self, launch: Launch) -> tuple[int, int] | None:
        """Rows and columns that the source divides the id of a one-dimensional launch by; None where it tells none."""
        if self.programs or len(launch.grid) != 1 or self.target.is_c:
            return None
        return None if self._axes is None else self._axes.tiles(launch.integers, launch.grid)

    @cached_property
    def _axes(self) -> TileAxes | None:
        try:
            return TileAxes(read_once(self.path), self.target.name)
        except LanguageError:  # the capture says why
            return None

    def _value(self, part: str, given: Any, s: Sizes) -> Any:
        if not callable(given):
            return given
        try:
            return given(s)
        except (SizeError, CaptureError) as error:
            raise type(error)(f"{_line(given, error)}: {self.name}: {part}: {error}") from error
        except Exception as error:
            raise CaptureError(
                f"{_line(given, error)}: {self.name}: {part} raises {type(error).__name__}: {error}", code="declaration"
            ) from error

    def _plain(self, name: str, value: Any) -> Array | int | float | None:
        if value is ... or (isinstance(value, Array) and value.shape is ...):
            what = "the value" if value is ... else "shape"
            raise CaptureError(
                f"{self.path.name}: {self.name}: {name}: {what} is still `...`; fill it in", code="arguments"
            )
        if value is None or isinstance(value, Array | float | int):
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise self._wrong(f"{name} = {value} does not fit 64 bits", "arguments")
            return value
        raise self._wrong(f"{name} = {value!r}: an argument is an Array, an int, a float or None", "arguments")

    def _constant(self, name: str, value: Any) -> Any:
        if value is ...:
            raise self._wrong(f"{name} is still `...`; fill it in", "arguments")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if type(value).__module__.startswith("triton") and hasattr(value, "name"):  # such as tl.float32
            return f"tl.{LANGUAGE_NAMES.get(value.name, value.name)}"
        raise self._wrong(f"{name} = {value!r}: a constexpr is a number, text, None or a type", "arguments")

    def facts(self, s: Sizes, launch: Launch) -> dict[str, Any]:
        """Description of the kernel for people and models, JSON-ready."""
        grid = self.grid_at(s, launch)
        return {
            "name": self.name,
            "summary": self.summary,
            "sharing": self.sharing,
            "problem": dict(s),
            "dtype": self.dtype,
            "tiles": grid.as_dict()["tiles"],
            "programs": min(grid.num_pids, Grid(launch.grid).num_pids) if self.programs else None,
            **self._claims_at(Sizes({**launch.constexprs, **s}), launch),
            "flops": float(self._value("flops", self.flops, s)) if self.flops else None,
        }

    def _claims_at(self, s: Sizes, launch: Launch) -> dict[str, Any]:
        """Pools and the tiles in them, by the name of a fact, of a kernel that claims its tiles."""
        counters = [name for name, array in launch.arrays.items() if array.is_counter]
        if self.claims is None and not counters:
            return {}
        if self.claims is None or not counters:
            raise self._wrong(
                "tiles are claimed from arrays with is_counter=True, and claims=lambda s: (pools, tiles "
                "in them) says which: give both"
            )
        given = self._value("claims", self.claims, s)
        try:
            pools, local, *steals = map(int, given)
            claims = Claims(pools=pools, local=local, steals=steals == [1])
        except (TypeError, ValueError):
            raise self._wrong(f"claims gives {given!r}: two integers") from None
        return {"claims": asdict(claims)}
