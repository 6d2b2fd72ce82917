"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from xcd_model.errors import RunError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never half of one.

    Devices, pipes and links, such as ``/dev/stdout``, are written to and not replaced.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(data)
            return
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a read-only folder refuses that, too
            unfinished.unlink()
        raise RunError(f"{path}: cannot be written ({error.strerror})") from error


def check_folder(folder: Path) -> None:
    """Make a folder, if it is not there, and try whether it takes files: before what is to be written is worked out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from error
