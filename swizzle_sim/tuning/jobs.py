"""`run_points`: the points of a sweep, on this machine's cores or on a Dask cluster, into a store as they come."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from swizzle_sim.release import install_hint
from swizzle_sim.tuning.store import PointStore
from xcd_model.errors import SearchError, UnknownName

BACKENDS = ("processes", "serial", "dask")
SCHEDULER_TIMEOUT_S = 10.0
Point = Mapping[str, Any]
OnPoint = Callable[[Point, Mapping[str, Any], int, int], None]


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
    """Evaluate the points that the store lacks.

    Parameters
    ----------
    points : sequence of mapping
        JSON-ready, each different.
    evaluate : callable
        ``evaluate(point) -> row``, JSON-ready; a function of a module, so that another process can import it.
    store : PointStore
        Each row is in it before the next is waited for.
    backend : {"processes", "serial", "dask"}
    jobs : int
        Processes; -1 for one a core.
    scheduler : str, optional
        Address of the Dask scheduler, such as ``tcp://10.0.0.1:8786``; its workers need this package.
    timeout_s : float [s]
        For the scheduler to answer.
    on_point : callable, optional
        ``on_point(point, row, done, total)``.

    Returns
    -------
    rows : list of dict
        In the order of the points.

    Raises
    ------
    SearchError
        With code ``scheduler`` if the scheduler does not answer, has no workers, or Dask is missing.
    """
    if backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    if (backend == "dask") != (scheduler is not None):
        raise SearchError("--backend dask and --scheduler ADDRESS belong together", code="scheduler")
    missing = [i for i, point in enumerate(points) if store.find(point) is None]
    done = len(points) - len(missing)
    with (
        _place(backend, scheduler, timeout_s),
        contextlib.closing(_run(points, missing, evaluate, backend, jobs)) as rows,
    ):
        for i, row in rows:
            store.add(points[i], row)
            done += 1
            if on_point:
                on_point(points[i], row, done, len(points))
    found = [store.find(point) for point in points]
    return [row for row in found if row is not None]


def _run(
    points, missing: Sequence[int], evaluate, backend: str, jobs: int
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    if backend == "serial" or not missing:
        yield from (_evaluated(evaluate, i, points[i]) for i in missing)
        return
    import joblib

    tasks = (joblib.delayed(_evaluated)(evaluate, i, dict(points[i])) for i in missing)
    options = {} if backend == "dask" else {"n_jobs": jobs}
    yield from joblib.Parallel(return_as="generator_unordered", batch_size=1, **options)(tasks)


@contextlib.contextmanager
def _place(backend: str, scheduler: str | None, timeout_s: float) -> Iterator[None]:
    """Where joblib runs what it is given."""
    if backend != "dask":
        yield
        return
    import joblib

    try:
        import distributed
    except ImportError:
        raise SearchError(f"Dask is not installed: {install_hint('cluster')}", code="scheduler") from None
    with _quiet():
        try:
            client = distributed.Client(scheduler, timeout=timeout_s, set_as_default=True)
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
        with joblib.parallel_config("dask"):
            yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own words about a scheduler that does not answer off the terminal."""
    import logging  # noqa: PLC0415

    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
