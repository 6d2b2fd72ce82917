"""Does progress stay one line on a terminal, and a line now and then in a log?"""

import io
import sys

import pytest

from swizzle_sim.cli import progress
from swizzle_sim.cli.progress import LOG_EVERY_S, ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told otherwise."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def said(monkeypatch, stream, clock, seconds, term="xterm"):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    with ProgressLine() as line:
        for i in range(1, 1001):
            clock[0] += seconds / 1000
            line(f"{i} of 1000")
    return stream.getvalue()


def test_a_log_gets_a_line_each_ten_seconds(monkeypatch, clock):
    assert said(monkeypatch, io.StringIO(), clock, 9.9) == ""
    lines = said(monkeypatch, io.StringIO(), clock, 35.0).splitlines()
    assert len(lines) == 35 // LOG_EVERY_S
    assert lines[0] == "286 of 1000"  # the first after ten seconds


def test_a_terminal_gets_one_line_that_goes(monkeypatch, clock):
    text = said(monkeypatch, Terminal(), clock, 1.0)
    assert "\n" not in text and text.count("\r") == 1000 + 2
    assert text.endswith("\r" + " " * len("1000 of 1000") + "\r")


def test_a_terminal_that_cannot_go_back_is_a_log(monkeypatch, clock):
    assert "\r" not in said(monkeypatch, Terminal(), clock, 35.0, term="dumb")
