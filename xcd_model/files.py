"""Files of a user, read up to a limit: a device or an endless link is refused like any file that cannot be read."""

from __future__ import annotations

import errno
from pathlib import Path

MOST = 16 << 20  # of sources, descriptions and results; all that were seen are shorter


def read_bytes(path: str | Path, most: int = MOST) -> bytes:
    """Bytes of a file; `OSError` where it cannot be read, or has more than ``most``."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    _refuse_more(len(data), most, path)
    return data


def read_text(path: str | Path, encoding: str = "utf-8", most: int = MOST) -> str:
    """Text of a file; `OSError` where it cannot be read, or has more than ``most`` characters."""
    with open(path, encoding=encoding) as file:
        text = file.read(most + 1)
    _refuse_more(len(text), most, path)
    return text


def _refuse_more(found: int, most: int, path: str | Path) -> None:
    if found > most:
        raise OSError(errno.EFBIG, f"over {most >> 20} MiB", str(path))
