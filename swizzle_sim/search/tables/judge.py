"""`judged`: what the model says of a row's order against others, and `finding`: what is wrong with the row.

The launch that is replayed is that of the library, in the row's own order: so judge, ranking and advice are those of
`score`, and what they call the launch order is the order of the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import advise_run
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import InMemory, one_after_another, run
from swizzle_sim.search.tables.gemm import TiledGemm, launched_as
from swizzle_sim.search.tables.read import Row, Table
from swizzle_sim.workload.kernels import kernel
from xcd_model import Gpu
from xcd_model.errors import NotBijective, SwizzleSimError

POINTS = 0.10  # of a hit rate 0 to 1, that a row in launch order must gain to be contradicted
PACKAGES = Path(__file__).parents[2]  # whose code a verdict depends on
FIGURES = ("l2_hit_rate", "time_us", "hbm_bytes")


def point_of(row: Row, gpu: Gpu) -> dict[str, Any]:
    """What is replayed of a row, JSON-ready."""
    orders = dict.fromkeys((row.plain, *row.others))
    return {"launch": row.launch, "gpu": gpu.as_dict(), "named": row.named, "others": list(orders)}


def judged(point: Mapping[str, Any]) -> dict[str, Any]:
    """Verdict on a row, in any process; from the user's cache where it is known."""
    store, key = DiskCache("retune"), key_of(point, code=(PACKAGES,))
    known = store.get(key)
    if known is None:
        known = _judged(point)
        store.put(key, known)
    return known


def _judged(point: Mapping[str, Any]) -> dict[str, Any]:
    device, launch, named = Gpu.from_dict(point["gpu"]), point["launch"], point["named"]
    try:
        if "gemm" in launch:
            work = TiledGemm.from_dict(launch["gemm"]).kernel(device.limits.wave_size)
        else:
            work = kernel(launch["kernel"], **launch["problem"])
        orders = _orders([named, *point["others"]], work.grid, device.xcds)
        if named not in orders:
            return {"error": f"{named} is no order of {work.grid}"}
        place = np.argsort(orders[named])  # of a tile, in the row's own order
        judge = Judge(Scorer(launched_as(work, orders[named]), device))
        others = [Candidate(one, "", "table", order=place[orders[one]]) for one in orders if one != named]
        attempts = run(one_after_another(others), judge, InMemory())
        advice = advise_run(judge.scorer, judge.ranking, attempts)
    except SwizzleSimError as error:
        return {"error": str(error).splitlines()[0]}
    main, names = judge.objectives[0], {one.number: one.name if one.number else named for one in attempts}
    scores = {names[one.number]: one.score for one in attempts if one.score is not None}
    scores |= {name: scores[twin] for name, twin in _twins(orders).items() if twin in scores}
    best = names[judge.ranking.order(attempts)[0].number]
    return {
        "error": "", "work_class": judge.scorer.work_class, "decides": main.name, "best": best,
        "verdict": advice.verdict, "what": advice.what, "why": advice.why, "time_us": scores[named].time_us,
        "tolerance": judge.ranking.tolerance,
        "gains": {name: main.gain(score, scores[named]) for name, score in scores.items()},
        "scores": {name: {key: getattr(score, key) for key in FIGURES} for name, score in scores.items()},
        "same": [name for name in orders if name != named and (orders[name] == orders[named]).all()],
    }  # fmt: skip


def _orders(names: Sequence[str], grid: Any, xcds: int) -> dict[str, np.ndarray]:
    """Permutations of families by name, those that are bijections."""
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = Swizzle.parse(family(name)).permutation(grid, xcds)
        except NotBijective:
            continue
    return found


def _twins(orders: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Orders that are the same permutation as an earlier one, and that one."""
    first: dict[bytes, str] = {}
    found = {name: first.setdefault(order.tobytes(), name) for name, order in orders.items()}
    return {name: twin for name, twin in found.items() if name != twin}


@dataclass(frozen=True)
class Finding:
    """A row with all that is said of it."""

    row: Row
    gpu: Gpu | None
    calls: float
    about: Mapping[str, Any]  # as `judged` gives it; empty where the row is not replayed
    contradicts: str  # how the model contradicts the row, beyond the evidence of its class; or empty
    notes: tuple[str, ...]  # what no model is needed for

    @property
    def best(self) -> str:
        """Order that ranks first; the row's own where its group cannot matter."""
        return self.about.get("best", "") if self.verdict in ("use", "measure") else self.row.named

    @property
    def verdict(self) -> str:
        """Use, measure or leave; empty where the model says nothing."""
        settled = self.row.tiles_m < 2 or self.row.measured.get(self.about.get("best", ""), 0.0) > 1
        return "leave" if self.about and settled else str(self.about.get("verdict", ""))

    @property
    def gain(self) -> float:
        """Of the best order over the row's, in the figure that decides: of a rate 0 to 1, or a share of the time."""
        return float(self.about["gains"][self.best]) if self.verdict in ("use", "measure") else 0.0

    @property
    def weight(self) -> float:
        """Expected gain times calls: what rows are sorted by [us]."""
        return self.gain * float(self.about.get("time_us", 0.0)) * self.calls

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        row, known = self.row, {k: v for k, v in self.about.items() if k not in ("error", "best", "verdict")}
        return {
            "line": row.line, "sizes": dict(row.sizes), "calls": self.calls, "gpu": self.gpu.name if self.gpu else None,
            "order": row.named or None, "best": self.best or None, "verdict": self.verdict or None,
            "gain": self.gain, "contradicts": self.contradicts or None, "notes": list(self.notes),
            "workgroups": row.workgroups, "lds_bytes": row.lds_bytes, "measured": dict(row.measured), "model": known,
        }  # fmt: skip


def finding(row: Row, gpu: Gpu | None, calls: float, about: Mapping[str, Any], copied: str) -> Finding:
    """What is said of a row."""
    error = row.why or ("" if gpu else "no such GPU: name one with --gpu") or about.get("error", "")
    known = {} if error else about
    notes = [f"not replayed: {error}"] if error else []
    if gpu and row.workgroups and row.workgroups < gpu.cus:
        notes.append(f"{row.workgroups} workgroups on {gpu.cus} CUs")
    if gpu and row.lds_bytes > gpu.limits.lds_bytes_per_cu:
        notes.append(f"{row.lds_bytes} B of LDS, of {gpu.limits.lds_bytes_per_cu}")
    idle = ["its group is noise: the permutation is that of none"] * (row.plain in known.get("same", ()))
    idle = idle or ["its group is noise: under two M tiles an expert"] * (row.named != row.plain and row.tiles_m < 2)
    notes += idle
    if (slower := row.measured.get(known.get("best", ""), 0.0)) > 1:
        notes.append(f"{known['best']} ranks first, and was measured {100 * slower - 100:.1f} % slower")
    notes += [copied] if copied else []
    return Finding(row, gpu, calls, known, _contradicted(row, known) if known and not idle else "", tuple(notes))


def _contradicted(row: Row, about: Mapping[str, Any]) -> str:
    """How the model contradicts a row: points that one in launch order would gain, or a remap that gains nothing."""
    best, gains = about["best"], about["gains"]
    rate = [about["scores"][name]["l2_hit_rate"] for name in (row.named, best)]
    if row.named == row.plain:
        points = rate[1] - rate[0] if row.tiles_m >= 2 else 0.0
        return f"in launch order, {best} has {100 * points:.1f} points more" if points >= POINTS else ""
    if gains.get(row.plain, -1.0) >= -about["tolerance"]:
        return "remapped, and the launch order is as good"
    return ""


def copies(table: Table, others: Sequence[Table]) -> dict[int, str]:
    """By line: rows of a table that stand letter by letter in another GPU's, each of them or in the whole table."""
    found: dict[int, str] = {}
    own: dict[tuple[Any, ...], list[Row]] = {}
    for row in table.rows:
        own.setdefault((*row.sizes.items(), row.letters), []).append(row)
    for rows in own.values():  # one file for several GPUs, times among the letters
        of = {one.gpu for one in rows}
        found |= {
            one.line: f"letter by letter that of {', '.join(sorted(of - {one.gpu}))}" for one in rows if len(of) > 1
        }
    mine = {tuple(row.sizes.items()): row.letters for row in table.rows}
    for other in others:
        theirs = {tuple(row.sizes.items()): row.letters for row in other.rows}
        if mine == theirs:
            found |= dict.fromkeys(
                [row.line for row in table.rows], f"the table is {other.path.name}, letter by letter"
            )
    return found


@lru_cache(maxsize=8)
def loaded(name: str) -> Gpu:
    """GPU by name, loaded once for all rows."""
    from xcd_model import gpu  # noqa: PLC0415

    return gpu(name)
