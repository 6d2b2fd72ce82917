"""Requests of the page: the process that evaluates, queues that drop superseded ones, timed replays behind the page."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from xcd_model.errors import ReplayError, SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.explore.evaluate import Result

LIMIT_S = 20.0  # of one evaluation; what the page replays by itself takes a second
ANYWAY_LIMIT_S = 300.0  # of one that the user started in spite of its size
TIMED_LIMIT_S = 1200.0  # of one in the background
GIVE_UP_AFTER_S = 2.0  # a superseded evaluation is stopped only then: a new process takes a second
PAUSE_S = 0.05  # debounce: a slider that is dragged sends many requests
MAX_PAGES = 100
_POLL_S = 0.02


class Worker:
    """One process with an `Evaluator`, started anew when it is stopped; used by one thread at a time."""

    def __init__(self, *, first: bool = True) -> None:
        self.cards: dict[str, bytes] = {}
        self._first = first
        self._ready = threading.Event()
        self._start()

    @property
    def ready(self) -> bool:
        """Whether it has compiled, or loaded, what it runs."""
        return self._ready.is_set()

    def evaluate(
        self, query: str, *, limit_s: float = LIMIT_S, stale: Callable[[], bool] = lambda: False
    ) -> Result | None:
        """Evaluate the state of an address; with a longer limit whatever its size."""
        while not self._ready.wait(_POLL_S * 5):
            if stale():
                return None
        began = time.monotonic()
        try:
            self._pipe.send((query, limit_s > LIMIT_S))
            while not self._pipe.poll(_POLL_S):
                took = time.monotonic() - began
                if took > GIVE_UP_AFTER_S and stale():
                    self.restart()
                    return None
                if took > limit_s:
                    self.restart()
                    raise ReplayError(f"stopped after {limit_s:.0f} s: use smaller sizes, or `swizzle-sim score`")
            return self._pipe.recv()
        except (EOFError, OSError):
            self.restart()
            raise ReplayError("the process that evaluates died, most likely out of memory: use smaller sizes") from None

    def restart(self) -> None:
        """Stop the process, whatever it does, and start another."""
        self.close()
        self._start()

    def close(self) -> None:
        """Stop the process."""
        self._ready.clear()
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # no thread's lock is copied, and it is the same on all systems
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._first), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._await_ready, args=(self._pipe,), daemon=True).start()

    def _await_ready(self, pipe: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):  # closed before it was ready
            cards = pipe.recv()
            if pipe is self._pipe:
                self.cards = cards
                self._ready.set()


class LatestOnlyQueue:
    """Debounced queue in front of one worker: a request that its page has superseded is dropped."""

    def __init__(self, worker: Worker, *, pause_s: float = PAUSE_S):
        self.worker, self._pause_s = worker, pause_s
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._numbering, self._busy = threading.Lock(), threading.Lock()

    def submit(self, page: str, query: str, *, limit_s: float = LIMIT_S) -> Result | None:
        """Evaluate the state of a page, unless the page submits another before it has begun."""
        ticket = self._ticket(page)

        def stale() -> bool:
            return self._newest.get(page) != ticket

        time.sleep(self._pause_s)
        while not stale():
            if self._busy.acquire(timeout=0.05):
                try:
                    return None if stale() else self.worker.evaluate(query, limit_s=limit_s, stale=stale)
                finally:
                    self._busy.release()
        return None

    def drop(self, page: str) -> None:
        """Make a page's requests stale."""
        self._ticket(page)

    def _ticket(self, page: str) -> int:
        """Next ticket of a page; the pages that have been silent longest are forgotten."""
        with self._numbering:
            ticket = self._newest.pop(page, 0) + 1
            self._newest[page] = ticket
            while len(self._newest) > MAX_PAGES:
                self._newest.popitem(last=False)
        return ticket


@dataclass
class Job:
    """One page's timed replay."""

    query: str  # state that it is of
    began_s: float = field(default_factory=time.monotonic)  # [s]
    result: Result | None = None  # once it is over, unless ``error`` says why there is none
    error: str = ""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.result is not None or bool(self.error)


class TimedJobs:
    """One process for all pages, begun with the first job; a page's newer job stops its older one."""

    def __init__(self, start: Callable[[], Worker] = lambda: Worker(first=False)) -> None:
        self._start, self._lock = start, threading.Lock()
        self._queue: LatestOnlyQueue | None = None
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def submit(self, page: str, query: str) -> Job:
        """Begin the timed replay of a state, unless it is the page's own job already."""
        with self._lock:
            job = self._jobs.get(page)
            if job is not None and job.query == query:
                return job
            if self._queue is None:
                self._queue = LatestOnlyQueue(self._start())
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

    def close(self) -> None:
        """Stop the process."""
        with self._lock:
            if self._queue is not None:
                self._queue.worker.close()

    @staticmethod
    def _run(queue: LatestOnlyQueue, page: str, job: Job) -> None:
        try:
            job.result = queue.submit(page, job.query, limit_s=TIMED_LIMIT_S)
        except SwizzleSimError as error:
            job.error = str(error)
        else:
            job.error = "" if job.result else "superseded"


def _work(pipe: Connection, first: bool) -> None:
    """Answer requests until the other end is closed; errors that are not the project's own are reported as defects."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that serves, which then ends this one
    from swizzle_sim.explore.evaluate import Evaluator, Problem, Result, cards  # noqa: PLC0415
    from swizzle_sim.explore.state import State, read_query  # noqa: PLC0415

    evaluator = Evaluator(compile=os.environ.get("SWIZZLE_SIM_COMPILE", "1") != "0")  # as the commands' `--compile`
    if first:
        evaluator.evaluate(State())
    pipe.send(cards() if first else {})
    while True:
        try:
            query, anyway = pipe.recv()
        except EOFError:
            return
        try:
            result = evaluator.evaluate(read_query(query), anyway=anyway)
        except MemoryError:
            result = Result(state=State(), problem=Problem(code="memory", message="out of memory: use smaller sizes"))
        except Exception as error:  # a defect must not end the page
            text = f"{type(error).__name__}: {error}; this is a defect, please report it"
            result = Result(state=State(), problem=Problem(code="defect", message=text))
        pipe.send(result)
