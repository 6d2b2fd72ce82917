"""How well figures of the model rank the orders that AMD hardware measured, each with its bootstrap interval.

    within     of rows that order a won against rows that order b won in one file, the chance that the model's gain of a
               over b is higher in the former (an AUC): a habit has 0.5 by construction
    top-1      share of rows whose winner the figure puts first; ties share
    pairs      of orders measured further apart than the noise, those the figure puts the right way round; a tie is half
    regret     what the figure's choice takes beyond the best

A figure is a cost: less is better. Draws of the bootstrap are of sizes, so that the same GEMM under two types is one.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from ..rows import measured_speedups
from . import replays, tables

Line = Mapping[str, str]
Key = tuple[str, str, str]
Cost = Callable[[Line], float]
DRAWS, SEED, LOW, HIGH = 100, 0, 2.5, 97.5
TIE = 5e-4  # relative gap up to which two costs tie; of hit rates as points over 100
PAPER_NOISE = 0.03


def hits(replay: str) -> Cost:
    """Less the hit rate of a replay."""
    return lambda line: -float(line[f"{replay}_hit_pct"]) / 100


def time(replay: str) -> Cost:
    """Logarithm of a replay's time."""
    return lambda line: math.log(float(line[f"{replay}_us"]))


COSTS: dict[str, Cost] = {
    "time": time("timed"),
    "hits": hits("timed"),
    "lockstep time": time("lockstep"),
    "lockstep hits": hits("lockstep"),
}


@cache
def replayed(path: Path = replays.OUT) -> dict[Key, dict[str, str]]:
    """Lines of the replays by set, item and order."""
    with path.open(encoding="utf-8", newline="") as file:
        return {(line["set"], line["item"], line["order"]): line for line in csv.DictReader(file)}


def of_half(lines: Mapping[Key, dict[str, str]], choosing: bool) -> dict[Key, dict[str, str]]:
    """Lines of the half that chooses constants, or of the one that judges them."""
    return {key: line for key, line in lines.items() if bool(int(line["chooses"])) == choosing}


@dataclass(frozen=True)
class Estimate:
    """A statistic, its interval, and how many rows it is of."""

    value: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def bootstrapped(groups: Sequence[object], statistic: Callable[[np.ndarray], float]) -> Estimate:
    """Statistic of weights of rows, and its interval over draws of the rows' groups.

    Parameters
    ----------
    statistic : callable
        ``statistic(weight) -> float``, ``weight`` (rows,) how often each row was drawn.
    """
    if not groups:
        return Estimate(math.nan, math.nan, math.nan, 0)
    names, place = np.unique([str(one) for one in groups], return_inverse=True)
    draw = np.random.default_rng(SEED)
    values = [
        statistic(np.bincount(draw.integers(names.size, size=names.size), minlength=names.size)[place])
        for _ in range(DRAWS)
    ]
    low, high = np.nanpercentile(values, [LOW, HIGH])
    return Estimate(statistic(np.ones(len(groups))), float(low), float(high), len(groups))


def auc(
    positive: np.ndarray, negative: np.ndarray, w_positive: np.ndarray, w_negative: np.ndarray
) -> tuple[float, float]:
    """(Weight of pairs whose positive is higher, ties half; weight of all pairs)."""
    gap = positive[:, None] - negative[None, :]
    weight = w_positive[:, None] * w_negative[None, :]
    return float((weight * ((gap > 0) + 0.5 * (gap == 0))).sum()), float(weight.sum())


@dataclass(frozen=True)
class Row:
    """A tuned row: its winner among distinct permutations, by digest, and the cost of each."""

    one: tables.Tuned
    winner: str
    lines: Mapping[str, dict[str, str]]  # by digest
    digest: Mapping[str, str]  # by order, of all candidates


def tuned_rows(lines: Mapping[Key, dict[str, str]]) -> list[Row]:
    """Tuned rows that leave a choice: two or more different permutations."""
    found = []
    for one in tables.tuned():
        orders = dict.fromkeys(map(str, (*one.candidates, one.winner)))
        of = {order: lines.get(("tuned", one.gemm.name, order)) for order in orders}
        if any(line is None for line in of.values()):
            continue
        digest = {order: line["permutation"] for order, line in of.items() if line}
        by = {line["permutation"]: line for line in of.values() if line}
        if len(by) > 1:
            found.append(Row(one, digest[str(one.winner)], by, digest))
    return found


def within(rows: Sequence[Row], cost: Cost) -> Estimate:
    """AUC of the gain of a over b between rows that a won and rows that b won, in one file."""
    costs = [{digest: cost(line) for digest, line in row.lines.items()} for row in rows]
    by_file: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        by_file.setdefault(row.one.file, []).append(place)
    parts = []
    for places in by_file.values():
        for a, b in combinations(map(str, rows[places[0]].one.candidates), 2):
            won: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
            for place in places:
                row = rows[place]
                at, against = row.digest[a], row.digest[b]
                if at != against and row.winner in (at, against):
                    won[row.winner == at].append((place, costs[place][against] - costs[place][at]))
            if won[True] and won[False]:
                parts.append(tuple(np.array(side).T for side in (won[True], won[False])))

    def statistic(weight: np.ndarray) -> float:
        sums = np.array(
            [auc(up[1], down[1], weight[up[0].astype(int)], weight[down[0].astype(int)]) for up, down in parts]
        ).sum(axis=0)
        return float(sums[0] / sums[1]) if sums[1] else math.nan

    return bootstrapped([row.one.gemm.size for row in rows], statistic)


def top_1(rows: Sequence[Row], first: Callable[[Row], Sequence[str]]) -> Estimate:
    """Share of rows whose winner is among the digests that come first, these sharing."""
    each = np.array([(row.winner in chosen) / len(chosen) for row in rows for chosen in [set(first(row))]])
    return bootstrapped([row.one.gemm.size for row in rows], lambda weight: float((weight * each).sum() / weight.sum()))


def least(cost: Cost) -> Callable[[Row], list[str]]:
    """Digests of least cost, ties together."""

    def first(row: Row) -> list[str]:
        costs = {digest: cost(line) for digest, line in row.lines.items()}
        best = min(costs.values())
        return [digest for digest, value in costs.items() if value <= best + TIE]

    return first


def habit(order: Callable[[Row], str]) -> Callable[[Row], list[str]]:
    """Order that a user takes without a model; any, where it is no candidate."""
    return lambda row: [row.digest[order(row)]] if order(row) in row.digest else list(row.lines)


HABITS: dict[str, Callable[[Row], list[str]]] = {
    "any": lambda row: list(row.lines),
    "launch order": habit(lambda row: "wgm 1"),
    "group of 8": habit(lambda row: "wgm 8"),
    "file's commonest": habit(lambda row: str(row.one.commonest)),
}


def place_of_winner(rows: Sequence[Row], cost: Cost) -> Estimate:
    """Mean place of the winner among its candidates, 0 the first and 1 the last; ties share."""
    each = []
    for row in rows:
        costs = np.array([cost(line) for line in row.lines.values()])
        mine = cost(row.lines[row.winner])
        each.append(((costs < mine - TIE).sum() + 0.5 * ((abs(costs - mine) <= TIE).sum() - 1)) / (costs.size - 1))
    values = np.array(each)
    return bootstrapped([row.one.gemm.size for row in rows], lambda w: float((w * values).sum() / w.sum()))


def tuned_twice(rows: Sequence[Row]) -> tuple[Estimate, float]:
    """Share of pairs of files that tuned one GEMM and tile whose winners agree, each tried in both; and by chance."""
    of: dict[object, list[Row]] = {}
    for row in rows:
        gemm = row.one.gemm
        of.setdefault((gemm.types, gemm.layout, gemm.size, gemm.tile), []).append(row)
    both = [
        (a, b)
        for same in of.values()
        for a, b in combinations(same, 2)
        if a.one.file != b.one.file and a.winner in b.lines and b.winner in a.lines
    ]
    agree = np.array([a.winner == b.winner for a, b in both], float)
    found = bootstrapped(
        [a.one.gemm.size for a, _ in both], lambda weight: float((weight * agree).sum() / weight.sum())
    )
    return found, float(np.mean([1 / len(a.lines.keys() & b.lines.keys()) for a, b in both])) if both else math.nan


def wanted(lines: Mapping[Key, dict[str, str]], cost: Cost, which: str) -> Estimate:
    """AUC of the gain by a remap between GEMMs whose tuner chose one and others; ``which`` of mi300x, mi355x."""
    of = "tuned" if which == "mi300x" else "aiter wants"
    gains: list[tuple[bool, float, object]] = []
    for one in tables.wants_xcc() if which == "mi300x" else tables.aiter_wants():
        plain, remapped = (str(one.plain), str(one.remapped)) if isinstance(one, tables.Wanted) else ("0", "4")
        gemm = one.gemm if isinstance(one, tables.Wanted) else one
        pair = [lines.get((of, gemm.name, order)) for order in (plain, remapped)]
        if pair[0] and pair[1] and pair[0]["permutation"] != pair[1]["permutation"]:
            gains.append((one.wanted, cost(pair[0]) - cost(pair[1]), gemm.size))
    truth, gain = np.array([one[0] for one in gains], bool), np.array([one[1] for one in gains])

    def statistic(weight: np.ndarray) -> float:
        up, all_pairs = auc(gain[truth], gain[~truth], weight[truth], weight[~truth])
        return up / all_pairs if all_pairs else math.nan

    return bootstrapped([one[2] for one in gains], statistic)


@dataclass(frozen=True)
class Pairs:
    """Pairs measured further apart than the noise: how many are right, ties half, and the interval of the share."""

    right: float
    counted: int
    share: Estimate

    def __str__(self) -> str:
        return f"{self.right:g} of {self.counted}"


def pairs(groups: Mapping[object, Sequence[tuple[float, float, str]]], apart: float) -> Pairs:
    """Pairs of (measured cost, predicted cost, permutation) of each group; a permutation is paired with others only.

    Measured costs are logarithms; intervals are of draws of the groups.
    """
    each: list[tuple[object, float]] = []
    for name, orders in groups.items():
        for (measured, predicted, digest), (other, theirs, its) in combinations(orders, 2):
            if digest != its and abs(measured - other) > math.log1p(apart):
                gap = (predicted - theirs) * math.copysign(1.0, measured - other)
                each.append((name, 0.5 if abs(gap) <= TIE else float(gap > 0)))
    right = np.array([one[1] for one in each])
    share = bootstrapped(
        [one[0] for one in each],
        lambda weight: float((weight * right).sum() / weight.sum()) if weight.any() else math.nan,
    )
    return Pairs(float(right.sum()), len(each), share)


def regret(groups: Mapping[object, Sequence[tuple[float, float, str]]]) -> float:
    """Mean of what the order of least predicted cost takes beyond the best, relative; ties share."""
    found = []
    for orders in groups.values():
        best, first = min(one[0] for one in orders), min(one[1] for one in orders)
        found.append(np.mean([math.expm1(one[0] - best) for one in orders if one[1] <= first + TIE]))
    return float(np.mean(found)) if found else math.nan


Groups = dict[object, list[tuple[float, float, str]]]


def sweep_groups(lines: Mapping[Key, dict[str, str]], cost: Cost, sizes: Sequence[int]) -> Groups:
    """Orders of the sweep at some sizes."""
    return {
        size: [
            (math.log(value), cost(line), line["permutation"])
            for group, value in tables.sweep()[size].items()
            if (line := lines.get(("sweep", str(size), str(group))))
        ]
        for size in sizes
    }


def attention_groups(lines: Mapping[Key, dict[str, str]], cost: Cost) -> Groups:
    """Orders of attention, launched and persistent grids apart."""
    found: Groups = {}
    for shape, orders in tables.attention().items():
        for order, throughput in orders.items():
            if line := lines.get(("attention", " ".join(map(str, shape)), order)):
                one = (-math.log(throughput), cost(line), order)
                found.setdefault((shape, order.split()[0]), []).append(one)
    return found


def aiter_groups(lines: Mapping[Key, dict[str, str]], cost: Cost) -> Groups:
    """GEMMs of MI355X that were timed with ``xcd_swizzle`` 0 and 4."""
    found: Groups = {}
    for gemm in tables.aiter_pairs():
        plain, remapped = (lines.get(("aiter pairs", gemm.name, order)) for order in ("0", "4"))
        if plain and remapped and gemm.b_slower_pct is not None:
            slower = math.log1p(gemm.b_slower_pct / 100)
            found[gemm.name] = [
                (0.0, cost(plain), plain["permutation"]), (slower, cost(remapped), remapped["permutation"])
            ]  # fmt: skip
    return found


def paper_groups(lines: Mapping[Key, dict[str, str]], cost: Cost) -> Groups:
    """Orders of the paper's kernels: memory streaming, but for its GEMM."""
    speedups = measured_speedups()
    found: Groups = {}
    for (of_set, item, order), line in lines.items():
        if of_set == "paper":
            found.setdefault(item, []).append((-math.log(speedups[order]), cost(line), line["permutation"]))
    return found


def absolute(lines: Mapping[Key, dict[str, str]]) -> dict[str, np.ndarray]:
    """Predicted over measured time of tuned GEMMs whose time is in the files, by kind of their types."""
    found: dict[str, list[float]] = {}
    for one in {(one.gemm, one.winner): one for one in tables.tuned()}.values():
        line = lines.get(("tuned", one.gemm.name, str(one.winner)))
        if one.measured_us and line:
            found.setdefault(one.gemm.kind, []).append(float(line["timed_us"]) / one.measured_us)
    return {kind: np.array(ratios) for kind, ratios in found.items()}
