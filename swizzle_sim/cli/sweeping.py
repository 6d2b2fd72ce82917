"""``sweep``: one kernel at many sizes, or on GPUs that do not exist."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import (
    Compile,
    Json,
    Launch,
    Replay,
    Swizzles,
    grouped,
    load_kernel,
    load_swizzle,
    one_folder,
    option,
)
from swizzle_sim.cli.output import COUNTED, pct, print_json, say, table
from swizzle_sim.search.jobs import FILE, PointStore, run_points
from xcd_model.errors import SpecError

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

MACHINES = "On many cores or machines"


@dataclass(frozen=True)
class Compared:
    """What is compared with the launch order, and on which GPU: one with some numbers changed."""

    changes: Annotated[
        list[str] | None, option("--set", metavar="KEY=VALUE[,VALUE]", help="Change the GPU, such as xcds=16.")
    ] = None
    swizzle: Swizzles = None
    replay: Replay = "timed"
    compile: Compile = True

    def swizzles(self) -> list[Swizzle]:
        """Swizzles to compare with the launch order."""
        return [load_swizzle(word) for word in self.swizzle or ()]


Rows = Callable[..., list[dict[str, Any]]]  # of points, by a function that evaluates one


@dataclass(frozen=True)
class SweepRun:
    """How the points of a sweep are run, and where their results are stored."""

    backend: Annotated[
        str,
        option("--backend", help="processes, serial or dask.", offers=("processes", "serial", "dask"), panel=MACHINES),
    ] = "processes"
    jobs: Annotated[int, option("--jobs", min=-1, max=1024, help="Processes; -1 for one a core.", panel=MACHINES)] = -1
    scheduler: Annotated[
        str | None, option("--scheduler", help="Address of a Dask scheduler: tcp://HOST:8786.", panel=MACHINES)
    ] = None
    out: Annotated[Path | None, option("--out", "-o", help="Folder to store results in as they come.")] = None
    resume: Annotated[Path | None, option("--resume", help="Folder of a stopped sweep to go on with.")] = None

    def folder(self, what: str) -> Path | None:
        """Folder of the results, where one is named."""
        return one_folder(self.out, self.resume, what)

    @contextlib.contextmanager
    def evaluating(self, what: str, counted: str) -> Iterator[tuple[Rows, PointStore, Progress]]:
        """Function that gives the rows of points, those that the store lacks evaluated, and shows how many are done."""
        folder = self.folder(what)
        go_on_with(folder, FILE)
        with PointStore(folder, resume=self.resume is not None) as store, Progress(what, counted) as progress:
            if self.resume:
                say(f"{len(store)} {counted} are stored already")

            def rows(
                points: Sequence[Mapping[str, Any]],
                score: Any,
                part: str = what,
                seen: Callable[[], None] = lambda: None,
            ) -> list[dict[str, Any]]:
                def on_point(_point: Any, _row: Any, done: int, total: int) -> None:
                    progress(done, total, what=part)
                    seen()

                return run_points(
                    points, score, store, backend=self.backend, jobs=self.jobs, scheduler=self.scheduler,
                    on_point=on_point,
                )  # fmt: skip

            yield rows, store, progress


@grouped
def sweep(
    launch: Launch,
    over: Annotated[
        str | None, option("--over", metavar="NAME[,NAME]", help="Sizes that move together, such as M,N,K.")
    ] = None,
    values: Annotated[
        str | None, option("--values", help="1024,2048 or 1024..8192 step 1024 or powers 1024..8192.")
    ] = None,
    what: Compared = Compared(),
    run: SweepRun = SweepRun(),
    json: Json = False,
) -> None:
    """Hit rate of a kernel in launch order and swizzled, over problem sizes or changed GPUs, and where a swizzle hurts.

    Without --over: on the GPU as it is, and with every combination of the values of --set.
    """
    from swizzle_sim.search.sweep import hurts

    work, device, axis, labels, points = _points(launch, over, values, what)
    title = f"{work.name} on {device.title}"
    rows = _run(points, run, what.compile, (title, axis, labels))
    worse = hurts([f"{axis} = {label}" if over else label for label in labels], rows)
    folder = run.resume or run.out
    if json:
        both = zip(points, rows, strict=True)
        found = [{"problem": point["problem"], "gpu": point["gpu"]["name"], **row} for point, row in both]
        about = {"kernel": work.name, "gpu": device.name, "replay": what.replay, "kind": "simulated"}
        print_json({**about, "points": found, "hurts": [vars(one) for one in worse]})
        _end_if_none(rows)
        return
    _print_rows(title, axis, labels, rows, what.replay)
    for one in worse:
        print(f"hurts: {one.swizzle} at {one.at}: {one.points:.2f} points of L2 hit rate lost")
    if folder:
        print(f"written: {folder}/ ({FILE})")
    _end_if_none(rows)
    if not worse and what.swizzle:
        print("no swizzle loses hit rate where it has one")


def _points(
    launch: Launch, over: str | None, values: str | None, what: Compared
) -> tuple[Kernel, Gpu, str, list[str], list[dict[str, Any]]]:
    """Kernel, GPU, what varies, its values, and a point for each: of sizes on one GPU, or of GPUs."""
    from swizzle_sim.search.sweep import point_of, read_sizes, size_points
    from swizzle_sim.search.what_if import hypothetical, read_changes
    from xcd_model import gpu as load_gpu

    device, changes, swizzles = load_gpu(launch.gpu), read_changes(what.changes or ()), what.swizzles()
    if (over is None) != (values is None) or not (over or changes):
        raise SpecError("say what varies: --over M,N --values 1024..8192, or --set xcds=4,8,16")
    work, changed = load_kernel(launch.kernel, launch.sizes, device.arch), list(hypothetical(device, changes))
    if over is None or values is None:
        devices = [("as it is", device), *((" ".join(f"{k}={v}" for k, v in one.items()), gpu) for one, gpu in changed)]
        points = [point_of(work, gpu, swizzles, what.replay, compile=what.compile) for _, gpu in devices]
        return work, device, "GPU", [name for name, _ in devices], points
    if len(changed) > 1:
        raise SpecError(f"{len(changed)} GPUs and several sizes: --set takes one value for each key beside --over")
    names, steps, device = [name.strip() for name in over.split(",")], read_sizes(values), changed[0][1]
    points = size_points(work, device, swizzles, names, steps, what.replay, compile=what.compile)
    return work, device, " = ".join(names), [str(step) for step in steps], points


def _run(
    points: list[dict[str, Any]], run: SweepRun, compile: bool, shown: tuple[str, str, list[str]]
) -> list[dict[str, Any]]:
    """Rows of all points; after a Ctrl-C the table so far, by its title, axis and labels."""
    from swizzle_sim.rewrite.price import evaluate_as_compiled
    from swizzle_sim.search.sweep import evaluate

    with run.evaluating("sweep", "points") as (rows_of, store, _):
        try:
            return rows_of(points, evaluate_as_compiled if compile else evaluate)
        except KeyboardInterrupt:
            rows = [store.find(point) for point in points]
            done = [(label, row) for label, row in zip(shown[2], rows, strict=True) if row]
            if done:
                replay = str(points[0]["replay"])
                _print_rows(f"{shown[0]}, so far", shown[1], [one[0] for one in done], [one[1] for one in done], replay)
            raise


def _end_if_none(rows: Sequence[Mapping[str, Any]]) -> None:
    """End with status 1 where no point has a hit rate of any swizzle asked for, or without one of the launch order."""
    asked = [[one for row in rows for one in row["swizzles"].values()], [row["launched"] or {} for row in rows]]
    if not any("l2_hit_rate" in one for one in asked[0] or asked[1]):
        print("nothing could be scored at any of these points", file=sys.stderr)
        raise typer.Exit(1)


def _print_rows(title: str, axis: str, labels: Sequence[str], rows: Sequence[Mapping[str, Any]], replay: str) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row["swizzles"]))
    cells = []
    for label, row in zip(labels, rows, strict=True):
        launched = row["launched"]
        rates = [row["swizzles"].get(name, {}).get("l2_hit_rate") for name in names]
        here = [pct(rate) for rate in rates]
        both = (
            [pct(launched["l2_hit_rate"]), *here, pct(launched["bound_l2_hit_rate"])]
            if launched
            else ["-"] * (len(names) + 2)
        )
        cells.append([label, *both])
    table(f"{title}: L2 hit rate [%]", [axis, "launch order", *names, "bound"], cells, note=COUNTED[replay])
    for label, row in zip(labels, rows, strict=True):
        for name, error in [("", row["error"]), *((n, s.get("error", "")) for n, s in row["swizzles"].items())]:
            if error:
                print(f"{label}: {name + ': ' if name else ''}{error}")
