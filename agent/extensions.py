"""What a user brings along: a context or a reward, as an entry point of a package or as ``FILE.py:FUNCTION``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swizzle_sim.capture.kernel_file import is_own, own_function
from swizzle_sim.workload.kernels import registered
from xcd_model.errors import UnknownName

CONTEXTS, REWARDS = "swizzle_sim.contexts", "swizzle_sim.rewards"  # groups of entry points


def load_own(word: str, group: str, known: Sequence[str] = ()) -> Callable[..., Any]:
    """Function of a user's file, or of an entry point of a group; ``known`` are names that need neither."""
    if is_own(word):
        return own_function(word)
    entries = registered(group)
    if word not in entries:
        raise UnknownName(group.rpartition(".")[2].removesuffix("s"), word, [*known, *entries, "FILE.py:FUNCTION"])
    return entries[word].load()
