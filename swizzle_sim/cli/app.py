"""The commands put together, and the one place where an error becomes an exit status.

Exit status: 0 for success, 1 for a negative verdict (not a bijection), 2 for misuse, 130 for Ctrl-C.
"""

from __future__ import annotations

import errno
import functools
import importlib
import io
import keyword
import os
import re
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperOption

from swizzle_sim.base.release import commit, version
from swizzle_sim.base.text import visible
from swizzle_sim.cli.help import LAB, TASKS, USAGE, Command, Group, misuse
from xcd_model.errors import NotBijective, SwizzleSimError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what a write says of a disk


class TypedOnce(Command):
    """A command that refuses an option that is typed twice and counts once, and says a misuse in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; what a later one would replace in silence is an error."""
        if "--help-all" in args and not ctx.resilient_parsing:
            self.format_all(ctx)
            ctx.exit()
        if ctx.info_name == "optimize":
            from swizzle_sim.cli.proposer_options import with_levers

            args = with_levers(args)
        try:
            typed = self.make_parser(ctx).parse_args(list(args))[2]
            for one in self.params:
                single = isinstance(one, TyperOption) and not (one.is_flag or one.multiple or one.count)
                if single and typed.count(one) > 1:
                    raise SwizzleSimError(f"{one.opts[0]} is given {typed.count(one)} times, and takes one value")
            return super().parse_args(ctx, args)
        except USAGE as error:
            raise misuse(error, f"lab {ctx.info_name}" if ctx.info_name in LAB else ctx.info_name) from None


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


class _Imported(Group):
    """A group whose commands are imported and put together when they are asked for."""

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
            alone.command(cmd_name, cls=TypedOnce)(_function(cmd_name))
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def told(self, ctx: Any, name: str) -> str:
        """Help of a command; of one here out of its file: importing all took half of the time of ``--help``."""
        home = Path(__file__).with_name(f"{_HOME.get(name, '')}.py")
        text = home.read_text(encoding="utf-8") if home.is_file() else ""
        found = re.search(rf'^def {_spelled(name)}\(.*?"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
        return found[1] if found else super().told(ctx, name)

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
    cls=_Imported,
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
    cls=_Imported,
    no_args_is_help=True,
    help="Experiments with models and constants: a GPU's, a profiler's, a prompt's.",
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
