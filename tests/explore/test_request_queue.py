"""Is only the newest request of a page worked on, and can what works be stopped?"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from swizzle_sim.explore import request_queue as working
from swizzle_sim.explore.request_queue import MAX_PAGES, LatestOnlyQueue, Worker
from swizzle_sim.explore.state import State
from xcd_model.errors import ReplayError

SLOW = State(  # no two neighbours in step
    kernel="transpose",
    sizes=(("M", 16384), ("N", 16384)),
    swizzle="a = 0\nfor i in range(9000):\n    if (pid + i) % 2:\n        a = a + i % 3\npid = pid + a - a",
)


class Recorder:
    """Stands for a worker: remembers what it is asked, and answers with it when it is let."""

    def __init__(self):
        self.asked, self.ready, self.cards = [], True, {}
        self.may_answer = threading.Event()

    def evaluate(self, query, *, limit_s, stale):
        self.asked.append(query)
        assert self.may_answer.wait(5)
        return None if stale() else SimpleNamespace(query=query)


def in_thread(queue, page, query, answers):
    thread = threading.Thread(target=lambda: answers.append((query, queue.submit(page, query))))
    thread.start()
    return thread


def test_of_requests_that_come_together_only_the_newest_is_begun():
    recorder = Recorder()
    recorder.may_answer.set()
    queue, answers = LatestOnlyQueue(recorder, pause_s=0.2), []
    threads = []
    for query in "abc":
        threads.append(in_thread(queue, "page", query, answers))
        time.sleep(0.03)
    threads.append(in_thread(queue, "other page", "x", answers))
    for thread in threads:
        thread.join()
    assert sorted(recorder.asked) == ["c", "x"]
    assert {query: found and found.query for query, found in answers} == {"a": None, "b": None, "c": "c", "x": "x"}


def test_what_was_begun_is_stale_once_the_page_asks_again():
    recorder = Recorder()
    queue, answers = LatestOnlyQueue(recorder, pause_s=0), []
    first = in_thread(queue, "page", "a", answers)
    while not recorder.asked:
        time.sleep(0.001)
    second = in_thread(queue, "page", "b", answers)
    time.sleep(0.05)
    recorder.may_answer.set()
    first.join()
    second.join()
    assert {query: found and found.query for query, found in answers} == {"a": None, "b": "b"}


def test_pages_are_forgotten():
    recorder = Recorder()
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
