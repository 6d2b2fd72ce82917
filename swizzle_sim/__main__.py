"""The command ``swizzle-sim`` from its first instant: Ctrl-C, SIGTERM and SIGHUP end it with a line on how to go on."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from typing import Any

from swizzle_sim.base.interruption import how

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's mallopt
ENDS = ("SIGTERM", "SIGHUP")  # sent by a scheduler at the end of a job's time, and by a terminal that closes
_ended_by: list[int] = []  # the first of these signals that came


def main() -> None:
    """Run the command line; the console script calls this."""
    try:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else numpy starts a thread a core, which spins
        gc.set_threshold(20_000, 20, 20)  # compiling makes objects by the million, and next to no garbage
        _give_back_what_is_freed()
        sys.unraisablehook = _again
        for number in [signal.SIGINT, *_end_like_ctrl_c()]:
            atexit.register(signal.signal, number, signal.SIG_IGN)  # all is said: nothing is left to interrupt
        from swizzle_sim.cli import main as run  # noqa: PLC0415 - seconds, in which Ctrl-C may fall

        run()
    except KeyboardInterrupt:
        sys.exit(interrupted())


def _give_back_what_is_freed() -> None:
    """Let a thread take what another one freed, and the system what was large: 120 MB of what transpose takes."""
    asked = any(name.startswith("MALLOC_") for name in os.environ)  # a choice of the user's goes first
    if sys.platform == "linux" and not asked:
        with contextlib.suppress(AttributeError):  # of a C library that is not glibc
            libc = ctypes.CDLL(None)
            libc.mallopt(M_ARENA_MAX, 1)
            libc.mallopt(M_MMAP_THRESHOLD, 1 << 24)


def _end_like_ctrl_c() -> list[int]:
    """Have the signals of `ENDS` end the command as Ctrl-C does; which. One that nohup ignores stays ignored."""
    numbers = [getattr(signal, name) for name in ENDS if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    return taken


def _interrupt(number: int, frame: Any) -> None:
    _ended_by.append(number)
    raise KeyboardInterrupt


def interrupted() -> int:
    """Say how to go on, or to start again where nothing was stored; the exit status."""
    said = f"ended by {signal.Signals(_ended_by[0]).name}" if _ended_by else "interrupted"
    with contextlib.suppress(OSError):  # the terminal is closed
        print(f"\n{said}; {how(sys.argv[1:])}", file=sys.stderr, flush=True)
    return 128 + (_ended_by[0] if _ended_by else signal.SIGINT)


def _again(lost: Any) -> None:
    """Raise a Ctrl-C anew that fell into a callback of compiled code, which cannot pass it on."""
    if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
        timer = threading.Timer(0.1, _thread.interrupt_main)
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()
