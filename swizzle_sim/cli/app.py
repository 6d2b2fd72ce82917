"""The commands put together, their ``--help``, and the one place where an error becomes an exit status.

Exit status: 0 for success, 1 for a negative verdict (not a bijection), 2 for misuse, 130 for Ctrl-C.

A help fits one screen: commands by task, and of a command the options that most people need, with examples. Options
that stand in a panel of their own are named below; ``--help-all`` says what they do. The examples of ``examples.txt``
are run by the tests and shown in ``docs/cli.md``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import io
import keyword
import os
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
from typer.core import TyperCommand, TyperGroup, TyperOption

from swizzle_sim.base.release import commit, version
from swizzle_sim.base.text import visible
from xcd_model.errors import NotBijective, SwizzleSimError, UnknownName

build_runtime_param: Any = None
with contextlib.suppress(ImportError):  # a private part of typer: without it, typer itself reads each word, slower
    from typer._coercion import build_runtime_param

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


class _AsTyped:
    """What typer makes of a word, which loads pydantic, but for words and defaults that stay as they are."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or (kind in (str, int, float) and type(value) is kind):
            return () if value is None and (param.multiple or param.nargs == -1) else value
        if kind == list[str] and not isinstance(value, str):
            return list(value)
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


def _as_typed(params: Any) -> Any:
    for one in params:
        if build_runtime_param and getattr(one, "_runtime_param", one) is None:
            one._runtime_param = _AsTyped()
    return params


class Command(TyperCommand):
    """A command whose help fits one screen; an option typed twice is refused, and a misuse is told in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; what a later one would replace in silence is an error."""
        if "--help-all" in args and not ctx.resilient_parsing:
            super().format_help(ctx, ctx.make_formatter())
            _print_examples(EXAMPLES.get(self.name or "", ()))
            ctx.exit()
        if ctx.info_name == "optimize":
            from swizzle_sim.cli.proposer_options import with_levers

            args = with_levers(args)
        try:
            typed = self.make_parser(ctx).parse_args(list(args))[2]
            for one in _as_typed(self.params):
                single = isinstance(one, TyperOption) and not (one.is_flag or one.multiple or one.count)
                if single and typed.count(one) > 1:
                    raise SwizzleSimError(f"{one.opts[0]} is given {typed.count(one)} times, and takes one value")
            return super().parse_args(ctx, args)
        except USAGE as error:
            raise misuse(error, f"lab {ctx.info_name}" if ctx.info_name in LAB else ctx.info_name) from None

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
                entries.append((_typed(one), _told(one)))
        _print_list("Arguments and options", entries, names=34 if width > 90 else 24)
        if panels:
            _print_list("More, told by --help-all", ((f"{panel}:", " ".join(names)) for panel, names in panels.items()))
        _print_examples(EXAMPLES.get(self.name or "", ()))


def _typed(one: Any) -> str:
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


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what a write says of a disk
_HOME = {  # module of each command
    **{name: name for name in ("calibrate", "capture", "check", "counters", "doctor", "explore", "fleet", "optimize")},
    **{name: name for name in ("policy", "retune", "rewrite", "runs", "score")},
    **{"init-kernel": "capture", "gpus": "catalogue", "kernels": "catalogue", "show": "catalogue", "report": "runs"},
    **{"export": "runs", "bundle": "hardware", "import": "hardware", "sweep": "sweeping"},
}


@functools.cache
def _of_others() -> dict[str, Any]:
    """Entry points of other packages' commands; loading one imports typer alone."""
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group="swizzle_sim.commands")}


class Group(TyperGroup):
    """The commands by task, and where to begin; each is imported and put together when it is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        none = not args  # a parser empties them
        _as_typed(self.params)
        try:
            return super().parse_args(ctx, args)
        except USAGE as error:
            if none:  # the help itself
                raise
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

    def list_commands(self, ctx: Any) -> list[str]:
        """Names by task, then others."""
        known = {*self.commands, *_HOME, *_of_others()}
        by_task = [name for names in (*TASKS.values(), LAB) for name in names if name in known]
        every = [*by_task, *sorted(known.difference(by_task))]
        return [name for name in every if self._has(name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command; None where there is none of the name."""
        if cmd_name not in self.commands and self._has(cmd_name) and (cmd_name in _HOME or cmd_name in _of_others()):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name, cls=Command)(_function(cmd_name))
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def told(self, ctx: Any, name: str) -> str:
        """Help of a command, out of its file: importing all took half of the time of ``--help``."""
        module = f"swizzle_sim.cli.{_HOME[name]}" if name in _HOME else getattr(_of_others().get(name), "module", "")
        home = importlib.util.find_spec(module) if module else None
        text = Path(home.origin).read_text(encoding="utf-8") if home and home.origin else ""
        found = re.search(rf'^def {_spelled(name)}\(.*?"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
        return found[1] if found else getattr(self.get_command(ctx, name), "help", None) or ""

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

    def _has(self, name: str) -> bool:
        return (name in LAB) == (self.name == "lab")


def _function(name: str) -> Any:
    if name not in _HOME:
        return _of_others()[name].load()
    module = importlib.import_module(f"swizzle_sim.cli.{_HOME[name]}")
    return getattr(module, _spelled(name))


def _spelled(name: str) -> str:
    return name.replace("-", "_") + "_" * keyword.iskeyword(name)


app = typer.Typer(
    name="swizzle-sim",
    cls=Group,
    help="Find, prove and price PID remappings (swizzles) of GPU kernels, with no GPU.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        at = commit()
        print(f"swizzle-sim {version()}" + (f" (commit {at})" if at else ""))
        raise typer.Exit


@app.callback()
def _options(
    show: bool = typer.Option(False, "--version", help="Show the version and stop.", callback=_version, is_eager=True),
) -> None:
    """Options that stand before a command."""


_LAB = typer.Typer(
    cls=Group, no_args_is_help=True, help="Experiments with models and constants: a GPU's, a profiler's, a prompt's."
)
app.add_typer(_LAB, name="lab")


def main(commands: typer.Typer = app) -> None:
    """Run the command line, or other commands as it runs its own."""
    os.environ.pop("FORCE_COLOR", None)  # it would have a log full of bars, and columns cut to 80
    if os.environ.get("COLUMNS") == "0":  # rich would print no sentence at all
        del os.environ["COLUMNS"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # a "?" for "µ" where the terminal takes ASCII alone
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            _run(commands)
        finally:
            if sys.stdout is not None:  # closed
                sys.stdout.flush()  # here, where it can be said that nobody reads, or that the disk is full
    except BrokenPipeError:  # the reader of a pipe went away
        _read_no_more()
    except OSError as error:
        if error.errno not in FULL:
            raise
        print(f"swizzle-sim: cannot be written: {error.strerror}", file=sys.stderr)
        _read_no_more()


def _read_no_more() -> None:
    """Exit where stdout takes nothing any more, without Python's own words about it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _run(commands: typer.Typer) -> None:
    """Run a command; an error of ours becomes its message and exit status."""
    try:
        commands()
    except SystemExit as stop:
        if stop.code == 130 and isinstance(getattr(stop.__context__, "__cause__", None), KeyboardInterrupt):
            raise KeyboardInterrupt from None  # typer says nothing; `__main__` says how to go on
        raise
    except (OverflowError, RecursionError) as error:  # a figure of 31 digits, or brackets by the thousand, in a file
        sys.exit(_complain("range", f"a value is too large, or nested too deep: {error}", status=2))
    except MemoryError:
        sys.exit(_complain("memory", "out of memory: use a smaller problem or larger tiles", status=2))
    except Exception as error:
        if not isinstance(error, SwizzleSimError):
            raise
        sys.exit(_complain(error.code, str(error), status=1 if isinstance(error, NotBijective) else 2))


def _complain(code: str, message: str, *, status: int) -> int:
    """Print an error: on stderr, or with ``--json`` as a document on stdout."""
    if "--json" in sys.argv:
        from swizzle_sim.cli.output import print_json

        print_json({"error": {"code": code, "message": message}})
    else:
        print(f"swizzle-sim: {visible(message)}", file=sys.stderr)
    return status
