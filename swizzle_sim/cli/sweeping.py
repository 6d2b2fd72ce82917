"""``sweep`` and ``what-if``: one kernel at many sizes, or on GPUs that do not exist."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
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
    grouped,
    known_families,
    load_fitting,
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

MACHINES = "On many cores or machines"
Swizzles = Annotated[
    list[str] | None,
    option("--swizzle", metavar="FAMILY|TEXT|FILE", help="To compare; repeatable.", offers=known_families),
]
Capacity = Annotated[bool, option("--capacity", help="Print the hit rate by ways and sets of the L2 too.")]


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


@grouped
def sweep(
    over: Annotated[str, option("--over", metavar="NAME[,NAME]", help="Sizes that move together, such as M,N,K.")],
    values: Annotated[str, option("--values", help="1024,2048 or 1024..8192 step 1024 or powers 1024..8192.")],
    launch: Launch,
    what: Compared = Compared(),
    run: SweepRun = SweepRun(),
    json: Json = False,
) -> None:
    """Hit rate of a kernel over problem sizes in launch order and swizzled, and the sizes where a swizzle hurts."""
    from swizzle_sim.search.sweep import draw_sweep, hurts, read_sizes, size_points

    device = _device(launch.gpu, what.changes)
    work, names = load_kernel(launch.kernel, launch.sizes, device.arch), [name.strip() for name in over.split(",")]
    steps = read_sizes(values)
    points = size_points(work, device, what.swizzles(), names, steps, what.replay, compile=what.compile)
    title, axis = f"{work.name} on {device.title}", " = ".join(names)
    rows = _run(points, run, what.compile, (title, axis, [str(step) for step in steps]))
    labels = [f"{' = '.join(names)} = {step}" for step in steps]
    worse = hurts(labels, rows)
    if folder := run.resume or run.out:
        draw_sweep(folder / "sweep.png", title, axis, steps, rows)
    if json:
        _print_json(work.name, device.name, what.replay, points, rows, hurts=[vars(one) for one in worse])
        _end_if_none(rows)
        return
    _print_rows(title, axis, [str(step) for step in steps], rows, what.replay)
    for one in worse:
        print(f"hurts: {one.swizzle} at {one.at}: {one.points:.2f} points of L2 hit rate lost")
    if folder:
        print(f"written: {folder}/ (sweep.sqlite, sweep.png)")
    _end_if_none(rows)
    if not worse and what.swizzle:
        print("no swizzle loses hit rate where it has one")


@grouped
def what_if(
    launch: Launch,
    what: Compared = Compared(),
    capacity: Capacity = False,
    run: SweepRun = SweepRun(),
    json: Json = False,
) -> None:
    """Score a kernel on GPUs that do not exist: one with some numbers changed, for every combination of values."""
    from swizzle_sim.search.sweep import point_of
    from swizzle_sim.search.what_if import hypothetical, read_changes
    from xcd_model import gpu as load_gpu
    from xcd_model.analysis.stack_distance import check_has_curve

    device, chosen = load_gpu(launch.gpu), what.swizzles()
    if capacity:
        check_has_curve(device)
    work = load_fitting(launch.kernel, launch.sizes, device, what.compile)
    devices = [
        ("as it is", device),
        *((_change_text(one), other) for one, other in hypothetical(device, read_changes(what.changes or ())) if one),
    ]
    points = [point_of(work, other, chosen, what.replay, compile=what.compile) for _, other in devices]
    title, labels = f"{work.name} on {device.title}, what if", [name for name, _ in devices]
    rows = _run(points, run, what.compile, (title, "GPU", labels))
    curve = _capacity(work, device, chosen) if capacity else None
    if json:
        _print_json(work.name, device.name, what.replay, points, rows, capacity=curve)
        return
    _print_rows(title, "GPU", labels, rows, what.replay)
    if curve:
        _print_capacity(curve)


def _device(name: str, changes: Sequence[str] | None) -> Any:
    """GPU of a sweep over sizes: one value a change."""
    from swizzle_sim.search.what_if import read_changes
    from swizzle_sim.search.what_if import what_if as changed
    from xcd_model import gpu as load_gpu

    read = read_changes(changes or ())
    if several := [key for key, values in read.items() if len(values) > 1]:
        raise SpecError(f"{several[0]} has several values: a sweep over sizes has one GPU; use lab what-if")
    return changed(load_gpu(name), {key: values[0] for key, values in read.items()})


def _change_text(changes: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in changes.items())


def _run(
    points: list[dict[str, Any]], run: SweepRun, compile: bool, shown: tuple[str, str, list[str]]
) -> list[dict[str, Any]]:
    """Rows of all points; after a Ctrl-C the table so far, by its title, axis and labels."""
    from swizzle_sim.rewrite.price import evaluate_as_compiled
    from swizzle_sim.search.sweep import evaluate

    score: Callable[[Mapping[str, Any]], dict[str, Any]] = evaluate_as_compiled if compile else evaluate
    folder = one_folder(run.out, run.resume, "sweep")
    go_on_with(folder, FILE)
    with PointStore(folder, resume=run.resume is not None) as store:
        if run.resume:
            say(f"{len(store)} points are stored already")
        try:
            with Progress("sweep", "points") as progress:
                return run_points(
                    points, score, store, backend=run.backend, jobs=run.jobs, scheduler=run.scheduler,
                    on_point=lambda point, row, done, total: progress(done, total),
                )  # fmt: skip
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


def _print_json(kernel: str, gpu: str, replay: str, points, rows, **more: Any) -> None:
    found = [
        {"problem": point["problem"], "gpu": point["gpu"]["name"], **row}
        for point, row in zip(points, rows, strict=True)
    ]
    print_json({"kernel": kernel, "gpu": gpu, "replay": replay, "kind": "simulated", "points": found, **more})


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


def _capacity(work, device, chosen: Sequence[Swizzle]) -> list[dict[str, Any]]:
    """Capacity curve of each order."""
    import numpy as np

    from swizzle_sim.pricing.scoring import Scorer
    from xcd_model.analysis.stack_distance import capacity_curve

    scorer = Scorer(work, device, replay="lockstep")
    orders = [("as launched", np.arange(work.grid.num_pids)), *((str(s.name), scorer.permutation(s)) for s in chosen)]
    found = []
    for name, order in orders:
        curve = capacity_curve(scorer.plan, order, workgroups_per_cu=scorer.occupancy)
        rates = {str(sets): [float(r) for r in row] for sets, row in zip(curve.sets, curve.l2_hit_rate, strict=True)}
        found.append({"order": name, "line_bytes": curve.line_bytes, "l2_hit_rate_by_sets_and_ways": rates})
    return found


def _print_capacity(curves: Sequence[Mapping[str, Any]]) -> None:
    for curve in curves:
        by_sets = curve["l2_hit_rate_by_sets_and_ways"]
        ways = range(1, 1 + len(next(iter(by_sets.values()))))
        rows = [[str(way), *(f"{100 * rates[way - 1]:.2f}" for rates in by_sets.values())] for way in ways]
        note = "simulated, lockstep replay; one pass; sets x ways x line is the size of one XCD's L2"
        name = "launch order" if curve["order"] == "as launched" else curve["order"]
        table(
            f"{name}: L2 hit rate [%] by ways and sets",
            ["ways", *(f"{n} sets" for n in by_sets)],
            rows,
            note=note,
        )
