"""The command ``swizzle-sim`` from its first instant: Ctrl-C ends it with a line that says how to go on."""

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


def main() -> None:
    """Run the command line; the console script calls this."""
    try:
        gc.set_threshold(20_000, 20, 20)  # compiling makes objects by the million, and next to no garbage
        _give_back_what_is_freed()
        sys.unraisablehook = _again
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # all is said: nothing is left to interrupt
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


def interrupted() -> int:
    """Say how to go on, or to start again where nothing was stored; the exit status."""
    print(f"\ninterrupted; {how(sys.argv[1:])}", file=sys.stderr)
    return 130


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
