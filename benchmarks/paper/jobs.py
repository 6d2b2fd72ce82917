"""The work behind the figures, in pieces, each kept under a digest of what it depends on: a stopped command goes on.

What a piece finds is a JSON document in the user's cache. A piece that was stopped half-way finds its own folder again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fidelity.predict import NOT_PHYSICAL
from benchmarks.fidelity.sources import digest_of
from benchmarks.paper.progress import Progress
from swizzle_sim.release import version
from xcd_model import gpu

POLL_S = 0.5
Say = Callable[[str], None]
Work = Callable[[Mapping[str, Any], Path, Say], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work.

    Parameters
    ----------
    name : str
        What progress calls it; unique among the jobs of a command.
    work : callable
        ``work(about, folder, say) -> dict``, a function of a module, JSON in and out; ``folder`` is its own to keep
        unfinished work in, ``say`` shows a few words.
    about : mapping
        JSON-ready; ``gpu`` in it names a GPU, whose constants count.
    code : tuple of str
        Modules that the result depends on, besides those that the work's own imports.
    files : tuple of Path
        Files that it depends on.
    seconds : float [s]
        Processor time that it takes about; the longest go first.
    """

    name: str
    work: Work = field(repr=False)
    about: Mapping[str, Any] = field(hash=False)
    code: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    seconds: float = 1.0

    @property
    def key(self) -> str:
        """Digest of all that the result depends on."""
        device = gpu(self.about["gpu"]).as_dict() if "gpu" in self.about else {}
        parts = {
            "work": f"{self.work.__module__}.{self.work.__qualname__}",
            "about": dict(self.about),
            "gpu": {name: value for name, value in device.items() if name not in NOT_PHYSICAL},
            "code": [digest_of(self.work.__module__), digest_of(*self.code)],
            "files": [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files],
            "version": version(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def cache_folder() -> Path:
    """Where results are kept: ``SWIZZLE_SIM_PAPER_CACHE``, or the user's cache."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swizzle-sim" / "paper"
    return Path(os.environ.get("SWIZZLE_SIM_PAPER_CACHE") or user)


def run_jobs(jobs: Sequence[Job], *, processes: int | None = None, again: bool = False) -> dict[str, dict[str, Any]]:
    """Results by name; only what the cache lacks is worked out, several processes at a time.

    Parameters
    ----------
    jobs : sequence of Job
    processes : int, optional
        One a core where not given; with 1 all is done in this process.
    again : bool
        Work everything out once more.
    """
    keys = {job.name: job.key for job in jobs}
    found = {} if again else {job.name: kept for job in jobs if (kept := _read(keys[job.name])) is not None}
    missing = sorted((job for job in jobs if job.name not in found), key=lambda job: -job.seconds)
    for job in missing:
        (cache_folder() / f"{keys[job.name]}.say").unlink(missing_ok=True)  # of a command that was killed
        if again:
            _forget(keys[job.name])
    with Progress([job.name for job in missing], known=len(found)) as progress:
        n = min(processes or os.cpu_count() or 1, len(missing))
        finished = _in_turn(missing, keys, progress) if n <= 1 else _beside(missing, keys, progress, n)
    return {job.name: {**found, **finished}[job.name] for job in jobs}


def _in_turn(jobs: Sequence[Job], keys: Mapping[str, str], progress: Progress) -> dict[str, dict[str, Any]]:
    found = {}
    for job in jobs:
        began = time.perf_counter()
        found[job.name] = _work_out(job, keys[job.name], _shown(progress, job.name))
        progress.finished(job.name, time.perf_counter() - began)
    return found


def _shown(progress: Progress, name: str) -> Say:
    return lambda words: progress.show({name: words})


def _beside(jobs: Sequence[Job], keys: Mapping[str, str], progress: Progress, n: int) -> dict[str, dict[str, Any]]:
    """Processes begin afresh: what this one has loaded, threads of the display among it, is not for them."""
    found: dict[str, dict[str, Any]] = {}
    began = time.perf_counter()
    with ProcessPoolExecutor(n, mp_context=multiprocessing.get_context("spawn")) as pool:
        with _interrupts_ignored():  # which the processes inherit: Ctrl-C is for this one, which stops them
            running = {pool.submit(_in_process, job, keys[job.name]): job for job in jobs}
        try:
            while running:
                done, _ = wait(running, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    job = running.pop(future)
                    found[job.name] = future.result()
                    progress.finished(job.name, time.perf_counter() - began)
                progress.show({job.name: words for job in running.values() if (words := _said(keys[job.name]))})
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return found


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one may change it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_process(job: Job, key: str) -> dict[str, Any]:
    path = cache_folder() / f"{key}.say"

    def say(words: str) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(words, encoding="utf-8")

    say("begins")
    try:
        return _work_out(job, key, say)
    finally:
        path.unlink(missing_ok=True)


def _said(key: str) -> str:
    try:
        return (cache_folder() / f"{key}.say").read_text(encoding="utf-8")
    except OSError:
        return ""


def _work_out(job: Job, key: str, say: Say) -> dict[str, Any]:
    """Do the work and keep what it finds, all of it or nothing."""
    part = cache_folder() / f"{key}.part"
    part.mkdir(parents=True, exist_ok=True)
    text = json.dumps(job.work(job.about, part, say), allow_nan=False)
    new = cache_folder() / f"{key}.{os.getpid()}"
    new.write_text(text, encoding="utf-8")
    new.replace(cache_folder() / f"{key}.json")
    shutil.rmtree(part, ignore_errors=True)
    return json.loads(text)


def _read(key: str) -> dict[str, Any] | None:
    try:
        return json.loads((cache_folder() / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or cut short
        return None


def _forget(key: str) -> None:
    (cache_folder() / f"{key}.json").unlink(missing_ok=True)
    shutil.rmtree(cache_folder() / f"{key}.part", ignore_errors=True)
