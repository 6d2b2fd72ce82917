"""The commands put together, and the one place where an error becomes an exit status.

Exit status: 0 for success, 1 for a negative verdict (not a bijection), 2 for misuse, 130 for Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata

import typer

from swizzle_sim.cli import (
    capture,
    catalogue,
    ceiling,
    doctor,
    explore,
    hardware,
    judge,
    occupancy,
    optimize,
    rewrite,
    runs,
    score,
    suite,
    sweeping,
)
from swizzle_sim.cli.help import Command, Group

app = typer.Typer(
    name="swizzle-sim",
    cls=Group,
    help="Find, prove and price PID remappings (swizzles) for GPU kernels on chiplet GPUs, with no GPU.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        from swizzle_sim.release import commit, version

        at = commit()
        print(f"swizzle-sim {version()}" + (f" (commit {at})" if at else ""))
        raise typer.Exit


@app.callback()
def _options(
    show: bool = typer.Option(False, "--version", help="Show the version and stop.", callback=_version, is_eager=True),
) -> None:
    """Take the options that stand before a command."""


for _command in (
    capture.capture,
    capture.init_kernel,
    catalogue.gpus,
    catalogue.kernels,
    catalogue.show,
    judge.check,
    score.score,
    optimize.optimize,
    runs.runs,
    runs.report,
    doctor.doctor,
    occupancy.occupancy,
    rewrite.rewrite,
    suite.suite,
    hardware.bundle,
    hardware.confirm,
    hardware.agreement,
    ceiling.ceiling,
    sweeping.sweep,
    sweeping.what_if,
    explore.explore,
):
    app.command(cls=Command)(_command)

app.command("import", cls=Command)(hardware.import_)

# Commands of other rooms and packages; what they load here is typer alone.
for _name, _entry in sorted(
    {entry.name: entry for entry in metadata.entry_points(group="swizzle_sim.commands")}.items()
):
    app.command(_name, cls=Command)(_entry.load())


def main() -> None:
    """Run the command line; the console script calls this."""
    os.environ.pop("FORCE_COLOR", None)  # it would have a log full of bars, and columns cut to 80
    try:
        app()
    except BrokenPipeError:  # the reader of a pipe went away; nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        sys.exit(_complain("memory", "out of memory: use a smaller problem or larger tiles", status=2))
    except Exception as error:
        from xcd_model.errors import NotBijective, SwizzleSimError

        if not isinstance(error, SwizzleSimError):
            raise
        sys.exit(_complain(error.code, str(error), status=1 if isinstance(error, NotBijective) else 2))


def _complain(code: str, message: str, *, status: int) -> int:
    """Say what is wrong: on stderr, and with ``--json`` as a document on stdout."""
    if "--json" in sys.argv:
        from swizzle_sim.cli.output import print_json

        print_json({"error": {"code": code, "message": message}})
    else:
        print(f"swizzle-sim: {message}", file=sys.stderr)
    return status
