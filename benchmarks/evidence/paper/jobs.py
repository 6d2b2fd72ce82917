"""The work behind the figures, in pieces, each cached under a digest of what it depends on: a stopped command goes on.

The result of a piece is a JSON document in the user's cache. A piece that was stopped half-way finds its own folder
with the unfinished work.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swizzle_benchmarks.validation.predict import NOT_PHYSICAL
from swizzle_benchmarks.validation.sources import digest_of
from swizzle_sim.base.disk_cache import DiskCache, cache_home
from swizzle_sim.base.progress import Progress
from swizzle_sim.base.release import version
from xcd_model import gpu

Say = Callable[[str], None]
Work = Callable[[Mapping[str, Any], Path, Say], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work."""

    name: str  # what progress calls it; unique among the jobs of a command
    # ``work(about, folder, say) -> dict``, a function of a module, JSON in and out; ``folder`` is its own to keep
    # unfinished work in, ``say`` shows a few words
    work: Work = field(repr=False)
    about: Mapping[str, Any] = field(hash=False)  # JSON-ready; ``gpu`` in it names a GPU, whose constants count
    code: tuple[str, ...] = ()  # modules that the result depends on, besides those that the work's own imports
    seconds: float = 1.0  # [s]: processor time that it takes about; the longest go first

    @property
    def key(self) -> str:
        """Digest of all that the result depends on."""
        device = gpu(self.about["gpu"]).as_dict() if "gpu" in self.about else {}
        parts = {
            "work": f"{self.work.__module__}.{self.work.__qualname__}",
            "about": dict(self.about),
            "gpu": {name: value for name, value in device.items() if name not in NOT_PHYSICAL},
            "code": [digest_of(self.work.__module__), digest_of(*self.code)],
            "version": version(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def cache_folder() -> Path:
    """Where results and unfinished work are: ``SWIZZLE_SIM_PAPER_CACHE``, or the user's cache folder."""
    return Path(os.environ.get("SWIZZLE_SIM_PAPER_CACHE") or cache_home() / "paper")


def run_jobs(jobs: Sequence[Job], *, processes: int | None = None, again: bool = False) -> dict[str, dict[str, Any]]:
    """Results by name; only what the cache lacks is worked out, several processes at a time."""
    store = DiskCache("paper", cache_folder())
    keys = {job.name: job.key for job in jobs}
    found = {} if again else {name: known for name, key in keys.items() if (known := store.get(key)) is not None}
    missing = sorted((job for job in jobs if job.name not in found), key=lambda job: -job.seconds)
    if again:
        for key in keys.values():
            shutil.rmtree(_unfinished(key), ignore_errors=True)
    n = min(processes or os.cpu_count() or 1, len(missing))
    with Progress("the paper", "pieces of work") as progress:
        if missing:
            progress.say(f"{len(missing)} pieces of work" + (f", {len(found)} from the cache" if found else ""))

        def show(words: str) -> None:
            progress(len(found), len(jobs), note=words)

        for done, (job, result) in enumerate(_worked_out(missing, keys, n, show), 1):
            found[job.name] = result
            progress(len(found), len(jobs))
            progress.say(f"{done} of {len(missing)}: {job.name}")
    return {job.name: found[job.name] for job in jobs}


def _worked_out(
    jobs: Sequence[Job], keys: Mapping[str, str], n: int, show: Say
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Each job with its result, as they end, from ``n`` processes; ``show`` gets the words of work in this one.

    They are spawned: what this process has loaded, threads of the display among it, is not for them.
    """
    if n <= 1:
        yield from ((job, _work_out(job, keys[job.name], show)) for job in jobs)
        return
    with ProcessPoolExecutor(n, mp_context=multiprocessing.get_context("spawn")) as pool:
        with _interrupts_ignored():  # which the processes inherit: Ctrl-C is for this one, which stops them
            running = {pool.submit(_work_out, job, keys[job.name]): job for job in jobs}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


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


def _unfinished(key: str) -> Path:
    return cache_folder() / f"{key}.part"


def _silent(words: str) -> None:
    """Say nothing: a process of its own has no display."""


def _work_out(job: Job, key: str, say: Say = _silent) -> dict[str, Any]:
    """Do the work and cache what it finds, all of it or nothing."""
    part = _unfinished(key)
    part.mkdir(parents=True, exist_ok=True)
    found = json.loads(json.dumps(job.work(job.about, part, say), allow_nan=False))
    DiskCache("paper", cache_folder()).put(key, found)
    shutil.rmtree(part, ignore_errors=True)
    return found
