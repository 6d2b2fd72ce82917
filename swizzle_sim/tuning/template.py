"""`Template`: a kernel whose constants and compile options are parameters, under the limits of a GPU.

    constants, options -> threads, registers, LDS -> compile -> spills, fit -> capture -> same stores -> Instance
                          before a compile                     before a replay

What spills, or does not fit, rules larger blocks out. A loop that is not pipelined in two stages or more has the same
code in any such number, and a kernel without loops has no stages. `sketch` is an instance that is not compiled yet.

Constants are the block sizes of a suite kernel, and of a user's kernel its integer ``tl.constexpr`` parameters that
name a block, or that its autotuner varies. A declaration gives its grid for each; what it refuses is pruned with its
reason. An instance has to store exactly what the kernel stores as it is.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from swizzle_sim.capture.capture import capture
from swizzle_sim.capture.occupancy import ARCHITECTURES, Compiled, compile_each
from swizzle_sim.capture.process import triton_version, worker_reply
from swizzle_sim.capture.user_kernel import describe, inputs_of, kernel_of, name_of, request_of, stored_capture
from swizzle_sim.capture.workload import Workload, workload
from swizzle_sim.rewrite.source import nodes
from swizzle_sim.tuning.constants import Parametrised, parametrised
from swizzle_sim.tuning.estimate import estimated
from swizzle_sim.workload.kernels import Kernel, kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu, Resources, Trace, workgroups_per_cu
from xcd_model.errors import CompileError, ReplayError, SwizzleSimError

Values = dict[str, int]
Sides = tuple[str, ...]
# names of constants that a launch may choose; the width of a head is none
BLOCK = re.compile(r"(BLOCK|TILE|GROUP)(?!.*(_DMODEL|_DPE|_DV|HEAD))|^B[MNK]$")
FEWEST_ITEMS, MOST_ITEMS, OCTAVES = 16, 256, 3  # of a block: its range, unless its own size lies beyond, and how far
WARPS, STAGES = (1, 2, 4, 8, 16), {"gfx": (1, 2, 3), "sm_": (1, 2, 3, 4, 5)}
# By architecture, options that Triton's compiler takes; 0 leaves one out.
OPTIONS: dict[str, dict[str, tuple[int, ...]]] = {
    "gfx942": {"waves_per_eu": (0, 1, 2, 4), "matrix_instr_nonkdim": (0, 16, 32), "kpack": (0, 1, 2)},
    "gfx950": {"waves_per_eu": (0, 1, 2, 4), "matrix_instr_nonkdim": (0, 16, 32)},
    **{arch: {"maxnreg": (0, 96, 128, 168)} for arch in ("sm_90a", "sm_100a", "sm_121a")},
}
SURE = 1.3  # times what there is, from which an estimate rules a configuration out
TOO_LARGE = ("spills", "does-not-fit")
OF_PRODUCTS = ("matrix_instr_nonkdim", "kpack")
MOST_ACCUMULATED = {"gfx": 256, "sm_": 192}  # registers of a lane for the blocks that a loop adds to
MADE, REDUCED = ("zeros", "full"), ("max", "min", "sum")  # functions of the language that give a block
KEPT = 8  # instances whose traces stay in memory
COMPILED = "compiled for "  # how the source of compiled resources begins
UNCHANGED = "as it is"


@dataclass(frozen=True)
class Instance:
    """A configuration of a kernel: what it occupies, or why it is pruned."""

    resources: Resources | None
    pruned: str = ""  # threads, registers, refused, no-compile, spills, does-not-fit, other-outputs, compiles
    why: str = ""


class Template:
    """A kernel as launched, and its other configurations.

    ``compile`` takes resources from a compile where there is a compiler, at most ``most_compiles`` of them; else those
    of a suite kernel are its declaration's estimate, for its blocks alone, and a user's kernel stays as it is.
    ``options`` varies options of the compiler that the launch does not have.
    """

    def __init__(
        self, base: Kernel, gpu: Gpu, *, compile: bool = True, options: bool = False, most_compiles: int = 200
    ):
        self.base, self.gpu, self.most_compiles, self.compiled = base, gpu, most_compiles, 0
        self._all_options = options
        self.compiles = compile and has_compiler(gpu)
        self.pruned: Counter[str] = Counter()  # configurations ruled out before a replay, by reason
        self.why: dict[str, str] = {}  # of each reason, the first configuration and its words
        self._found: dict[tuple[int, ...], Instance] = {}
        self._ready: dict[tuple[int, ...], Compiled | CompileError] = {}  # compiled, and not looked at yet
        self._captures = lru_cache(KEPT)(capture)
        # whether a trace needs no compile
        self._captured_alone = not base.file or (base.programs is None and base.claims is None)
        self._launches: dict[tuple[int, ...], Launch] = {}
        self.problem = self._why_fixed()
        self.numbers: Parametrised | None = None  # of a user's kernel none of whose constants is a parameter
        self.no_numbers = ""  # why there are none
        self.ranges = {} if self.problem else self._ranges()
        self._found[self.key(self.start)] = Instance(self.base.resources)

    def _why_fixed(self) -> str:
        """Why the kernel has one configuration alone; empty where it has others."""
        if self.base.launch is None:
            return f"{self.base.name} has no Triton launch to change"
        if self.base.file and not self.compiles:
            return f"{self.base.name} is a user's kernel: its registers come from a compile for {self.gpu.arch} alone"
        return ""

    @property
    def start(self) -> Values:
        """The kernel as it is launched."""
        return self.values_of(self.base.launch) if self.base.launch and self.ranges else {}

    def values_of(self, launch: Launch) -> Values:
        """Values of a launch of the kernel."""
        given = {**(self.numbers.values if self.numbers else {}), **launch.constexprs, **launch.options}
        found = {name: int(given.get(name) or 0) for name in self.ranges}
        return found | {"num_warps": launch.num_warps, "num_stages": launch.num_stages}

    @property
    def constants(self) -> list[str]:
        """Constants that are searched."""
        launch = self.base.launch
        known = {*(launch.constexprs if launch else ()), *(self.numbers.values if self.numbers else ())}
        return [name for name in self.ranges if name in known]

    def _ranges(self) -> dict[str, tuple[int, ...]]:
        """Values of each constant and option."""
        launch = self.base.launch
        assert launch
        varied: dict[str, set[int]] = {}  # values of each constant in the configurations of the autotuner
        for one in self.autotuned:
            for name, number in one.integers.items():
                varied.setdefault(name, set()).add(number)
        found: dict[str, tuple[int, ...]] = {}
        for name, value in launch.constexprs.items():
            known = self.base.file or name in self.base.problem
            if type(value) is int and known and (BLOCK.search(name) or len(varied.get(name, ())) > 1):
                found[name] = tuple(sorted({*_near(name, value), *varied.get(name, ())}))
        if self.base.file and not any("GROUP" not in name for name in found):
            try:
                self.numbers = parametrised(workload(self.base.file, self.base.problem))
                found |= {name: tuple(sorted({*_near(name, one)})) for name, one in self.numbers.values.items()}
            except SwizzleSimError as error:
                self.no_numbers = f"{error}; of its constants none has BLOCK, TILE or GROUP in its name"
        loops = any(isinstance(one, ast.For | ast.While) for one in ast.walk(ast.parse(self.base.triton_source)))
        stages = STAGES[self.gpu.arch[:3]] if loops else ()
        options = {"num_warps": (*WARPS, launch.num_warps), "num_stages": (*stages, launch.num_stages)}
        options |= {name: (*values, int(launch.options.get(name, 0))) for name, values in self._options().items()}
        every = {**found, **options} if self.compiles else found  # what a compiler decides, an estimate does not know
        return {name: tuple(sorted(set(values))) for name, values in every.items()}

    def _options(self) -> dict[str, tuple[int, ...]]:
        """Options of the compiler that the launch has, or all of them; those of products only where there is one."""
        launch, has_product = self.base.launch, ".dot(" in self.base.triton_source
        found = OPTIONS.get(self.gpu.arch, {})
        given = {name for one in [launch, *self.autotuned] if one for name in one.options}
        wanted = {name for name in found if has_product or name not in OF_PRODUCTS} if self._all_options else given
        return {name: values for name, values in found.items() if name in wanted}

    @cached_property
    def autotuned(self) -> list[Launch]:
        """The autotuner's configurations, that of the kernel as it is among them."""
        if self.base.launch is None or not self.base.launch.config:
            return []
        with worker_reply({"verb": "configurations", **request_of(self.base.file, self.base.problem)}) as (reply, _):
            return [Launch.from_dict(one["launch"]) for one in reply["configurations"] if "launch" in one]

    def key(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """What tells configurations apart."""
        return tuple(values[name] for name in self.ranges)

    def prepare(self, many: Sequence[Values], processes: int) -> None:
        """Compile configurations at once, those that are new and that no limit rules out, as many as may be."""
        known = {**self._found, **self._ready}
        launches: dict[tuple[int, ...], Launch] = {}
        for values in many if self.compiles else ():
            with suppress(SwizzleSimError):  # refused by its declaration, as `instance` says
                if self.key(values) not in known and self.is_plausible(values):
                    launches[self.key(values)] = self.launch(values)
        keys = list(launches)[: max(0, self.most_compiles - self.compiled)]
        self._ready |= zip(keys, compile_each([launches[key] for key in keys], self.gpu.arch, processes), strict=True)

    def is_plausible(self, values: Mapping[str, int]) -> bool:
        """Whether a configuration is worth a compile, or had one that it passed."""
        key = self.key(values)
        if key not in self._found and (same := self._same_code(values)):
            self._found[key] = same
        if key not in self._found and (ruled_out := self._beforehand(values)):
            self.prune(ruled_out.pruned, values, ruled_out.why)
        return key not in self._found or self._found[key].resources is not None

    def _same_code(self, values: Mapping[str, int]) -> Instance | None:
        """Compiled instance in another number of stages that is not pipelined: its loop is the same in any number."""
        for stages in self.ranges.get("num_stages", ()) if values["num_stages"] > 1 else ():
            found = self._found.get(self.key({**values, "num_stages": stages}))
            known = found and found.resources
            if stages > 1 and known and not known.loads_per_step and known.source.startswith(COMPILED):
                return found
        return None

    def instance(self, values: Mapping[str, int]) -> Instance:
        """Resources of a configuration; a pruned one counts once."""
        key = self.key(values)
        if self.is_plausible(values) and key not in self._found:
            found = self._found[key] = self._checked(values)
            if found.pruned:
                self.prune(found.pruned, values, found.why)
        return self._found[key]

    def prune(self, reason: str, values: Mapping[str, int], why: str) -> None:
        """Rule a configuration out, and count it."""
        self._found[self.key(values)] = Instance(None, reason, why)
        self.pruned[reason] += 1
        self.why.setdefault(reason, f"{self.text(values)}: {why}")

    def text(self, values: Mapping[str, int]) -> str:
        """What a configuration changes."""
        changed = {name: values[name] for name, was in self.start.items() if values[name] != was}
        return ", ".join(f"{name}={value or 'default'}" for name, value in changed.items()) or UNCHANGED

    def _checked(self, values: Mapping[str, int]) -> Instance:
        try:
            resources = self._compiled(values) if self.compiles else self._made(values).resources
            workgroups_per_cu(resources, self.gpu)
        except _Pruned as error:
            return Instance(None, *error.args)
        except SwizzleSimError as error:
            kinds = {CompileError: "no-compile", ReplayError: "does-not-fit"}
            reason = next((name for kind, name in kinds.items() if isinstance(error, kind)), "refused")
            return Instance(None, reason, str(error).strip().partition("\n")[0])
        return Instance(resources)

    def _beforehand(self, values: Mapping[str, int]) -> Instance | None:
        """What the limits of the GPU rule out before a compile."""
        threads, most = values["num_warps"] * self.gpu.limits.wave_size, self.gpu.limits.threads_per_workgroup
        if threads > most:
            return Instance(None, "threads", f"{threads} threads a workgroup, at most {most}")
        known: dict[str, Any] = {**(self.base.launch.constexprs if self.base.launch else {}), **values}
        for other, found in self._all_found() if self.compiles else ():
            if found.pruned in TOO_LARGE and self._is_larger(values, other, found.pruned):
                return Instance(None, found.pruned, f"larger than {self.text(other)}: {found.why}")
        for live in self._live:
            items = sum(int(np.prod([int(known.get(side, side)) for side in sides])) for sides in live)
            if items > MOST_ACCUMULATED[self.gpu.arch[:3]] * threads:
                return Instance(None, "registers", f"{items // threads} registers a lane for its accumulators alone")
            staged = self._staged_bytes(live[0], values)
            if staged > (room := self.gpu.limits.lds_bytes_per_cu):
                return Instance(None, "LDS", f"{staged} B for one step of its operands, at most {room}")
        return None

    def _is_larger(self, values: Mapping[str, int], other: Values, reason: str) -> bool:
        """Whether a configuration is as large as another in blocks and stages or larger, in as many warps or fewer."""
        fewer = values["num_warps"] < other["num_warps"] and reason == "spills"
        grows = (*(name for name in self.constants if "GROUP" not in name), "num_stages")
        return all(
            values[name] == other[name]
            or (name == "num_warps" and fewer)
            or (name in grows and values[name] > other[name])
            for name in self.ranges
            if "GROUP" not in name
        )

    def _staged_bytes(self, sides: Sides, values: Mapping[str, int]) -> int:
        """LDS that the operands of a product of two searched sides take, of all stages but one; 0 of anything else."""
        if len(sides) != 2 or not all(side in self.constants for side in sides):
            return 0
        inner = [values[name] for name in self.constants if name not in sides and "GROUP" not in name]
        launch = self.base.launch
        items = [one.item_bytes for one in launch.arrays.values() if one.role == "in"] if launch else []
        if not inner or not items or ".dot(" not in self.base.triton_source:
            return 0
        rows, columns = (values[side] for side in sides)
        return (rows + columns) * min(inner) * min(items) * max(1, values["num_stages"] - 1)

    @cached_property
    def _live(self) -> list[tuple[Sides, ...]]:
        """Blocks in registers at once, those whose sides are constants or numbers."""
        launch = self.base.launch
        assert launch
        known = {**launch.constexprs, **self.start}
        tree = ast.parse(self.numbers.text if self.numbers else self.base.triton_source)
        own = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == launch.function)
        found = (
            [one for one in live if all(side.isdigit() or type(known.get(side)) is int for side in one)]
            for function in own
            for live in live_blocks(function)
        )
        return [tuple(live) for live in found if live]

    def _compiled(self, values: Mapping[str, int]) -> Resources:
        launch, found = self.launch(values), self._ready.pop(self.key(values), None)
        if self.compiled >= self.most_compiles:
            raise _Pruned("compiles", f"{self.most_compiles} kernels were compiled")
        self.compiled += 1
        found = found or compile_each([launch], self.gpu.arch)[0]
        if isinstance(found, CompileError):
            raise found
        if spilled := found.vgpr_spills + found.sgpr_spills:
            raise _Pruned("spills", f"spills {spilled} registers, whose cost is not modelled")
        return found.resources

    def _constants(self, values: Mapping[str, int]) -> Values:
        numbers = self.numbers.values if self.numbers else {}
        return {name: values[name] for name in self.constants if name not in numbers}

    def workload(self, values: Mapping[str, int]) -> Workload:
        """The kernel with the constants of a configuration, its compile options left as they are."""
        found = workload(self.base.file or self.base.name, {**self.base.problem, **self._constants(values)})
        return self.numbers.at(found, values) if self.numbers else found

    def _made(self, values: Mapping[str, int]) -> Kernel:
        return kernel(self.base.name, **{**self.base.problem, **self._constants(values)})

    def request(self, values: Mapping[str, int]) -> dict[str, Any]:
        """Request for a user's kernel with other constants, which are given like sizes."""
        request = request_of(self.base.file, {**self.base.problem, **self._constants(values)})
        config = self.base.launch.config if self.base.launch else ""
        return {**({"config": int(config.split()[0])} if config else {}), **request}

    def launch(self, values: Mapping[str, int]) -> Launch:
        """Launch of a configuration."""
        constants = tuple(values[name] for name in self.constants)
        if constants not in self._launches:
            if self.numbers:
                self._launches[constants] = self.workload(values).launch
            elif self.base.file:
                described, request = describe(self.request(values))
                self._launches[constants] = Launch.from_dict(described["launch"], inputs_of(request))
            else:
                made = self._made(values).launch
                assert made
                self._launches[constants] = made
        found = self._launches[constants]
        names = [name for name in self.ranges if name not in (*self.constants, "num_warps", "num_stages")]
        options = {name: value for name, value in found.options.items() if name not in names}
        options |= {name: values[name] for name in names if values[name]}
        return replace(found, num_warps=values["num_warps"], num_stages=values["num_stages"], options=options)

    def kernel(self, values: Mapping[str, int]) -> Kernel | None:
        """The kernel in a configuration; None where it is pruned, as it is where it stores something else."""
        found = self.instance(values)
        if found.resources is None:
            return None
        if not self.ranges or self.key(values) == self.key(self.start):
            return self.base
        made, launch = self._built(values, found.resources), self.launch(values)
        return made and replace(made, resources=found.resources, make_launch=lambda: launch)

    def sketch(self, values: Mapping[str, int]) -> Kernel | None:
        """The kernel in a configuration that is not compiled, its resources estimated; None where nothing says them."""
        key, blocks = self.key(values), [name for name in self.constants if "GROUP" not in name]
        known = not self.compiles or key in self._ready or not self.is_plausible(values) or key in self._found
        if known or not self._captured_alone:
            return None
        compiled = [(at, one.resources) for at, one in self._all_found() if one.resources]
        compiled = [(at, one) for at, one in compiled if one.source.startswith(COMPILED)]
        resources = estimated({**self.start, **values}, blocks, self.gpu, compiled)
        if resources is None:
            return None
        if resources.lds_bytes > SURE * (room := self.gpu.limits.lds_bytes_per_cu):
            self.prune("LDS", values, f"{resources.lds_bytes} B as estimated, at most {room}")
            return None
        with suppress(ReplayError):
            workgroups_per_cu(resources, self.gpu)
            made = self._built(values, resources)
            return made and replace(made, resources=resources)
        return None

    def _all_found(self) -> Iterator[tuple[Values, Instance]]:
        """Configurations that were looked at, with their instances."""
        for at, one in self._found.items():
            yield {**self.start, **dict(zip(self.ranges, at, strict=True))}, one

    def _built(self, values: Mapping[str, int], resources: Resources) -> Kernel | None:
        """The kernel in a configuration; None where it stores something else, for which it is pruned."""
        try:
            made = self._captured(values, resources) if self.base.file else self._made(values)
            why = "" if self._stored(made) == self._as_stored else "stores other parts of its outputs"
        except SwizzleSimError as error:
            why = str(error)
        if why:
            self.prune("other-outputs", values, why)
            return None
        return made

    def _captured(self, values: Mapping[str, int], resources: Resources) -> Kernel:
        if self._captured_alone:
            work, constants = self.workload(values), tuple(values[name] for name in self.constants)
            self.launch(values)
            found = self._captures(self._launches[constants])
            issued = max(self.base.flops, float(sum(found.flops.values())))
            return replace(self.base, grid=work.grid, build_trace=lambda line_bytes: found.trace, issued_flops=issued)
        request = self.request(values)
        trace, manifest = stored_capture(request, None, self.gpu.arch)
        manifest = {**manifest, "resources": {self.gpu.arch: asdict(resources)}}
        return kernel_of(trace, manifest, self.gpu.arch, request, file=name_of(request))

    @cached_property
    def _as_stored(self) -> bytes:
        return self._stored(self.base)

    def _stored(self, one: Kernel) -> bytes:
        return stored_sectors(one.build_trace(self.gpu.l2.line_bytes)).tobytes()


class _Pruned(Exception):
    """Reason and words of a configuration that is ruled out."""


def _near(name: str, value: int) -> Iterator[int]:
    """Powers of two around a block's size, and itself."""
    if value & (value - 1) or value < 1:  # such as a group of 6 rows
        yield value
        return
    least = 1 if "GROUP" in name or value < FEWEST_ITEMS else FEWEST_ITEMS
    most = max(MOST_ITEMS, 4 * value if value > MOST_ITEMS else value) if least > 1 else 16
    for octave in range(-OCTAVES, OCTAVES + 1):
        near = int(value * 2.0**octave)
        if least <= near <= most or near == value:
            yield near


def live_blocks(function: ast.FunctionDef) -> Iterator[tuple[Sides, ...]]:
    """Blocks that a kernel holds in registers at once, by their sides as the source has them.

    Each that it makes, alone, and all products of a loop that holds no other: of ``acc = tl.dot(tl.dot(q, k), v, acc)``
    (BLOCK_M, BLOCK_N) beside (BLOCK_M, D).
    """
    known: dict[str, Sides] = {}
    for one in sorted((one for one in nodes(function) if isinstance(one, ast.Assign)), key=lambda one: one.lineno):
        if isinstance(one.targets[0], ast.Name):
            known[one.targets[0].id] = _sides(one.value, known) or known.get(one.targets[0].id, ())
    yield from ((_sides(one, known),) for one in nodes(function) if _name(one) in MADE)
    for loop in (one for one in nodes(function) if isinstance(one, ast.For | ast.While)):
        inside = list(nodes(*loop.body))
        if not any(isinstance(one, ast.For | ast.While) for one in inside):
            yield tuple(dict.fromkeys(filter(None, (_sides(one, known) for one in inside if _name(one) == "dot"))))


def _name(call: ast.AST) -> str:
    return ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


def _sides(value: ast.AST, known: dict[str, Sides]) -> Sides:
    """Sides of a value, those of its widest part where it is no call that is known; none of a scalar."""
    found, parts, name = (), list(ast.iter_child_nodes(value)), _name(value)  # type: Sides, list[ast.AST], str
    match value:
        case ast.Name(own):
            return known.get(own, ())
        case ast.Attribute(of, "T") | ast.Call(_, [of]) if name in ("", "trans"):
            return _sides(of, known)[::-1]
        case ast.Subscript(of, ast.Tuple(places)):
            left = iter(_sides(of, known))
            return tuple("1" if isinstance(one, ast.Constant) else next(left, "1") for one in places)
        case ast.Call(_, [ast.Tuple(sides) | ast.List(sides), *_] | [_, *sides]) if name in (*MADE, "arange"):
            return tuple(map(ast.unparse, sides))
        case ast.Call(_, [left, right, *_]) if name == "dot":
            pair = _sides(left, known), _sides(right, known)
            return (pair[0][0], pair[1][1]) if all(len(one) == 2 for one in pair) else ()
        case ast.Call():
            parts = [*value.args[: 1 if name == "load" else None]] if name not in REDUCED else []
            parts = [value.func.value] if name == "to" and isinstance(value.func, ast.Attribute) else parts
    for one in parts:
        other = _sides(one, known)
        if len(found) == len(other):
            found = tuple(b if a == "1" else a for a, b in zip(found, other, strict=True))
        found = max(found, other, key=len)
    return found


def stored_sectors(trace: Trace) -> np.ndarray:
    """Sectors that a trace's workgroups store, of all tensors, (n_lines,) uint8: a bit each."""
    found = np.zeros(max(one.base_line + one.n_lines for one in trace.tensors), np.uint8)
    for template in np.unique(trace.template[trace.is_write[trace.template]]):
        base = trace.base[trace.template == template]
        first, end = trace.rel_start[template : template + 2]
        rel, sectors = trace.rel[first:end], trace.sectors[first:end]
        for bits in np.unique(sectors):
            found[(base[:, None] + rel[None, sectors == bits]).ravel()] |= bits
    return found


def has_compiler(gpu: Gpu) -> bool:
    """Whether kernels can be compiled for a GPU here."""
    try:
        return gpu.arch in ARCHITECTURES and bool(triton_version())
    except CompileError:
        return False
