"""Does a command let its threads share what they free, and leave it where a user has asked for something else?"""

import ctypes
import os
import sys
from types import SimpleNamespace

import pytest

from swizzle_sim.__main__ import M_ARENA_MAX, M_MMAP_THRESHOLD, _give_back_what_is_freed

SHARED = {M_ARENA_MAX: 1, M_MMAP_THRESHOLD: 16 << 20}


@pytest.mark.parametrize(
    ("platform", "chosen", "takes", "wanted"),
    [
        ("linux", None, True, SHARED),
        ("linux", "MALLOC_ARENA_MAX", True, {}),  # a choice of the user's is left
        ("linux", "MALLOC_MMAP_THRESHOLD_", True, {}),
        ("linux", None, False, {}),  # another libc
        ("darwin", None, True, {}),
    ],
)
def test_threads_share_one_arena_and_what_is_large_is_mapped(monkeypatch, platform, chosen, takes, wanted):
    asked = {}
    libc = SimpleNamespace(**{"mallopt": asked.__setitem__} if takes else {})
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    monkeypatch.setattr(sys, "platform", platform)
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    if chosen:
        monkeypatch.setenv(chosen, "4")
    _give_back_what_is_freed()
    assert asked == wanted
