"""`go_on_with`, `how`: what Ctrl-C says of any command: how to go on where something is stored, or to start again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

_stored: list[Path] = []  # of the command that runs: the file with which its folder can be resumed


def go_on_with(folder: Path | None, file: str) -> None:
    """Have Ctrl-C name ``--resume folder``, from the instant that the file is in the folder; None forgets it."""
    _stored[:] = [] if folder is None else [Path(folder) / file]


def how(words: Sequence[str]) -> str:
    """How to go on with an interrupted command, or to start it again."""
    folder = next((path.parent for path in _stored if path.is_file()), None)
    if folder is None:
        return f"start again with: {shlex.join(['swizzle-sim', *words])}"
    more = [] if any(word.split("=")[0] == "--resume" for word in words) else ["--resume", str(folder)]
    end = words.index("--") if "--" in words else len(words)  # behind it nothing is an option
    return f"go on with: {shlex.join(['swizzle-sim', *_without_out(words[:end]), *more, *words[end:]])}"


def _without_out(words: Sequence[str]) -> list[str]:
    """Words without ``--out`` or ``-o`` and its value."""
    kept, skip = [], False
    for word in words:
        taken = word in ("--out", "-o")
        if not (skip or taken or word.startswith(("--out=", "-o"))):
            kept.append(word)
        skip = taken
    return kept
