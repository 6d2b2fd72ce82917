"""Timed replays in the background: a page starts one, goes on, and asks how far it is."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swizzle_sim.explore.request_queue import MAX_PAGES, LatestOnlyQueue, Worker
from xcd_model.errors import SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.explore.evaluate import Result


@dataclass
class Job:
    """One page's timed replay.

    Parameters
    ----------
    query : str
        State that it is of.
    what : str
        Order that is replayed; empty until it has begun.
    done, total : int
        Workgroups of that order that have ended, and all.
    began_s : float [s]
        When that order began.
    result : Result or None
        Once it is over, unless ``error`` says why there is none.
    error : str
    """

    query: str
    what: str = ""
    done: int = 0
    total: int = 0
    began_s: float = 0.0
    result: Result | None = None
    error: str = ""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.result is not None or bool(self.error)

    @property
    def left_s(self) -> float | None:
        """Seconds that are left of the order under way, at its pace so far; None where nobody knows."""
        took = time.monotonic() - self.began_s
        return took * (self.total - self.done) / self.done if self.done and took > 1 else None

    def tell(self, what: str, done: int, total: int) -> None:
        """Note how far it is; see `Told`."""
        if what != self.what:
            self.began_s = time.monotonic()
        self.what, self.done, self.total = what, done, total


class TimedJobs:
    """One process for all pages, begun with the first job; a page's newer job stops its older one.

    Parameters
    ----------
    start : callable
        Gives the worker.
    """

    def __init__(self, start: Callable[[], Worker] = lambda: Worker(first=False)) -> None:
        self._start, self._lock = start, threading.Lock()
        self._worker: Worker | None = None
        self._queue: LatestOnlyQueue | None = None
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def submit(self, page: str, query: str) -> Job:
        """Begin the timed replay of a state, unless it is the page's own job already."""
        with self._lock:
            job = self._jobs.get(page)
            if job is not None and job.query == query:
                return job
            if self._queue is None:
                self._worker = self._start()
                self._queue = LatestOnlyQueue(self._worker)
            job = self._jobs[page] = Job(query)
            self._jobs.move_to_end(page)
            while len(self._jobs) > MAX_PAGES:
                self._jobs.popitem(last=False)
        threading.Thread(target=self._run, args=(self._queue, page, job), daemon=True).start()
        return job

    def drop(self, page: str) -> None:
        """Stop a page's job."""
        with self._lock:
            if self._jobs.pop(page, None) is not None and self._queue is not None:
                self._queue.drop(page)

    def look(self, page: str) -> Job | None:
        """Job of a page, or None."""
        return self._jobs.get(page)

    def close(self) -> None:
        """Stop the process."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()

    @staticmethod
    def _run(queue: LatestOnlyQueue, page: str, job: Job) -> None:
        try:
            job.result = queue.submit(page, job.query, told=job.tell)
        except SwizzleSimError as error:
            job.error = str(error)
        else:
            job.error = "" if job.result else "superseded"
