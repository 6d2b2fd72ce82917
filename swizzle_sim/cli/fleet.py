"""``fleet``: which of many launches gain by an order, how much and why, on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.base.text import microseconds
from swizzle_sim.cli.arguments import (
    Compile,
    Json,
    Replay,
    Swizzles,
    argument,
    grouped,
    known_gpus,
    known_kernels,
    load_swizzle,
    option,
)
from swizzle_sim.cli.output import COUNTED, line, print_json, table
from swizzle_sim.cli.sweeping import SweepRun
from swizzle_sim.search.jobs import FILE
from xcd_model.errors import SearchError

if TYPE_CHECKING:
    from swizzle_sim.search.fleet import Launched

_PLACES = "Folder of recordings (JSON), traces (npz) and tables (CSV: kernel, calls, sizes), or one; or suite's KERNEL."

_SAID = ("each with empty caches", "one after the other", "so too in the orders that rank first")
_SEQUENCE = "Of one recording, replay so many launches one after the other too, the Infinity Cache shared."


@dataclass(frozen=True)
class Among:
    """Orders and GPUs that launches are judged on."""

    gpu: Annotated[
        list[str] | None, option("--gpu", metavar="GPU", help="GPU by name; repeatable.", offers=known_gpus)
    ] = None  # for mi300x
    swizzle: Swizzles = None
    orders: Annotated[int, option("--orders", min=1, max=200, help="Published orders to replay of each.")] = 8
    rows: Annotated[int, option("--rows", min=0, help="Launches to print, largest expected gain first.")] = 20
    sequence: Annotated[int, option("--sequence", metavar="N", min=0, help=_SEQUENCE)] = 0
    replay: Replay = "timed"
    compile: Compile = True


@grouped
def fleet(
    places: Annotated[list[str], argument("FOLDER|FILE|KERNEL", _PLACES, known_kernels)],
    among: Among = Among(),
    run: SweepRun = SweepRun(),
    json: Json = False,
) -> None:
    """Judge many launches, each once by its content, on many cores or a Dask cluster.

    The launches are those of recordings, weighted by their counts, of traces, of tables of kernels at sizes, and of
    kernels of the suite; `suite` is all of them.
    """
    from swizzle_sim.rewrite.price import score_as_compiled
    from swizzle_sim.search.fleet import (
        LivePage,
        judged_launch,
        launches_in,
        points_of,
        replay_in_order,
        rows_of,
        write_rows,
    )
    from swizzle_sim.search.sweep import compiler
    from xcd_model import gpu as load_gpu

    if among.sequence:
        _check_sequence(places, among)
    launched = [one for place in places for one in launches_in(place)]
    how = {"replay": among.replay, "orders": among.orders, "compile": among.compile and compiler()}
    points = points_of(launched, [load_gpu(one) for one in among.gpu or ["mi300x"]],
                       [load_swizzle(word) for word in among.swizzle or ()], **how)  # fmt: skip
    folder = run.folder("fleet")
    evaluate = partial(judged_launch, scored=score_as_compiled) if among.compile else judged_launch
    with run.evaluating("fleet", "launches") as (rows_of_points, store, _):
        page = LivePage(folder, points, store.find)
        found = rows_of_points([point for point, _ in points.values()], evaluate, seen=page)
        page(at_end=True)
    rows, failed = rows_of(points, found), [one for one in launched if one.problem]
    written = write_rows(folder, rows) if folder else ""
    with Progress("sequence", "launches") as progress:
        which = (Path(places[0]), launched, rows, points, among.sequence)
        steps = replay_in_order(*which, progress) if among.sequence else []
    if json:
        about = {"places": places, "replay": among.replay, "kind": "simulated", "launches": len(launched)}
        about |= {"not_recorded": {one.name: one.problem for one in failed}, "rows": rows}
        print_json({**about, "sequence": steps})
        return
    _print(rows, launched, failed, among)
    if steps:
        _print_steps(steps, among)
    if folder:
        line(f"written: {folder}/ ({written}, fleet.html, {FILE})")


def _check_sequence(places: Sequence[str], among: Among) -> None:
    """Refuse launches without an order, before any of them is judged."""
    from swizzle_sim.capture.recording import launched_in_order

    if len(places) != 1 or Path(places[0]).suffix != ".json" or len(among.gpu or [""]) > 1:
        raise SearchError("--sequence takes one recording, as FILE.json, and one --gpu", code="fleet")
    launched_in_order(Path(places[0]))


def _print_steps(steps: Sequence[Mapping[str, Any]], among: Among) -> None:
    """What launches find in the caches of those before them, those of most difference first."""
    from swizzle_sim.search.fleet import KINDS

    def total(name: str, kind: str, key: str) -> float:
        return sum(one[kind][key] for one in steps if name in ("", one["launch"]))

    of = Counter(one["launch"] for one in steps)
    saved = {name: abs(total(name, "alone", "time_us") - total(name, "after", "time_us")) for name in of}
    cells = []
    for name in sorted(of, key=lambda name: -saved[name])[: among.rows]:
        times = [microseconds(total(name, kind, "time_us") / of[name]) for kind in KINDS]
        megabytes = [f"{total(name, kind, 'hbm_read_bytes') / of[name] / 1e6:.1f}" for kind in KINDS]
        cells.append([name, str(of[name]), *times, *megabytes])
    heads = [f"{kind} [{unit}]" for unit in ("µs", "MB of HBM") for kind in KINDS]
    table("One after the other", ["launch", "times", *heads], cells, left=1, note=COUNTED[among.replay])
    spent = [f"{microseconds(total('', kind, 'time_us'))} µs {said}" for kind, said in zip(KINDS, _SAID, strict=True)]
    kept = 100 - 100 * total("", "after", "hbm_read_bytes") / max(1, total("", "alone", "hbm_read_bytes"))
    line(f"{len(steps)} launches: {', '.join(spent)}; {kept:.1f} % of their reads of HBM are kept from those before")


def _print(
    rows: Sequence[Mapping[str, Any]], launched: Sequence[Launched], failed: Sequence[Launched], among: Among
) -> None:
    """One screen: the launches that gain, and what all of them come to."""
    known = [row for row in rows if not row["error"]]
    cells = []
    for row in [row for row in known if row["weight"] > 0][: among.rows]:
        gain = f"{100 * row['gain']:+.1f} {'points' if row['decides'] == 'l2_hit_rate' else '%'}"
        cells.append([row["launch"], row["gpu"], row["verdict"], row["best"], row["why"], gain, f"{row['calls']:g}",
                      microseconds(row["time_us"])])  # fmt: skip
    heads = ["launch", "GPU", "verdict", "order", "why", "gain", "calls", "time [µs]"]
    if cells:
        table("Launches by expected gain times calls", heads, cells, left=5, note=COUNTED[among.replay])
    of = Counter(row["verdict"] for row in known)
    line(f"{len(launched)} launches, {len(rows)} different ones with their GPUs: "
         + ", ".join(f"{name} {of[name]}" for name in ("use", "measure", "leave")))  # fmt: skip
    spent = sum(row["calls"] * row["time_us"] for row in known)
    moved = sum(row["calls"] * row["time_us"] for row in known if row["weight"] > 0)
    if spent:
        line(f"those that gain take {100 * moved / spent:.1f} % of the predicted time of all calls")
    if rows:
        each = sum(row["seconds"] for row in rows) / len(rows)
        line(f"{each:.2f} s of one process a launch and GPU: 10,000 take {each / 0.36:.1f} hours of one")
    for what, names in _reasons(rows, failed).items():
        line(f"not judged: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {what}")


def _reasons(rows: Sequence[Mapping[str, Any]], failed: Sequence[Launched]) -> dict[str, list[str]]:
    """Launches by the reason why nothing can be said of them."""
    found: dict[str, list[str]] = {}
    for name, why in [*((row["launch"], row["error"]) for row in rows), *((one.name, one.problem) for one in failed)]:
        if why:
            found.setdefault(why, []).append(name)
    return found
