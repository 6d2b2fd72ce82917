"""`run_points`: points of a sweep on local cores or a Dask cluster; `PointStore`: their rows, stored as they finish.

A store is the durable record of one sweep, in its own folder, which a user resumes and reads; it is no cache.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import install_hint
from swizzle_sim.search.history import RunFile
from xcd_model.errors import RunError, SearchError, UnknownName

FILE = "sweep.sqlite"
BACKENDS = ("processes", "serial", "dask")
SCHEDULER_TIMEOUT_S = 10.0
Point = Mapping[str, Any]
OnPoint = Callable[[Point, Mapping[str, Any], int, int], None]


def key_of(point: Mapping[str, Any]) -> str:
    """Hash of a point, the same in every process."""
    return blake2b(json.dumps(point, sort_keys=True).encode(), digest_size=12).hexdigest()


class PointStore(RunFile):
    """Rows of a sweep by point, in one SQLite file; in memory without a folder."""

    def __init__(self, folder: Path | None, *, resume: bool = False):
        self.folder = folder
        path = None if folder is None else Path(folder) / FILE
        if path is not None and path.exists() != resume:
            missing = f"no {FILE} here, so no run to go on with"
            why = missing if resume else f"{FILE} there is never overwritten: name another folder, or --resume it"
            raise RunError(f"{folder}: {why}")
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(path or ":memory:")
            with self._db:
                self._db.execute("CREATE TABLE IF NOT EXISTS point (key TEXT PRIMARY KEY, point TEXT, row TEXT)")
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"{folder}: not a sweep that can be read or written ({error})") from error

    def add(self, point: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        """Store a row, unless the point has one: what is evaluated twice counts once."""
        values = (key_of(point), json.dumps(point), json.dumps(row))
        self._write("INSERT OR IGNORE INTO point VALUES (?, ?, ?)", values)

    def find(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """Row of a point, or None."""
        rows = self._read("SELECT row FROM point WHERE key = ?", key_of(point))
        return json.loads(rows[0][0]) if rows else None

    def __len__(self) -> int:
        return self._read("SELECT COUNT(*) FROM point")[0][0]


def _evaluated(evaluate: Callable[[Point], Mapping[str, Any]], index: int, point: Point) -> tuple[int, dict[str, Any]]:
    return index, dict(evaluate(point))


def run_points(
    points: Sequence[Point],
    evaluate: Callable[[Point], Mapping[str, Any]],
    store: PointStore,
    *,
    backend: str = "processes",
    jobs: int = -1,
    scheduler: str | None = None,
    timeout_s: float = SCHEDULER_TIMEOUT_S,
    on_point: OnPoint | None = None,
) -> list[dict[str, Any]]:
    """Rows of all points, those that a store lacks evaluated; the scheduler has ``timeout_s`` to answer."""
    if backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    if (backend == "dask") != (scheduler is not None):
        raise SearchError("--backend dask and --scheduler ADDRESS belong together", code="scheduler")
    first: dict[str, int] = {}  # of equal points one is evaluated
    for i, point in enumerate(points):
        first.setdefault(key_of(point), i)
    missing = [i for i in first.values() if store.find(points[i]) is None]
    done = len(points) - len(missing)
    with contextlib.ExitStack() as end:
        client = end.enter_context(_cluster(scheduler, timeout_s)) if scheduler is not None else None
        for i, row in end.enter_context(contextlib.closing(_run(points, missing, evaluate, backend, jobs, client))):
            store.add(points[i], row)
            done += 1
            if on_point:
                on_point(points[i], row, done, len(points))
    found = [store.find(point) for point in points]
    return [row for row in found if row is not None]


def _run(
    points, missing: Sequence[int], evaluate, backend: str, jobs: int, client: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    if backend == "serial" or not missing:
        yield from (_evaluated(evaluate, i, points[i]) for i in missing)
        return
    if client is not None:
        yield from _on_cluster(points, iter(missing), evaluate, client)
        return
    import joblib

    tasks = (joblib.delayed(_evaluated)(evaluate, i, dict(points[i])) for i in missing)
    yield from joblib.Parallel(return_as="generator_unordered", batch_size=1, n_jobs=jobs)(tasks)


def _on_cluster(
    points, left: Iterator[int], evaluate, client: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Rows of points on a Dask cluster, two points for each thread of the workers that there are by then."""
    import distributed

    running = distributed.as_completed()
    while True:
        free = 2 * sum(client.ncores().values()) - running.count()
        for i in islice(left, max(free, int(running.is_empty()))):
            running.add(client.submit(_evaluated, evaluate, i, dict(points[i]), pure=False))
        if running.is_empty():
            return
        yield next(running).result()


@contextlib.contextmanager
def _cluster(scheduler: str, timeout_s: float) -> Iterator[Any]:
    """Client of a Dask cluster that has workers."""
    try:
        import distributed
    except ImportError:
        raise SearchError(f"Dask is not installed: {install_hint('cluster')}", code="scheduler") from None
    with _quiet():
        try:
            client = distributed.Client(scheduler, timeout=timeout_s)
        except (OSError, TimeoutError, ValueError) as error:
            raise SearchError(
                f"scheduler {scheduler}: no answer within {timeout_s:g} s ({type(error).__name__}): is it running, and "
                "is the address right?",
                code="scheduler",
            ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise SearchError(
                f"scheduler {scheduler} has no workers: start some with `dask worker {scheduler}`", code="scheduler"
            )
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log, which repeats that a scheduler does not answer."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
