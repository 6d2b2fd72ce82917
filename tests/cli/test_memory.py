"""Does a command let its threads share what they free, and leave it where a user has asked for something else?"""

import ctypes
import os
import sys
from types import SimpleNamespace

import pytest

from swizzle_sim.__main__ import M_ARENA_MAX, M_MMAP_THRESHOLD, _give_back_what_is_freed


@pytest.fixture
def asked(monkeypatch):
    found = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=found.__setitem__))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    return found


def test_threads_share_one_arena_and_what_is_large_is_mapped(asked):
    _give_back_what_is_freed()
    assert asked == {M_ARENA_MAX: 1, M_MMAP_THRESHOLD: 16 << 20}


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_"])
def test_a_choice_of_the_users_is_left(asked, monkeypatch, name):
    monkeypatch.setenv(name, "4")
    _give_back_what_is_freed()
    assert asked == {}


@pytest.mark.parametrize(("platform", "libc"), [("darwin", None), ("linux", SimpleNamespace())])
def test_elsewhere_and_with_another_libc_nothing_is_asked(asked, monkeypatch, platform, libc):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    _give_back_what_is_freed()
    assert asked == {}
