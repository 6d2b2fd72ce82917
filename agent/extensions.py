"""What a user brings along: a context or a reward, as an entry point of a package or as ``FILE.py:FUNCTION``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.capture.kernel_file import load_file
from swizzle_sim.workload.kernels import registered
from xcd_model.errors import ModelError, UnknownName

CONTEXTS, REWARDS = "swizzle_sim.contexts", "swizzle_sim.rewards"  # groups of entry points


def is_own(word: str) -> bool:
    """Whether a word names a function of a file."""
    return word.rpartition(":")[0].endswith(".py")


def load_own(word: str, group: str, known: Sequence[str] = ()) -> Callable[..., Any]:
    """Function of a user's file, or of an entry point of a group; ``known`` are names that need neither."""
    if not is_own(word):
        entries = registered(group)
        if word not in entries:
            raise UnknownName(group.rpartition(".")[2].removesuffix("s"), word, [*known, *entries, "FILE.py:FUNCTION"])
        return entries[word].load()
    path, _, name = word.rpartition(":")
    found = getattr(load_file(Path(path).resolve()), name, None)
    if not callable(found):
        raise ModelError(f"{path} has no function {name}: write FILE.py:FUNCTION", code="extension")
    return found
