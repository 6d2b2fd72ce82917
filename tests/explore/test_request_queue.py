"""Is only the newest request of a page worked on, and can what works be stopped?"""

from __future__ import annotations

import threading
import time

import pytest

from swizzle_sim.explore import request_queue as working
from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Evaluator
from swizzle_sim.explore.request_queue import MAX_PAGES, Job, LatestOnlyQueue, TimedJobs, Worker
from swizzle_sim.explore.state import State
from xcd_model.errors import ReplayError

SMALL = (("M", 512), ("N", 512), ("K", 128), ("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 64))
SLOW = State(  # no two neighbours in step
    kernel="transpose",
    sizes=(("M", 16384), ("N", 16384)),
    swizzle="a = 0\nfor i in range(9000):\n    if (pid + i) % 2:\n        a = a + i % 3\npid = pid + a - a",
)


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


def in_thread(queue, page, query, answers):
    thread = threading.Thread(target=lambda: answers.append((query, queue.submit(page, query))))
    thread.start()
    return thread


def test_of_requests_that_come_together_only_the_newest_is_begun():
    recorder = Slow()
    recorder.may_answer.set()
    queue, answers = LatestOnlyQueue(recorder, pause_s=0.2), []
    threads = []
    for query in "abc":
        threads.append(in_thread(queue, "page", query, answers))
        time.sleep(0.03)
    threads.append(in_thread(queue, "other page", "x", answers))
    for thread in threads:
        thread.join()
    assert sorted(recorder.begun) == ["c", "x"]
    assert {query: found for query, found in answers} == {"a": None, "b": None, "c": "c", "x": "x"}


def test_what_was_begun_is_stale_once_the_page_asks_again():
    recorder = Slow()
    queue, answers = LatestOnlyQueue(recorder, pause_s=0), []
    first = in_thread(queue, "page", "a", answers)
    until(lambda: recorder.begun)
    second = in_thread(queue, "page", "b", answers)
    time.sleep(0.05)
    recorder.may_answer.set()
    first.join()
    second.join()
    assert {query: found for query, found in answers} == {"a": None, "b": "b"}


def test_pages_are_forgotten():
    recorder = Slow()
    recorder.may_answer.set()
    queue = LatestOnlyQueue(recorder, pause_s=0)
    for page in range(2 * MAX_PAGES):
        queue.submit(str(page), "q")
    assert len(queue._newest) == MAX_PAGES


@pytest.fixture(scope="module")
def worker():
    one = Worker()
    yield one
    one.close()


def test_a_worker_answers_and_survives_what_is_no_state(worker):
    result = worker.evaluate(State(kernel="softmax", sizes=(("M", 64), ("N", 256)), swizzle="contiguous").query())
    assert result.verdict.bijective and len(worker.cards) >= 25
    assert worker.evaluate("kernel=nope").problem.code == "unknown-name"


def test_what_takes_too_long_is_stopped_and_so_is_what_nobody_waits_for(worker, monkeypatch):
    with pytest.raises(ReplayError, match="stopped after"):
        worker.evaluate(SLOW.query(), limit_s=0.4)
    monkeypatch.setattr(working, "GIVE_UP_AFTER_S", 0.2)
    assert (
        worker.evaluate(SLOW.query(), limit_s=60.0, stale=lambda: worker.ready) is None
    )  # begun by a new process, and given up


# ---- The timed replay of a page, in the background.
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
    state = State(sizes=SMALL, swizzle="column", replay="timed")
    job.result = Evaluator(compile=False).evaluate(state)
    shown = str(show.timed(job))
    assert "timed-figures" in shown
