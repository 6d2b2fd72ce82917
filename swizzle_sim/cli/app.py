"""The commands put together, and the one place where an error becomes an exit status.

Exit status: 0 for success, 1 for a negative verdict (not a bijection), 2 for misuse, 130 for Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import tempfile

import typer

from swizzle_sim.cli import catalogue, judge, optimize, runs
from xcd_model.errors import NotBijective, SwizzleSimError

app = typer.Typer(
    name="swizzle-sim",
    help="Find, prove and price PID remappings (swizzles) for GPU kernels on chiplet GPUs, with no GPU.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        from swizzle_sim.release import version

        print(f"swizzle-sim {version()}")
        raise typer.Exit


@app.callback()
def _options(
    show: bool = typer.Option(False, "--version", help="Show the version and stop.", callback=_version, is_eager=True),
) -> None:
    """Take the options that stand before a command."""


for _command in (
    catalogue.gpus,
    catalogue.kernels,
    catalogue.show,
    judge.check,
    judge.score,
    optimize.optimize,
    runs.runs,
    runs.report,
):
    app.command()(_command)


def _find_room_for_compiled_code() -> None:
    """Where neither the code's folder nor the home can be written (a container), let numba cache in a folder of ours.

    The folder is new each time, so compiling is slow each time: nobody else could have put code there.
    """
    home = os.path.expanduser("~")
    if not any(os.access(place, os.W_OK) for place in (os.path.dirname(__file__), home)):
        os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.mkdtemp(prefix="swizzle-sim-"))


def main() -> None:
    """Run the command line; the console script calls this."""
    _find_room_for_compiled_code()
    try:
        app()
    except NotBijective as error:
        sys.exit(_complain(error, status=1))
    except SwizzleSimError as error:
        sys.exit(_complain(error, status=2))
    except BrokenPipeError:  # the reader of a pipe went away; nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        sys.exit(_complain(SwizzleSimError("out of memory: use a smaller problem or larger tiles"), status=2))


def _complain(error: SwizzleSimError, *, status: int) -> int:
    """Say what is wrong: on stderr, and with ``--json`` as a document on stdout."""
    if "--json" in sys.argv:
        from swizzle_sim.cli.output import print_json

        print_json({"error": {"code": error.code, "message": str(error)}})
    else:
        print(f"swizzle-sim: {error}", file=sys.stderr)
    return status
