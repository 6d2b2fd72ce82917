"""What a user brings along, by name as an entry point of a package or as ``FILE.py:FUNCTION``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.capture.kernel_file import load_file
from swizzle_sim.workload.kernels import registered
from xcd_model.errors import RunError, UnknownName


def is_own(word: str) -> bool:
    """Whether a word names a user's file, with a function of it or without."""
    return word.endswith(".py") or word.rpartition(":")[0].endswith(".py")


def load_own(
    word: str, group: str, known: Sequence[str] = (), accepts: Callable[[Any], bool] = callable, rule: str = ""
) -> Any:
    """Function of a user's file that is ``accepted``, or an entry point of a group; ``known`` names need neither."""
    if not is_own(word):
        entries = registered(group)
        if word not in entries:
            raise UnknownName(group.rpartition(".")[2].removesuffix("s"), word, [*known, *entries, "FILE.py:FUNCTION"])
        return entries[word].load()
    file, _, function = (word, "", "") if word.endswith(".py") else word.rpartition(":")
    module = load_file(Path(file).resolve())
    found = getattr(module, function, None)
    if accepts(found):
        return found
    there = [key for key, one in vars(module).items() if accepts(one) and one.__module__ == module.__name__]
    if not function:
        why = f": name the function after a colon, {file}:FUNCTION"
    else:
        why = f" has no {function}" if found is None else f": {function} is no {rule or 'function'}"
    raise RunError(f"{file}{why}; the file has {', '.join(there) or 'none'}")
