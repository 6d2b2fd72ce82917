"""What ``--help`` shows beyond names and options: commands by task, options by proposer, and examples.

The examples are run by the tests and shown in ``docs/cli.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from swizzle_sim.cli.completion import complete_parameters

GROUPS = (
    ("Look around", ("gpus", "kernels", "show", "runs", "doctor")),
    ("Judge an order", ("check", "score", "ceiling")),
    ("Find a better one", ("optimize", "suite", "sweep", "what-if", "report", "explore")),
    ("Your own Triton kernel", ("init-kernel", "capture", "occupancy", "rewrite")),
    ("Against hardware", ("bundle", "confirm", "import", "agreement", "fidelity")),
    ("Compare models", ("study", "tune-prompt")),
)
OTHERS = "More commands"

FIRST = (
    ("swizzle-sim kernels", "what can be scored"),
    ("swizzle-sim check 'contiguous+row' --grid 64x64", "is it a bijection?"),
    ("swizzle-sim score gemm --swizzle 'contiguous+group_m(size=4)'", "what is it worth?"),
    ("swizzle-sim optimize gemm M=4096 N=4096 --gpu mi355x", "find a better order"),
    ("swizzle-sim COMMAND --help", "options and examples of a command"),
)
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "agreement": (("swizzle-sim agreement tests/hardware/data/h200/transpose", "a bundle that was measured"),),
    "bundle": (
        ("swizzle-sim bundle runs/gemm-mi300x-001 --top 3 -o gemm-bundle", "the best three of a run"),
        ("swizzle-sim bundle gemm M=4096 N=4096 --swizzle contiguous+row", "a candidate of your own"),
    ),
    "capture": (("swizzle-sim capture my_kernel.py M=2048 -o my.trace.npz", "then: swizzle-sim score my.trace.npz"),),
    "ceiling": (("swizzle-sim ceiling gemm M=4096 N=4096 K=4096 --out table", "and write it as a lookup table"),),
    "check": (
        ("swizzle-sim check 'contiguous+group_m(size=8)' --grid 64x64", "a family"),
        ("swizzle-sim check mine.txt --grid 1000 --xcds 7", "a file, on another GPU"),
        ("swizzle-sim check mine.txt --kernel gemm M=4096", "with the sizes of a kernel"),
    ),
    "confirm": (("swizzle-sim confirm runs/gemm-mi300x-001 --top 3", "where the GPU is"),),
    "doctor": (("swizzle-sim doctor --report", "a block to paste into an issue"),),
    "explore": (("swizzle-sim explore gemm M=2048 N=2048 --gpu mi355x", "a page on this machine, in the browser"),),
    "fidelity": (
        ("swizzle-sim fidelity --quick", "seconds"),
        ("swizzle-sim fidelity --gpu h200 --variant lockstep --rows transpose", "some rows, one replay"),
    ),
    "gpus": (("swizzle-sim gpus --json", "with the source of every number"),),
    "import": (("swizzle-sim import gemm-bundle/result.json", "what confirm.py left"),),
    "init-kernel": (("swizzle-sim init-kernel my_code.py:matmul", "writes matmul_kernel.py"),),
    "kernels": (("swizzle-sim kernels --gpu mi355x", "the bound depends on the GPU"),),
    "occupancy": (("swizzle-sim occupancy gemm BLOCK_M=128 BLOCK_N=128 --gpu mi355x", ""),),
    "optimize": (
        ("swizzle-sim optimize gemm M=4096 N=4096 --gpu mi355x", "known families"),
        ("swizzle-sim optimize gemm --proposer search --evaluations 200", "templates with parameters"),
        ("swizzle-sim optimize gemm --proposer llm --model openai/gpt-4o", "a model proposes"),
        ("swizzle-sim optimize my_kernel.py", "your own kernel, rewritten at the end"),
        ("swizzle-sim optimize gemm --tune tiles", "tile sizes with the order"),
    ),
    "report": (("swizzle-sim report runs/gemm-mi300x-001 --open", ""),),
    "rewrite": (("swizzle-sim rewrite my_kernel.py --swizzle best.txt --diff", "nothing is written without -o"),),
    "runs": (("swizzle-sim runs", ""),),
    "score": (
        ("swizzle-sim score gemm --swizzle 'contiguous+group_m(size=4)'", ""),
        ("swizzle-sim score gemm M=4096 --swizzle mine.txt --replay timed --seeds 5", "with drift"),
    ),
    "show": (("swizzle-sim show softmax --picture softmax.png", ""),),
    "study": (("swizzle-sim study contexts --kernel gemm --model openai/gpt-4o --out studies", ""),),
    "suite": (("swizzle-sim suite softmax layer_norm --effort 0.1", "two kernels, a few candidates"),),
    "sweep": (('swizzle-sim sweep gemm --over M,N --values "powers 1024..4096" --swizzle contiguous+row', ""),),
    "tune-prompt": (("swizzle-sim tune-prompt --model openai/gpt-4o-mini --train gemm --held-out softmax", ""),),
    "what-if": (("swizzle-sim what-if gemm --set l2.size_bytes=4MiB,8MiB --swizzle contiguous", "a larger L2"),),
}
_TYPES = {"int": "INTEGER", "float": "NUMBER", "Path": "PATH"}
_FOR = re.compile(r"(llm|search|two-stage|sizes): ")


def by_task(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (task, commands) over the given commands; what no task names comes last."""
    left = list(names)
    for task, wanted in GROUPS:
        if here := [name for name in wanted if name in left]:
            yield task, here
    if rest := [name for name in left if not any(name in wanted for _, wanted in GROUPS)]:
        yield OTHERS, rest


def proposer_of(text: str) -> str:
    """Proposer that an option belongs to, from the first word of its help; empty for all of them."""
    found = _FOR.match(text)
    return found[1] if found else ""


def name_values(params: Iterable[Any]) -> None:
    """Give every parameter that takes a value a word for it: what it says itself, or its type."""
    for param in params:
        if param.metavar is None and param.param_type_name == "argument":
            param.metavar = param.name.upper()
        elif param.metavar is None and not param.is_flag:
            kind = getattr(param.type_descriptor.annotation, "__name__", "str")
            param.metavar = _TYPES.get(kind, "TEXT")


def usage_of(params: Iterable[Any]) -> list[str]:
    """Arguments as they are typed, the optional ones in brackets, and then options."""
    arguments = [param for param in params if param.param_type_name == "argument"]
    words = [p.metavar if p.required or p.metavar.startswith("[") else f"[{p.metavar}]" for p in arguments]
    return [*words, "[OPTIONS]"]


def in_short(command: Any) -> str:
    """First sentence of a command's help, up to its semicolon, or the colon of a list."""
    text = re.split(r"(?<=[^.])\.(?: |$)", " ".join((command.help or "").split()))[0]
    return re.split(r"; |(?<=.{25}): ", text)[0]


def _write_examples(formatter: Any, examples: Iterable[tuple[str, str]]) -> None:
    """Write commands whole, never folded: they are there to be copied."""
    shown = list(examples)
    if not shown:
        return
    with formatter.section("Examples"):
        for command, what in shown:
            formatter.write(f"{'':>{formatter.current_indent}}{command}{'   # ' + what if what else ''}\n")


class Command(TyperCommand):
    """A command with its options by proposer, examples, and completion of its values."""

    def __init__(self, name: str | None, **settings: Any):
        super().__init__(name, **settings)
        name_values(self.params)
        complete_parameters(self.params)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments, then options: the order in which people type them."""
        return usage_of(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options: those of every proposer first."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            spelled, text = record
            if param.param_type_name == "argument":
                sections["Arguments"].append((str(param.metavar), text))
                continue
            owner = proposer_of(text) if self.name == "optimize" else ""
            title = f"Options of --proposer {owner}" if owner else "Options"
            sections.setdefault(title, []).append((spelled, text.removeprefix(f"{owner}: ") if owner else text))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(formatter, EXAMPLES.get(self.name or "", ()))


class Group(TyperGroup):
    """The commands by task, and where to begin."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, a section for each task."""
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        for task, here in by_task(names):
            with formatter.section(task):
                formatter.write_dl([(name, in_short(self.commands[name])) for name in here])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write where to begin."""
        _write_examples(formatter, FIRST)
