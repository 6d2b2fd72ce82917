"""Does progress stay one line on a terminal, and a line now and then in a log?"""

import io
import sys

import pytest

from swizzle_sim.base import progress
from swizzle_sim.base.progress import LOG_EVERY_S, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only where a test moves it."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def printed(monkeypatch, stream, clock, seconds, term="xterm"):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("COLUMNS", raising=False)
    with Progress("counting", "sheep") as count:
        for i in range(1, 1001):
            clock[0] += seconds / 1000
            count(i, 1000, note="asleep")
    return stream.getvalue()


def test_a_log_gets_a_line_after_ten_seconds_and_then_one_a_minute(monkeypatch, clock):
    assert printed(monkeypatch, io.StringIO(), clock, 9.9) == ""
    lines = printed(monkeypatch, io.StringIO(), clock, 200.0).splitlines()
    assert len(lines) == 1 + (200 - 10) // LOG_EVERY_S
    assert lines[0] == "counting: 50 of 1000 sheep, 3 min left, asleep"
    assert lines[-1].startswith("counting: 95") and lines[-1].endswith(" s left, asleep")


def test_a_terminal_gets_one_line_that_goes(monkeypatch, clock):
    text = printed(monkeypatch, Terminal(), clock, 1.0)
    assert "counting" in text and "1000/1000" in text and "sheep" in text
    assert text.endswith("\x1b[2K")  # and the line is erased


def test_a_terminal_that_cannot_go_back_is_a_log(monkeypatch, clock):
    text = printed(monkeypatch, Terminal(), clock, 150.0, term="dumb")
    assert "\r" not in text and "\x1b" not in text and len(text.splitlines()) == 3


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_without_a_count_nothing_is_shown(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", shown := stream())
    with Progress("counting"):
        pass
    assert shown.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_line_that_is_said_stays(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", shown := stream())
    monkeypatch.setenv("TERM", "xterm")
    with Progress("counting") as count:
        count(1, 2)
        count.say("one of them [bold] is done")
    assert "one of them [bold] is done\n" in shown.getvalue()
