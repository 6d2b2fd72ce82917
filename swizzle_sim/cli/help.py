"""``--help`` within one screen: commands by task, and of a command the options that most people need, with examples.

Options that stand in a panel of their own are named below; ``--help-all`` says what they do. The examples are run by
the tests and shown in ``docs/cli.md``.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from typer.core import TyperCommand, TyperGroup

TASKS = {
    "Look around": ("gpus", "kernels", "show", "doctor"),
    "Check and score a swizzle": ("check", "score", "ceiling", "hit-rates"),
    "Find a better one": ("optimize", "suite", "sweep", "what-if", "explore"),
    "Runs": ("runs", "report", "compare", "export"),
    "Your own Triton kernel": ("init-kernel", "capture", "occupancy", "rewrite"),
    "Compare with hardware": ("calibrate", "bundle", "confirm", "import", "agreement"),
    "Compare models": ("study", "tune-prompt"),
}
OTHERS = "More commands"

FIRST = (
    ("swizzle-sim kernels", "what can be scored"),
    ("swizzle-sim check 'contiguous+row' --grid 64x64", "is it a bijection?"),
    ("swizzle-sim score gemm --swizzle 'contiguous+group_m(size=4)'", "hit rate, traffic and time"),
    ("swizzle-sim optimize gemm M=4096 N=4096 --gpu mi355x", "find a better one"),
    ("swizzle-sim COMMAND --help", "options and examples of a command"),
)
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "agreement": (("swizzle-sim agreement tests/hardware/data/h200/transpose", "a measured bundle"),),
    "bundle": (
        ("swizzle-sim bundle runs/gemm-mi300x-001 --top 3 -o gemm-bundle", "the best three of a run"),
        ("swizzle-sim bundle gemm M=4096 N=4096 --swizzle contiguous+row", "your own candidate"),
    ),
    "calibrate": (
        ("swizzle-sim calibrate --gpu h200 --measured tests/hardware/data/h200/calibrate.csv", "as an H200 printed it"),
    ),
    "capture": (("swizzle-sim capture my_kernel.py M=2048 -o my.trace.npz", "then: swizzle-sim score my.trace.npz"),),
    "ceiling": (("swizzle-sim ceiling gemm M=4096 N=4096 K=4096 --out table", "and write it as a lookup table"),),
    "check": (
        ("swizzle-sim check 'contiguous+group_m(size=8)' --grid 64x64", "a family"),
        ("swizzle-sim check mine.txt --grid 1000 --xcds 7", "a file, on another GPU"),
        ("swizzle-sim check mine.txt --kernel gemm M=4096", "with the sizes of a kernel"),
        ("swizzle-sim check src/ --sarif out.sarif", "every remap of a repository"),
    ),
    "compare": (("swizzle-sim compare runs/gemm-mi300x-001 runs/gemm-mi300x-search-001", ""),),
    "confirm": (("swizzle-sim confirm runs/gemm-mi300x-001 --top 3", "where the GPU is"),),
    "doctor": (("swizzle-sim doctor --report", "a block to paste into an issue"),),
    "explore": (("swizzle-sim explore gemm M=2048 N=2048 --gpu mi355x", "a page on this machine, in the browser"),),
    "export": (
        ("swizzle-sim export runs/gemm-mi300x-001 -o attempts.csv", "or attempts.parquet"),
        ("swizzle-sim export runs/gemm-mi300x-001 -o study.db", "then: optuna-dashboard sqlite:///study.db"),
    ),
    "gpus": (("swizzle-sim gpus --json", "with the source of every number"),),
    "hit-rates": (
        ("swizzle-sim hit-rates kernels/ --against main", "did a kernel lose its remap?"),
        ("swizzle-sim hit-rates my_kernel.py --out rates.json", "to compare with later"),
    ),
    "import": (("swizzle-sim import gemm-bundle/result.json", "the result of confirm.py"),),
    "init-kernel": (("swizzle-sim init-kernel my_code.py:matmul", "writes matmul_kernel.py"),),
    "kernels": (("swizzle-sim kernels --gpu mi355x", "the bound depends on the GPU"),),
    "occupancy": (("swizzle-sim occupancy gemm BLOCK_M=128 BLOCK_N=128 --gpu mi355x", ""),),
    "optimize": (
        ("swizzle-sim optimize gemm M=4096 N=4096 --gpu mi355x", "known families"),
        ("swizzle-sim optimize gemm --proposer search --evaluations 200", "templates with parameters"),
        ("swizzle-sim optimize gemm --proposer llm --model openai/gpt-4o", "a model proposes"),
        ("swizzle-sim optimize my_kernel.py", "your own kernel, rewritten at the end"),
        ("swizzle-sim optimize gemm --tune tiles", "tile sizes with GROUP_M"),
        ("swizzle-sim optimize my_kernel.py --tune configs", "an autotuner's configurations"),
    ),
    "report": (("swizzle-sim report runs/gemm-mi300x-001 --open", ""),),
    "rewrite": (("swizzle-sim rewrite my_kernel.py --swizzle best.txt --diff", "nothing is written without -o"),),
    "runs": (("swizzle-sim runs", ""),),
    "score": (
        ("swizzle-sim score gemm --swizzle 'contiguous+group_m(size=4)'", ""),
        ("swizzle-sim score gemm --swizzle row --swizzle contiguous+row --gpu mi300x --gpu mi355x", "a table"),
        ("swizzle-sim score gemm M=4096 --swizzle mine.txt --replay timed --seeds 5", "with workgroup skew"),
    ),
    "show": (("swizzle-sim show softmax --picture softmax.png", ""),),
    "study": (("swizzle-sim study contexts --kernel gemm --model openai/gpt-4o --out studies", ""),),
    "suite": (("swizzle-sim suite softmax layer_norm --effort 0.1", "two kernels, a few candidates"),),
    "sweep": (('swizzle-sim sweep gemm --over M,N --values "powers 1024..4096" --swizzle contiguous+row', ""),),
    "tune-prompt": (("swizzle-sim tune-prompt --model openai/gpt-4o-mini --train gemm --held-out softmax", ""),),
    "what-if": (("swizzle-sim what-if gemm --set l2.size_bytes=4MiB,8MiB --swizzle contiguous", "a larger L2"),),
}


def task_of(command: str) -> str:
    """Panel of the help that a command stands in."""
    return next((task for task, names in TASKS.items() if command in names), OTHERS)


def in_short(command: Any) -> str:
    """First sentence of a command's help, up to its semicolon, or the colon of a list."""
    text = re.split(r"(?<=[^.])\.(?: |$)", " ".join((command.help or "").split()))[0]
    return re.split(r"; |(?<=.{25}): ", text)[0]


def _print_examples(examples: Iterable[tuple[str, str]]) -> None:
    """Print commands whole, to be copied; no box around them, no line break in them."""
    print(" Examples:")
    for command, what in examples:
        print(f"   {command}{'   # ' + what if what else ''}")
    print()


def _print_list(title: str, entries: Iterable[tuple[str, str]], *, names: int = 24) -> None:
    """Print names and what they are, folded at the width of the terminal, names of up to ``names`` columns beside."""
    width, entries = max(40, min(shutil.get_terminal_size().columns, 110)), list(entries)
    left = min(max((cell_len(name) for name, _ in entries), default=0), names) + 5
    print(f" {title}:")
    for name, what in entries:
        lines = textwrap.wrap(what, width - left, break_on_hyphens=False) or [""]
        if cell_len(name) + 5 > left:
            print(f"   {name}")
            lines.insert(0, "")
        else:
            print(f"   {name:<{left - 3}}{lines[0]}".rstrip())
        for line in lines[1:]:
            print(" " * left + line)


class Command(TyperCommand):
    """A command whose help fits one screen."""

    def format_all(self, ctx: Any) -> None:
        """Print the help of every option, and the examples."""
        super().format_help(ctx, ctx.make_formatter())
        _print_examples(EXAMPLES.get(self.name or "", ()))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the usage, what the command does, the options of no panel, the names of the others, and examples."""
        print(f" {' '.join([ctx.command_path, *self.collect_usage_pieces(ctx)])}\n")
        width = max(40, min(shutil.get_terminal_size().columns, 110)) - 2
        for part in (self.help or "").split("\n\n"):
            print(textwrap.fill(" ".join(part.split()), width, initial_indent=" ", subsequent_indent=" ") + "\n")
        panels: dict[str, list[str]] = {}
        entries = []
        for one in self.params:
            if getattr(one, "hidden", False):
                continue
            if panel := getattr(one, "rich_help_panel", None):
                panels.setdefault(panel, []).append(one.opts[0])
            else:
                entries.append((_spelled(one), _told(one)))
        _print_list("Arguments and options", entries, names=34 if width > 90 else 24)
        if panels:
            _print_list("More, told by --help-all", ((f"{panel}:", " ".join(names)) for panel, names in panels.items()))
        _print_examples(EXAMPLES.get(self.name or "", ()))


def _spelled(one: Any) -> str:
    """Argument or option as it is typed."""
    if one.param_type_name == "argument":
        return str(one.metavar or one.name.upper())
    words = "/".join([*sorted(one.opts, key=len, reverse=True), *one.secondary_opts])
    return words if one.is_flag else f"{words} {one.metavar or one.name.upper()}"


def _told(one: Any) -> str:
    """What a parameter is, and its default."""
    default = None if callable(one.default) else one.default
    told = " ".join((one.help or "").split())
    return told if default in (None, False, True, "", 0, (), []) else f"{told} [{default}]"


class Group(TyperGroup):
    """The commands by task, and where to begin."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the commands in one screen, and where to begin."""
        width = max(40, min(shutil.get_terminal_size().columns, 110))
        print(f" {ctx.command_path} COMMAND ...   --version, --install-completion for the shell\n")
        print(textwrap.fill(str(self.help), width - 1, initial_indent=" ", subsequent_indent=" ") + "\n")
        known = {task: [name for name in names if name in self.commands] for task, names in TASKS.items()}
        known[OTHERS] = [name for name in self.commands if task_of(name) == OTHERS]
        for task, names in known.items():
            if names:
                print(f" {task}:")
            for name in names:
                print(f"   {name:<13}{textwrap.shorten(in_short(self.commands[name]), width - 16, placeholder=' ...')}")
        _print_examples(FIRST)
