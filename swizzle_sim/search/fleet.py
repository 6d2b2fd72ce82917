"""`launches_in` and `judged_launch`: many launches, each once by its content, through the judge.

A point holds what is replayed and no path: of a recording the launch itself, with its kernel's source. So a point is
the same wherever it is stored, is judged once however often it was recorded, and runs on a machine without the file.

`replay_in_order` replays launches of a recording one after the other, with what those before left in the caches.

    tensors lie where they lay in memory -> one Infinity Cache (of an NVIDIA GPU the L2) for all launches, never emptied

What ran between them, such as a library's kernels, is not in a recording: it neither fills these caches nor empties
them. Writes pass the Infinity Cache by, so of a producer's output a consumer finds what others have read.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.disk_cache import cache_home
from swizzle_sim.base.release import version
from swizzle_sim.base.text import visible
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.recorder import PAGE_BYTES
from swizzle_sim.capture.recording import launched_in_order, read_recording
from swizzle_sim.capture.user_kernel import kernel
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.replaying import Replayer
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import advise_run
from swizzle_sim.search.candidates import Candidate, distinct_shortlist
from swizzle_sim.search.history import csv_of, parquet_of
from swizzle_sim.search.jobs import key_of
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import InMemory, one_after_another, run
from swizzle_sim.search.policy.sizes import called, csv_rows
from swizzle_sim.workload.kernels import DECLARING, Kernel, file_of, is_user_kernel, kernel_names
from xcd_model import Gpu, Plan, Tensor, Trace
from xcd_model.cache.packed import aligned_words, words_of
from xcd_model.errors import CaptureError, CompileError, MissingExtra, SearchError, SwizzleSimError, UnknownName
from xcd_model.replay.plan import Caches, l2_words

if TYPE_CHECKING:
    import pandas as pd

MOST_LAUNCHES = 100_000
MOST_PRICED = 3  # orders that are compiled before the first of the ranking has a price

PAGE_S = 5  # between two versions of the live page
ON_PAGE = ("verdict", "best", "why", "gain", "calls", "time_us", "best_time_us", "seconds", "error")
_PAGE = """\
<!doctype html><meta charset="utf-8">{refresh}<title>fleet: {done} of {total}</title>
<style>body {{font: 14px sans-serif}} td, th {{padding: 2px 8px; text-align: left}}</style>
<h1>{done} of {total} launches</h1><p>Simulated; those of most expected gain times calls first.</p>
<table><tr>{heads}</tr>
{body}
</table>
"""
Known = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Launched:
    """A launch that somebody made, and how often."""

    name: str
    calls: float
    launch: Mapping[str, Any]  # what is replayed, JSON-ready
    problem: str = ""  # why it cannot be


def launches_in(place: str) -> list[Launched]:
    """Launches of a file, or of all files of a folder: recordings, traces, tables; or of kernels of the suite."""
    names = kernel_names() if place == "suite" else [place]
    path = Path(place)
    if path.suffix not in READERS and not path.is_dir() and set(names) <= set(kernel_names()):
        return [Launched(name, 1, {"kernel": name, "problem": {}}) for name in names]
    files = sorted(one for one in path.iterdir() if one.suffix in READERS) if path.is_dir() else [path]
    if not path.exists() or (files[:1] and files[0].suffix not in READERS):
        raise UnknownName(f"file ({', '.join(READERS)}), folder or kernel", place, [*kernel_names(), "suite"])
    found = [one for file in files for one in READERS[file.suffix](file)]
    if not 1 <= len(found) <= MOST_LAUNCHES:
        raise SearchError(f"{place}: {len(found)} launches; a fleet has 1 to {MOST_LAUNCHES}", code="fleet")
    return found


def _recorded(file: Path) -> Iterator[Launched]:
    document = read_recording(file)
    kept = {name: document[name] for name in ("format", "format_version")}
    for number, launch in enumerate(document["launches"], 1):
        source = document["kernels"][launch["kernel"]]
        alone = {**launch, "kernel": 0, "count": 1}  # how often it was made changes nothing of it
        content = {**kept, "kernels": [source], "launches": [alone]}
        yield Launched(f"{file.stem}:{source['name']}.{number}", launch["count"], {"recording": content},
                       "; ".join(launch["problems"]))  # fmt: skip


def _traced(file: Path) -> Iterator[Launched]:
    yield Launched(file.stem, 1, {"kernel": str(file.resolve()), "problem": {}, "digest": digest(file)})


def _listed(file: Path) -> Iterator[Launched]:
    rows = csv_rows(file)
    if "kernel" not in rows[0][1]:
        raise SearchError(f"{file}:1: no column kernel; the others are calls, name, and sizes", code="fleet")
    return (_row(file, line, row) for line, row in rows)


def _row(file: Path, line: int, row: Mapping[str, str]) -> Launched:
    numbers = {name: value for name, value in row.items() if name not in ("kernel", "name") and value}
    (sizes, calls), name = called(f"{file}:{line}", numbers), str(row["kernel"])
    launch: dict[str, Any] = {"kernel": name, "problem": sizes}
    if is_user_kernel(name):
        own = str((file.parent / name).resolve())
        launch |= {"kernel": own, "digest": digest(file_of(own))}
    said = " ".join([name, *(f"{size}={value}" for size, value in sizes.items())])
    return Launched(str(row.get("name") or said), calls, launch)


READERS: Mapping[str, Callable[[Path], Iterator[Launched]]] = {".json": _recorded, ".npz": _traced, ".csv": _listed}


def points_of(
    launched: Sequence[Launched], gpus: Sequence[Gpu], swizzles: Sequence[Swizzle], **how: Any
) -> dict[str, tuple[dict[str, Any], list[Launched]]]:
    """Points by content, and the launches that each of them stands for; ``how`` is replay, orders and compile."""
    orders = [[one.name or f"candidate {i + 1}", one.source] for i, one in enumerate(swizzles)]
    found: dict[str, tuple[dict[str, Any], list[Launched]]] = {}
    for gpu in gpus:
        for one in (one for one in launched if not one.problem):
            point = {**one.launch, "gpu": gpu.as_dict(), "swizzles": orders, "version": version(), **how}
            found.setdefault(key_of(point), (point, []))[1].append(one)
    return found


Scored = Callable[[Scorer, Swizzle], Score]


def judged_launch(point: Mapping[str, Any], scored: Scored | None = None) -> dict[str, Any]:
    """What the judge says of a launch, in any process; ``scored`` compiles the order that ranks first."""
    began = time.perf_counter()
    try:
        device = Gpu.from_dict(point["gpu"])
        scorer = Scorer(loaded(point, device), device, replay=point["replay"])
        return {"error": "", **_judged(scorer, point, scored), "seconds": round(time.perf_counter() - began, 2)}
    except (SwizzleSimError, OSError) as error:
        return {"error": str(error).splitlines()[0], "seconds": round(time.perf_counter() - began, 2)}


def loaded(point: Mapping[str, Any], device: Gpu) -> Kernel:
    """Kernel of a point; of a recording from a file of its own in the user's cache."""
    gpu = device if point["compile"] else None
    if "recording" not in point:
        return kernel(point["kernel"], gpu=gpu, **point["problem"])
    text = json.dumps(point["recording"], sort_keys=True)
    path = cache_home() / "fleet" / hashlib.sha256(text.encode()).hexdigest()[:24] / f"launch{DECLARING[1]}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    return kernel(path, gpu=gpu)


def _judged(scorer: Scorer, point: Mapping[str, Any], scored: Scored | None) -> dict[str, Any]:
    judge = Judge(scorer)
    given = [Candidate(name, source, "given") for name, source in point["swizzles"]]
    chosen = given or [one for one, _ in islice(distinct_shortlist(scorer), point["orders"])]
    attempts = run(one_after_another(chosen), judge, InMemory())
    for _ in range(MOST_PRICED if scored else 0):
        best = judge.ranking.order(attempts)[0]
        if best.number == 0 or (best.score and best.score.price):
            break
        try:
            attempts[attempts.index(best)] = replace(best, score=scored(scorer, best.swizzle))  # type: ignore[misc]
        except CompileError:
            break
    best, baseline = judge.ranking.order(attempts)[0], scorer.baseline
    advice, score, main = advise_run(scorer, judge.ranking, attempts), best.score or baseline, judge.objectives[0]
    return {
        "kernel": scorer.kernel.name, "grid": str(scorer.kernel.grid), "work_class": scorer.work_class,
        "resources": scorer.kernel.resources.source, "decides": main.name, "verdict": advice.verdict,
        "best": best.name if best.number else "launch order", "source": best.source if best.number else "",
        "domain": best.verdict.get("domain", ""), "what": advice.what, "why": advice.why, "limit": advice.limit,
        "gain": main.gain(score, baseline), "tried": sum(1 for one in attempts if one.score is not None),
        "time_us": baseline.time_us, "best_time_us": score.time_us, "l2_hit_rate": baseline.l2_hit_rate,
        "best_l2_hit_rate": score.l2_hit_rate, "hbm_bytes": baseline.hbm_bytes, "best_hbm_bytes": score.hbm_bytes,
        "bound_l2_hit_rate": baseline.bound_l2_hit_rate,
    }  # fmt: skip


def rows_of(
    points: Mapping[str, tuple[dict[str, Any], list[Launched]]], found: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A row for each distinct launch and GPU, those of most expected gain times calls first."""
    rows = []
    for (key, (point, launched)), about in zip(points.items(), found, strict=True):
        calls = sum(one.calls for one in launched)
        gains = about.get("verdict") in ("use", "measure")
        weight = calls * about["time_us"] * about["gain"] if gains else 0.0
        head = {"launch": launched[0].name, "recorded": len(launched), "calls": calls, "gpu": point["gpu"]["name"]}
        rows.append({**head, "key": key, "weight": weight, **about})
    return sorted(rows, key=lambda row: (-row["weight"], row["launch"]))


class LivePage:
    """``fleet.html`` in a folder: the launches judged so far, written anew as they come; a browser reloads it."""

    def __init__(self, folder: Path | None, points: Mapping[str, tuple[dict[str, Any], list[Launched]]], known: Known):
        self._folder, self._points, self._known, self._next_s = folder, points, known, 0.0

    def __call__(self, *, at_end: bool = False) -> None:
        """Write the page, if it is time."""
        began = time.monotonic()
        if self._folder is None or (began < self._next_s and not at_end):
            return
        found = {key: row for key, (point, _) in self._points.items() if (row := self._known(point))}
        rows = rows_of({key: self._points[key] for key in found}, list(found.values()))
        cells = [[row["launch"], row["gpu"], *(_shown(row, name) for name in ON_PAGE)] for row in rows]
        body = "\n".join(f"<tr>{''.join(f'<td>{escape(visible(one))}</td>' for one in each)}</tr>" for each in cells)
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in ("launch", "GPU", *ON_PAGE))
        page = _PAGE.format(refresh="" if at_end else f'<meta http-equiv="refresh" content="{PAGE_S}">', heads=heads,
                            done=len(found), total=len(self._points), body=body)  # fmt: skip
        write_whole(self._folder / "fleet.html", page.encode())
        self._next_s = began + max(PAGE_S, 20 * (time.monotonic() - began))  # little of a long night


def _shown(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the rows as one Parquet, or CSV where pyarrow is not installed; the file's name."""
    import pandas as pd  # noqa: PLC0415 - half a second

    table: pd.DataFrame = pd.DataFrame(rows)
    try:
        name, content = "fleet.parquet", parquet_of(table)
    except MissingExtra:
        name, content = "fleet.csv", csv_of(table)
    write_whole(folder / name, content)
    return name


# Replays of a launch: with empty caches, after those before it, and so too with each in the order that ranks first.
KINDS = ("alone", "after", "ordered")
FIGURES = ("mall_hit_rate", "l2_hit_rate", "hbm_read_bytes")


class _Placed(Replayer[Kernel]):
    """Replays a launch whose caches others share: set by set."""

    symmetry = False

    def figures(self, order: np.ndarray, caches: Caches | None = None) -> dict[str, float]:
        """Figures of one launch, by default with empty caches."""
        traffic = self.traffic_after(order, empty_caches(self.plan) if caches is None else caches)
        found = {name: float(getattr(traffic, name)) for name in FIGURES}
        kept = {name: value for name, value in found.items() if not math.isnan(value)}  # without an Infinity Cache
        return {"time_us": self.time(traffic).total_us, **kept}


def empty_caches(plan: Plan) -> Caches:
    """Caches for launches of any tensors."""
    machine = plan.machine
    l2 = aligned_words(machine.xcds * l2_words(machine)).reshape(machine.xcds, -1)
    return Caches(plan.gpu, l2, aligned_words(words_of(machine.mall, machine.mall_ways)), frozenset())


def replay_in_order(
    file: Path,
    launched: Sequence[Launched],
    rows: Sequence[Mapping[str, Any]],
    points: Mapping[str, tuple[Mapping[str, Any], Sequence[Launched]]],
    most: int,
    on_step: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Figures by `KINDS` of the first launches that were judged, by the rows and points of their fleet on one GPU."""
    keys = {id(one): key for key, (_, group) in points.items() for one in group}
    about = {row["key"]: row for row in rows if not row["error"]}
    known = {i: keys[id(one)] for i, one in enumerate(launched) if keys.get(id(one)) in about}
    order = [(place, at) for place, at in launched_in_order(file) if place in known][:most]
    if not order:
        raise SearchError(f"{file}: none of its launches was judged, so there is no sequence", code="fleet")
    gpu = Gpu.from_dict(next(point for point, _ in points.values())["gpu"])
    kernels = {place: loaded(points[known[place]][0], gpu) for place in {place for place, _ in order}}
    lines = placed([(kernels[place].build_trace(gpu.l2.line_bytes), at) for place, at in order])
    alone: dict[int, dict[str, float]] = {}
    shared: list[Caches] = []  # of the launches as they were made, and of those in other orders
    steps: list[dict[str, Any]] = []
    for (place, _), at in zip(order, lines, strict=True):
        kernel, row = kernels[place], about[known[place]]
        one = _Placed(kernel, gpu, replay=points[known[place]][0]["replay"])
        vars(one)["trace"] = moved(one.trace, at)
        shared = shared or [empty_caches(one.plan), empty_caches(one.plan)]
        first = as_launched = np.arange(kernel.grid.num_pids)
        if row["verdict"] in ("use", "measure"):
            first = Swizzle.parse(row["source"]).permutation(kernel.grid, gpu.xcds, kernel.problem)
        alone[place] = alone.get(place) or one.figures(as_launched)
        found = (alone[place], one.figures(as_launched, shared[0]), one.figures(first, shared[1]))
        steps.append({"launch": row["launch"], **dict(zip(KINDS, found, strict=True))})
        on_step(len(steps), len(order))
    return steps


def moved(trace: Trace, lines: Mapping[str, int]) -> Trace:
    """Trace whose tensors begin at other lines; those that overlap there, as views do, are one."""
    found: list[Tensor] = []
    place = np.zeros(len(trace.tensors), np.int32)
    shift = np.array([lines[one.name] - one.base_line for one in trace.tensors])
    for i in np.argsort([lines[one.name] for one in trace.tensors], kind="stable"):
        one = replace(trace.tensors[i], base_line=lines[trace.tensors[i].name])
        if found and (inside := found[-1].base_line + found[-1].n_lines - one.base_line) > 0:
            n_lines = found[-1].n_lines + max(0, one.n_lines - inside)
            found[-1] = replace(found[-1], n_lines=n_lines, size_bytes=n_lines * trace.line_bytes)
        else:
            found.append(one)
        place[i] = len(found) - 1
    base = trace.base + shift[trace.tensor[trace.template]]
    return replace(trace, tensors=tuple(found), base=base, tensor=place[trace.tensor])


def placed(launches: Sequence[tuple[Trace, Mapping[str, int]]]) -> list[dict[str, int]]:
    """First line of each tensor of each launch: where it lay, with wide gaps between tensors left out."""
    spans = []
    for trace, at in launches:
        if missing := [one.name for one in trace.tensors if one.name not in at]:
            raise CaptureError(f"the recording does not say where {', '.join(missing)} lay", code="format")
        spans += [(at[one.name], at[one.name] + one.n_lines * trace.line_bytes) for one in trace.tensors]
    gone: dict[int, int] = {}  # bytes left out before an address
    end = left_out = 0
    for first, last in sorted(spans):
        left_out += max(0, first - end) // PAGE_BYTES * PAGE_BYTES
        gone[first], end = left_out, max(end, last)
    return [
        {one.name: (at[one.name] - gone[at[one.name]]) // trace.line_bytes for one in trace.tensors}
        for trace, at in launches
    ]
