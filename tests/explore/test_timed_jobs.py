"""Does a page's timed replay run in the background, and give way to the page's next one?"""

from __future__ import annotations

import threading
import time

import pytest

from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Evaluator
from swizzle_sim.explore.request_queue import Job, TimedJobs
from swizzle_sim.explore.state import State
from xcd_model.errors import ReplayError

SMALL = (("M", 512), ("N", 512), ("K", 128), ("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 64))


class Slow:
    """Stands for a worker: answers with its query when it is let, unless it is superseded before."""

    ready, cards = True, {}

    def __init__(self):
        self.begun, self.given_up, self.may_answer = [], [], threading.Event()

    def evaluate(self, query, *, limit_s, stale):
        self.begun.append(query)
        while not self.may_answer.is_set():
            if stale():
                self.given_up.append(query)
                return None
            time.sleep(0.002)
        if query == "wrong":
            raise ReplayError("stopped after 1200 s")
        return query

    def close(self):
        pass


def until(true):
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.fixture
def slow():
    return Slow()


def test_a_job_runs_in_the_background(slow):
    jobs = TimedJobs(lambda: slow)
    job = jobs.submit("page", "a")
    assert not job.over and jobs.submit("page", "a") is job
    slow.may_answer.set()
    until(lambda: job.over)
    assert job.result == "a" and slow.begun == ["a"]


def test_a_newer_job_of_the_page_stops_the_older_and_so_does_dropping_it(slow):
    jobs = TimedJobs(lambda: slow)
    first = jobs.submit("page", "a")
    until(lambda: slow.begun == ["a"])
    second = jobs.submit("page", "b")
    until(lambda: slow.given_up == ["a"])
    assert first.error == "superseded" or not first.over
    until(lambda: slow.begun == ["a", "b"])
    jobs.drop("page")
    until(lambda: slow.given_up == ["a", "b"])
    assert second.result is None


def test_an_error_is_told(slow):
    slow.may_answer.set()
    job = TimedJobs(lambda: slow).submit("page", "wrong")
    until(lambda: job.over)
    assert "No timed replay: stopped after" in str(show.timed(job))


def test_what_is_shown_of_a_job():
    job = Job("q")
    job.began_s -= 10
    assert "replaying in time: 10 s so far" in str(show.timed(job))
    state = State(sizes=SMALL, swizzle="column", pins=("<b>row</b>",), replay="timed")
    job.result = Evaluator(compile=False).evaluate(state)
    shown = str(show.timed(job))
    assert "timed-figures" in shown and "timed-pins" in shown
    cards = str(show.side_by_side(job.result))
    assert "in view" in cards and "<b>row</b>" in cards and "dangerously" not in cards
    assert show.side_by_side(Evaluator(compile=False).evaluate(State(sizes=SMALL))) == []
