"""Arguments that commands share: a kernel at sizes, a GPU, a swizzle from a file or a family; and their completion.

`grouped` lets a command take a dataclass for each group of options where people type one flat list.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from swizzle_sim.base.progress import Progress
from xcd_model.errors import ReplayError, RunError, SizeError, SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu


def offer(values: Callable[[], Iterable[str]] | Sequence[str]) -> Callable[[str], list[str]]:
    """Completion by the values that begin as typed; families are joined by a plus sign, so the last part counts."""

    def complete(incomplete: str) -> list[str]:
        head, plus, tail = incomplete.rpartition("+")
        return [head + plus + value for value in (values() if callable(values) else values) if value.startswith(tail)]

    return complete


def known_kernels() -> Iterable[str]:
    """Kernels of the registry."""
    from swizzle_sim.workload.kernels import kernel_names

    return kernel_names()


def known_gpus() -> Iterable[str]:
    """GPUs and their partition modes."""
    from xcd_model import gpu_modes, gpu_names

    names = gpu_names()
    return [*names, *("-".join((name, *mode)).lower() for name in names for mode in gpu_modes(name) if all(mode))]


def known_families() -> Iterable[str]:
    """Families by name; parentheses would need quotes in most shells, and parameters have defaults."""
    from swizzle_sim.language.families import FAMILIES

    return FAMILIES


def run_folders() -> Iterable[str]:
    """Run folders of ``runs/``."""
    from swizzle_sim.search.history import runs_in

    return [str(folder) for folder in runs_in("runs")]


def option(*names: str, help: str, panel: str | None = None, offers: Any = None, **more: Any) -> Any:
    """Option of a command, completed by what it ``offers``; those of a panel are told by ``--help-all`` alone."""
    return typer.Option(*names, help=help, rich_help_panel=panel, autocompletion=offers and offer(offers), **more)


def argument(metavar: str | None, help: str, offers: Any = None) -> Any:
    """Argument of a command, completed by what it ``offers``."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=offers and offer(offers))


REPLAY_PANEL = "The replay"
REPLAY_WORDS = ("timed", "lockstep")
SWIZZLE_WORDS = "FAMILY|TEXT|FILE"

_KERNEL = "Kernel of `swizzle-sim kernels`, my_kernel.py, calls.json, or my.trace.npz."
KernelName = Annotated[str, argument("KERNEL", _KERNEL, known_kernels)]
Sizes = Annotated[list[str] | None, argument("NAME=SIZE", "Problem sizes, such as M=4096 N=4096 K=8192.")]
GpuName = Annotated[str, option("--gpu", metavar="GPU", help="GPU by name, or a TOML file.", offers=known_gpus)]
Json = Annotated[bool, option("--json", help="Print one JSON document on stdout.")]
_REPLAY = "Replay that the counts come from: timed, or lockstep (fast, screens orders)."
Replay = Annotated[str, option("--replay", metavar="REPLAY", help=_REPLAY, offers=REPLAY_WORDS)]
_SEED = "Seed of the timed replay: speeds of workgroups, and jitter."
Seed = Annotated[int, option("--seed", metavar="N", help=_SEED, panel=REPLAY_PANEL)]
_JITTER = "Timed replay: largest random delay of a load, in ns."
Jitter = Annotated[float, option("--jitter", metavar="NS", help=_JITTER, panel=REPLAY_PANEL, min=0, max=1e6)]
_COMPILE = "Compile the kernel, as launched and as rewritten, and score it so."
Compile = Annotated[
    bool, option("--compile/--no-compile", help=_COMPILE, panel=REPLAY_PANEL, envvar="SWIZZLE_SIM_COMPILE")
]
Verbose = Annotated[bool, option("--verbose", "-v", help="Print all figures, not one screen.")]
_SWIZZLE = "A family such as 'group_m(size=8)', a text, a file, or - for stdin."
SwizzleText = Annotated[str, option("--swizzle", metavar=SWIZZLE_WORDS, help=_SWIZZLE, offers=known_families)]
Swizzles = Annotated[
    list[str] | None,
    option("--swizzle", metavar=SWIZZLE_WORDS, help=f"{_SWIZZLE[:-1]}; repeatable.", offers=known_families),
]

OF_ONE = "Of one order"
Seeds = Annotated[int, option("--seeds", help="Seeds to try; prints mean and spread.", panel=OF_ONE, min=1, max=10_000)]
_PLOTS = "Draw hit rate over time and per XCD there (PNG)."
_UNCERTAIN = "Range of each number over the plausible constants of the model."
_DRAWS = "Draws of all constants at once, with --uncertainty."
Draws = Annotated[int | None, option("--draws", help=_DRAWS, panel=OF_ONE, min=2, max=10_000)]


@dataclass(frozen=True)
class Launch:
    """What is replayed: a kernel at sizes, on a GPU."""

    kernel: KernelName
    sizes: Sizes = None
    gpu: GpuName = "mi300x"

    def load(self, compile: bool = True) -> tuple[Kernel, Gpu]:
        """Kernel as `load_fitting` gives it, and GPU."""
        from xcd_model import gpu as load_gpu

        device = load_gpu(self.gpu)
        return load_fitting(self.kernel, self.sizes, device, compile), device


@dataclass(frozen=True)
class ReplayOptions:
    """How a launch is replayed, and how much of it is told."""

    replay: Replay = "timed"
    seed: Seed = 0
    jitter: Jitter = 0.0
    compile: Compile = True
    verbose: Verbose = False


@dataclass(frozen=True)
class OfOne:
    """What is told of one order on one GPU alone."""

    seeds: Seeds = 1
    uncertainty: Annotated[bool, option("--uncertainty", help=_UNCERTAIN, panel=OF_ONE)] = False
    draws: Draws = None
    plots: Annotated[Path | None, option("--plots", metavar="FOLDER", help=_PLOTS, panel=OF_ONE)] = None

    def check(self, *, one: bool) -> None:
        """Refuse what cannot be told, or not of more than one order on one GPU."""
        if self.draws is not None and not self.uncertainty:
            raise ReplayError("--draws belongs to --uncertainty: add it")
        given = {"--seeds": self.seeds > 1, "--uncertainty": self.uncertainty, "--plots": self.plots is not None}
        if not one and (typed := [name for name, is_given in given.items() if is_given]):
            raise ReplayError(f"{', '.join(typed)}: of one swizzle on one GPU; name one of each")


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Command whose parameters of a dataclass type are typed as an option for each field of that class."""
    parameters = inspect.signature(command, eval_str=True).parameters  # get_type_hints of 3.10 adds Optional to it
    groups: dict[str, Any] = {name: one.annotation for name, one in parameters.items() if is_dataclass(one.annotation)}
    flat: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name not in groups:
            flat.append(_typed(name, parameter.annotation, parameter.default))
            continue
        of_field = get_type_hints(groups[name], include_extras=True)
        flat += [_typed(f.name, of_field[f.name], f.default) for f in fields(groups[name])]

    @functools.wraps(command)
    def typed(**values: Any) -> None:
        packed = {
            name: kind(**{f.name: values.pop(f.name) for f in fields(kind) if f.name in values})
            for name, kind in groups.items()
        }
        command(**values, **packed)

    typed.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    typed.__annotations__ = {}  # what typer reads is the signature
    return typed


def _typed(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Parameter by name alone, so that one without a default may follow one that has it."""
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


SMALLER = {"BLOCK_M": 128, "BLOCK_N": 128}


def parse_sizes(words: Sequence[str] | None) -> dict[str, int]:
    """Read ``NAME=SIZE`` words."""
    sizes: dict[str, int] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        number = value.replace("_", "")
        if not (
            equals and name.isidentifier() and number.lstrip("-").isdigit() and number.isascii() and len(number) < 20
        ):
            raise SizeError(f"{word!r}: a size is written NAME=INTEGER, of at most 19 digits, such as M=4096")
        if name in sizes:
            raise SizeError(f"{name} is given twice: {sizes[name]} and {value}")
        sizes[name] = int(number)
    return sizes


def load_kernel(name: str, words: Sequence[str] | None, arch: str = "gfx942") -> Kernel:
    """Kernel of the suite, of a Python file or of a trace file, at the sizes typed.

    ``arch`` is the GPU architecture whose compile the resources of a captured kernel come from.
    """
    from swizzle_sim.search.recorded import kernel_at

    with capturing() as on_progress:
        return kernel_at(name, parse_sizes(words), arch, on_progress)


@contextlib.contextmanager
def capturing() -> Iterator[Callable[[str, int, int], None]]:
    """Callback of a capture, shown on stderr: kernel, workgroups done, workgroups."""
    with Progress("capturing", "workgroups") as progress:
        yield lambda name, done, total: progress(done, total, what=f"capturing {name}")


def load_fitting(name: str, words: Sequence[str] | None, gpu: Gpu, compile: bool = True) -> Kernel:
    """Kernel as `load_kernel` gives it, compiled for the GPU, one of whose workgroups at least fits a CU."""
    from xcd_model import workgroups_per_cu

    found = load_kernel(name, words, gpu.arch)
    if compile and not found.resources.source.startswith(f"compiled for {gpu.arch} "):
        from swizzle_sim.capture.occupancy import compiled_for

        with Progress("compiling the kernel"):
            found = compiled_for(found, gpu)
    try:
        workgroups_per_cu(found.resources, gpu)
    except ReplayError as error:
        if not compile and not found.resources.source.startswith(f"compiled for {gpu.arch} "):
            why = f"{found.name}'s registers are {found.resources.source}, and none of its workgroups fits {gpu.name}"
            raise ReplayError(f"{why}: without --no-compile it is compiled for {gpu.arch}") from None
        tiles = {size: found.problem.get(size, 0) for size in SMALLER}
        if all(tiles.values()) and any(tiles[size] > least for size, least in SMALLER.items()):
            smaller = " ".join(f"{size}={least}" for size, least in SMALLER.items())
            raise ReplayError(f"{error}; smaller tiles take fewer, such as {smaller}") from None
        raise
    return found


def one_folder(out: Path | None, resume: Path | None, what: str = "run") -> Path | None:
    """Folder to store results in, where one is named."""
    if out and resume:
        raise RunError(f"--out makes a new {what} and --resume goes on with one: give one of them")
    return resume or out


def load_swizzle(where: str) -> Swizzle:
    """Swizzle from stdin (``-``), or as `Swizzle.read` finds it."""
    from swizzle_sim.language import Swizzle
    from swizzle_sim.language.rules import MAX_TEXT_BYTES

    if where == "-":
        return Swizzle.parse(sys.stdin.read(MAX_TEXT_BYTES + 1), name="stdin", filename="<stdin>")
    if not where.strip():
        raise SwizzleSimError("--swizzle is empty: name a file, - or a family, or type a text such as 'pid = pid'")
    return Swizzle.read(where)
