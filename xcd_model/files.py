"""Files of a user, read up to a limit and without waiting: devices, endless links and idle pipes are refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

MOST = 16 << 20  # of sources, descriptions and results; all that were seen are shorter


def read_bytes(path: str | Path, most: int = MOST) -> bytes:
    """Bytes of a file; `OSError` where it cannot be read, or has more than ``most``."""
    return _read(path, most, mode="rb")


def read_text(path: str | Path, encoding: str = "utf-8", most: int = MOST) -> str:
    """Text of a file; `OSError` where it cannot be read, or has more than ``most`` characters."""
    return _read(path, most, encoding=encoding)


def _read(path: str | Path, most: int, **how: Any) -> Any:
    with open(path, opener=at_once, **how) as file:
        found = file.read(most + 1)
        if not found and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.ENXIO, "a pipe that nobody writes to", str(path))
    if len(found) > most:
        raise OSError(errno.EFBIG, f"over {most >> 20} MiB", str(path))
    return found


def at_once(path: str, flags: int) -> int:
    """Open a file, where a pipe without a writer would be waited for; a shell's ``<(command)`` has one."""
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISFIFO(os.fstat(number).st_mode):
        os.set_blocking(number, True)
    return number
