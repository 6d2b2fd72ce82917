"""``python -m swizzle_benchmarks.validation.amd.replays [SET ...] [--set KEY=VALUE] [--out FILE] [--half choosing]``.

Replay every order of the measured rows of AMD GPUs, timed and in lockstep, and keep what rules may rank by: a line of
``data/amd/replayed.csv`` for each (set, item, order). An order that is the same permutation as another has its digest.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.pricing.replaying import Replayer, balance_of
from xcd_model import Gpu, energy, gpu
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS

from ..predict import overridden, read_sets
from ..rows import measured_speedups, paper_rows
from ..variants import _placed
from ..workloads.from_row import workload
from ..workloads.workload import Workload
from . import maps, tables, workloads

OUT = tables.DATA / "replayed.csv"
HEADS = 16  # of a digest


@dataclass(frozen=True)
class Item:
    """One workload of a set, made where it is replayed, and its orders by name."""

    of_set: str
    name: str
    gpu: str
    orders: tuple[str, ...]
    chooses: bool
    make: Callable[[], tuple[Workload, dict[str, np.ndarray]]]


def tuned_items() -> Iterator[Item]:
    """Each tuned GEMM once, with the candidates of all its files and both orders of the question of XCD remaps."""
    of: dict[str, tuple[tables.Gemm, set[maps.Tensile]]] = {}
    for one in tables.tuned():
        of.setdefault(one.gemm.name, (one.gemm, set()))[1].update((*one.candidates, one.winner, maps.Tensile(1)))
    for wanted in tables.wants_xcc():
        of.setdefault(wanted.gemm.name, (wanted.gemm, set()))[1].update((wanted.plain, wanted.remapped))
    for name, (gemm, orders) in of.items():
        yield Item("tuned", name, "mi300x", tuple(map(str, sorted(orders))), gemm.chooses, _tuned(gemm, sorted(orders)))


def _tuned(gemm: tables.Gemm, orders: list[maps.Tensile]) -> Any:
    return lambda: (
        workloads.tuned_gemm(gemm),
        {str(order): maps.tensile(order, *gemm.tiles) for order in orders},
    )


def aiter_items() -> Iterator[Item]:
    """GEMMs of MI355X with ``xcd_swizzle`` 0 and 4."""
    for of_set, found in (("aiter wants", tables.aiter_wants()), ("aiter pairs", tables.aiter_pairs())):
        for gemm in found:
            yield Item(of_set, gemm.name, "mi355x", ("0", "4"), gemm.chooses, _aiter(gemm))


def _aiter(gemm: tables.Aiter) -> Any:
    def make() -> tuple[Workload, dict[str, np.ndarray]]:
        work = workloads.aiter_gemm(gemm)
        return work, {str(group): maps.flydsl(group, *work.tiles) for group in (0, 4)}

    return make


def sweep_items() -> Iterator[Item]:
    """The sweep of GROUP_SIZE_M, and at 8192 the order whose hits were counted."""
    for size, measured in tables.sweep().items():
        yield Item("sweep", str(size), "mi300x", tuple(map(str, measured)), size == 8192, _sweep(size, measured))


def _sweep(size: int, measured: dict[int, float]) -> Any:
    side = size // 256
    return lambda: (
        workloads.sweep_gemm(size),
        {str(group): maps.runs_then_rest(side, side, group, workloads.local_tiles(size)) for group in measured},
    )


def attention_items() -> Iterator[Item]:
    """Attention by shape; a launched and a persistent grid are different workloads, so each order is an item."""
    for shape, measured in tables.attention().items():
        for order in measured:
            chooses = shape[0] == 1 and shape[-1] == 1
            yield Item("attention", " ".join(map(str, shape)), "mi300x", (order,), chooses, _attention(shape, order))


def _attention(shape: tuple[int, ...], order: str) -> Any:
    def make() -> tuple[Workload, dict[str, np.ndarray]]:
        work, items = workloads.attention(shape, order)
        return work, {order: items}

    return make


def paper_items() -> Iterator[Item]:
    """The paper's kernels, their orders' speedups and counted hits."""
    of: dict[str, list[Any]] = {}
    timed = measured_speedups()
    for row in paper_rows():
        if row.bijective and row.id in timed:
            of.setdefault(row.workload, []).append(row)
    for name, rows in of.items():
        orders = tuple(row.id for row in rows)
        yield Item("paper", name, "mi300x", orders, tables.chooses(name), _paper(rows))


def _paper(rows: list[Any]) -> Any:
    def make() -> tuple[Workload, dict[str, np.ndarray]]:
        work = workload(rows[0])
        return work, {row.id: _placed(row, work, gpu(row.gpu))[1] for row in rows}

    return make


ITEMS: dict[str, Callable[[], Iterator[Item]]] = {
    "tuned": tuned_items,
    "aiter": aiter_items,
    "sweep": sweep_items,
    "attention": attention_items,
    "paper": paper_items,
}


def replayed(item: Item, device: Gpu) -> list[dict[str, Any]]:
    """A line for each order of an item; those that are one permutation are replayed once."""
    work, orders = item.make()
    replayers = {replay: Replayer(work, device, replay=replay) for replay in ("timed", "lockstep")}
    known: dict[str, dict[str, Any]] = {}
    lines = []
    for name, order in orders.items():
        digest = hashlib.sha256(np.ascontiguousarray(order, np.int64).tobytes()).hexdigest()[:HEADS]
        if digest not in known:
            known[digest] = {}
            for replay, replayer in replayers.items():
                known[digest] |= {f"{replay}_{key}": value for key, value in counted(replayer, order).items()}
        head = {"set": item.of_set, "item": item.name, "order": name, "permutation": digest}
        lines.append(
            head | {"chooses": int(item.chooses), "workgroups_per_cu": replayers["timed"].occupancy} | known[digest]
        )
    return lines


def counted(replayer: Replayer[Workload], order: np.ndarray) -> dict[str, Any]:
    """What one replay counts, figures with six digits."""
    traffic, work, device = replayer.traffic(order), replayer.kernel, replayer.gpu
    time = replayer.time(traffic)
    spent = energy(traffic, device, flops=work.issued_flops, dtype=work.dtype, time_us=0.0)
    found = {
        "hit_pct": 100 * traffic.l2_hit_rate,
        "us": time.total_us,
        "requests": traffic.l2_requests,
        "misses": traffic.l2_misses,
        "read_requests": traffic.total(READ_REQUESTS),
        "read_misses": traffic.total(READ_MISSES),
        "mall_hit_pct": 100 * traffic.mall_hit_rate,
        "hbm_read_bytes": traffic.hbm_read_bytes,
        "hbm_write_bytes": traffic.hbm_write_bytes,
        "over_ideal": balance_of(traffic, time).over_ideal,
        "dynamic_j": spent.joules,
        **{f"{name}_j": value for name, value in spent.parts.items() if name != "static"},
        **{f"{name}_us": value for name, value in time.by_resource_us.items()},
    }
    return {name: float(f"{value:.6g}") for name, value in found.items()}


def _one(of_set: str, place: int, values: dict[str, Any]) -> list[dict[str, Any]]:
    item = _items(of_set)[place]
    return replayed(item, overridden(gpu(item.gpu), values.get(item.gpu, {})))


_made: dict[str, list[Item]] = {}


def _items(of_set: str) -> list[Item]:
    if of_set not in _made:
        _made[of_set] = list(ITEMS[of_set]())
    return _made[of_set]


def write(lines: list[dict[str, Any]], path: Path) -> None:
    """Write the table, sets that were not replayed as they stand in it; a line lacks what its GPU has not."""
    if path.exists():
        anew = {line["set"] for line in lines}
        with path.open(encoding="utf-8", newline="") as file:
            lines = lines + [line for line in csv.DictReader(file) if line["set"] not in anew]
    names = list(dict.fromkeys(name for line in lines for name in line))
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


def main() -> None:
    """Replay what is asked for."""
    ask = argparse.ArgumentParser(description=str(__doc__))
    ask.add_argument("sets", nargs="*", default=list(ITEMS))
    ask.add_argument("--set", action="append", default=[], dest="values", help="GPU.KEY=VALUE")
    ask.add_argument("--out", type=Path, default=OUT)
    ask.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    ask.add_argument("--choosing", action="store_true", help="only the choosing half")
    ask.add_argument("--every", type=int, default=1, help="each so many items")
    given = ask.parse_args()
    values = read_sets(given.values)
    jobs = [
        (of_set, place)
        for of_set in given.sets
        for place, item in enumerate(_items(of_set))
        if (item.chooses or not given.choosing) and place % given.every == 0
    ]
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    with ProcessPoolExecutor(given.processes) as pool:
        waiting = {pool.submit(_one, *job, values): job for job in jobs}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            if len(found) % 50 == 0:
                print(f"{len(found)} of {len(jobs)}", flush=True)
    write([line for job in jobs for line in found[job]], given.out)
    print("written:", given.out)


if __name__ == "__main__":
    main()
