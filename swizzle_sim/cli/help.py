"""``--help`` within one screen: commands by task, and of a command the options that most people need, with examples.

Options that stand in a panel of their own are named below; ``--help-all`` says what they do. The examples of
``examples.txt`` are run by the tests and shown in ``docs/cli.md``.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from rich.cells import cell_len
from typer.core import TyperCommand, TyperGroup

from xcd_model.errors import SwizzleSimError, UnknownName

TASKS = {
    "Every day": ("score", "check", "optimize", "rewrite", "bundle", "import", "report", "explore", "runs"),
    "Your own Triton kernel": ("init-kernel", "capture"),
    "Kernels and GPUs": ("show", "kernels", "gpus", "doctor"),
    "Many sizes, many launches": ("sweep", "policy", "retune", "fleet", "keep"),
    "Share and reuse": ("export",),
    "Agents and experiments": ("lab",),
}
LAB = ("calibrate", "counters", "mcp", "tune-prompt")  # commands of the group lab
USAGE: Any = typer.BadParameter.__base__  # of all mistakes in options
OTHERS = "More commands"
MOVED = {  # earlier names, and the words to type now; they are understood until the next release
    "agreement": "import",
    "ceiling": "optimize --proposer ceiling",
    "compare": "runs",
    "occupancy": "show",
    "suite": "fleet suite",
    "what-if": "sweep",
    **{name: f"lab {name}" for name in LAB},
}
GONE = {  # earlier names with nothing behind them, and what to do
    "confirm": "bundle RUN -o DIR, then python DIR/confirm.py, then swizzle-sim import DIR/result.json",
    "study": "python -m swizzle_benchmarks.evidence.study, in a clone of the repository, compares models",
    "hit-rates": "swizzle_sim.testing.assert_hit_rate in a test holds a floor under the hit rate (docs/howto/ci.md)",
}


def _examples() -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """Read ``examples.txt``: where to begin, then each command as it is typed, with a remark behind a hash."""
    first, _, rest = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").partition("\n\n")
    begin, typed = ([line.partition("   # ")[::2] for line in part.splitlines()] for part in (first, rest))
    by_command = groupby(typed, lambda one: one[0].replace(" lab ", " ").split()[1])
    return begin, {name: list(mine) for name, mine in by_command}


FIRST, EXAMPLES = _examples()


def task_of(command: str) -> str:
    """Panel of the help that a command stands in."""
    return next((task for task, names in TASKS.items() if command in names), OTHERS)


def in_short(told: str) -> str:
    """First sentence of a command's help, up to its semicolon, or the colon of a list."""
    text = re.split(r"(?<=[^.])\.(?: |$)", " ".join(told.split()))[0]
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


def misuse(error: Any, command: str) -> SwizzleSimError:
    """One line on a mistake in the options of a command."""
    said = " ".join(error.format_message().split()).rstrip(".")
    return SwizzleSimError(f"{said}; options: {' '.join(f'swizzle-sim {command} --help'.split())}")


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        if not args:
            return super().parse_args(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except USAGE as error:
            raise misuse(error, ctx.info_name if ctx.parent else "") from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, by an earlier name too."""
        if args[0] in GONE:
            raise SwizzleSimError(f"{args[0]} is no command any more: {GONE[args[0]]}")
        if ctx.parent is None and args[0] in MOVED:
            print(f"swizzle-sim: {args[0]} is now: swizzle-sim {MOVED[args[0]]}", file=sys.stderr)
            args = [*MOVED[args[0]].split(), *args[1:]]
        if self.get_command(ctx, args[0]) is None:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def told(self, ctx: Any, name: str) -> str:
        """Help of a command."""
        return getattr(self.get_command(ctx, name), "help", None) or ""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the commands in one screen, and where to begin."""
        width = max(40, min(shutil.get_terminal_size().columns, 110))
        options = "" if ctx.parent else "   --version, --install-completion for the shell"
        print(f" {ctx.command_path} COMMAND ...{options}\n")
        print(textwrap.fill(str(self.help), width - 1, initial_indent=" ", subsequent_indent=" ") + "\n")
        every = self.list_commands(ctx)
        known = {task: [name for name in names if name in every] for task, names in TASKS.items()}
        known[OTHERS] = [name for name in every if task_of(name) == OTHERS]
        known = {"Commands": every} if ctx.parent else known
        for task, names in known.items():
            if names:
                print(f" {task}:")
            for name in names:
                told = in_short(self.told(ctx, name))
                print(f"   {name:<13}{textwrap.shorten(told, width - 16, placeholder=' ...')}")
        if not ctx.parent:
            _print_examples(FIRST)
