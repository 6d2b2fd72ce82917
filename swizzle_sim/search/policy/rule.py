"""`choose`: the fewest orders that lose little at every size, and a small tree that says which of them a launch takes.

The figure that decides at a size is the one by which `swizzle_sim.search.ranking` ranks a run there. The regret of an
order is how much of the best it loses in that figure; an order that goes behind whatever its figure, or is no bijection
there, loses everything.

    orders x sizes -> regret -> smallest set of orders with regret <= p everywhere -> smallest tree over conditions

Both are exact: all sets of a size are tried before a larger one, and all trees up to a depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim import proof
from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.language import Swizzle
from swizzle_sim.language.families import FAMILIES, condition_of, is_spec, names_of
from swizzle_sim.language.ir import evaluate
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.search.policy.sizes import LAUNCHED, Case
from swizzle_sim.search.ranking import Ranking, default_objectives, evidence_of
from xcd_model import Gpu
from xcd_model.errors import SearchError

LOST = 1000.0  # percent, in place of an infinite regret, so that sums of it compare
DEPTH = 3  # conditions on the way to an order
THRESHOLDS = 12  # of one name
DIVISORS = (2, 4, 8, 16, 32, 64, 128, 256)
FEWEST_HELD_OUT = 8  # sizes from which every third is held out


@dataclass(frozen=True)
class Order:
    """An order that is a bijection of every launch of a kind, or of those of a condition."""

    name: str
    source: str  # text of the language; empty for the launch order
    where: str = ""  # condition, elsewhere the launch order; empty for every launch
    covers: str = ""  # sizes for which that is proved


@dataclass(frozen=True)
class Leaf:
    """End of a rule: the number of an order."""

    order: int


@dataclass(frozen=True)
class Branch:
    """One condition of the language, and what follows where it holds and where not."""

    condition: str
    then: Leaf | Branch
    other: Leaf | Branch


Node = Leaf | Branch
Cost = tuple[float, float, float]  # calls times percent lost beyond what is allowed; leaves; calls times regret


@dataclass(frozen=True)
class Policy:
    """A rule over sizes, the orders that it chooses among, and what it loses at each size."""

    kernel: str
    gpu: Gpu
    replay: str
    allowed: float  # percent
    orders: tuple[Order, ...]  # the launch order first, then those that the rule uses
    rule: Node
    cases: tuple[Case, ...] = field(repr=False)
    chosen: tuple[int, ...] = ()  # by case: number of the order
    regret: tuple[tuple[float, ...], ...] = field(repr=False, default=())  # by case and order [%]
    matters: tuple[bool, ...] = ()  # by case: whether any order tried loses more than is allowed
    measure: tuple[str, ...] = ()  # by case: why to measure; empty where the model may decide
    behind_all: tuple[float, ...] = ()  # by case: regret of the rule among all orders replayed, proved or not [%]
    held_out: float | None = None  # mean regret at sizes that the rule was not made from [%]; None of under 8 sizes

    @property
    def regrets(self) -> list[float]:
        """Regret of the rule at each size [%]."""
        return [self.regret[i][k] for i, k in enumerate(self.chosen)]

    def mean_regret(self, order: int | None = None) -> tuple[float, int]:
        """Regret over all calls, of the rule or of one order [%], and at how many sizes it goes behind instead."""
        values = np.array(self.regrets if order is None else [row[order] for row in self.regret])
        calls, behind = np.array([one.calls for one in self.cases]), values >= LOST
        mean = 0.0 if behind.all() else float(np.average(values[~behind], weights=calls[~behind]))
        return mean, int(behind.sum())

    def branches(self) -> list[tuple[str, int, list[int]]]:
        """Condition of each branch, its order, and its cases."""
        found = []
        for path, leaf in _paths(self.rule):
            tests = [parse_condition(one) for one in path]
            at = [i for i, case in enumerate(self.cases) if all(evaluate(one, case.values) for one in tests)]
            found.append((" and ".join(path) or "every launch", leaf.order, at))
        return found


def proved_orders(
    candidates: Sequence[tuple[str, str]],
    kind: str,
    gpu: Gpu,
    most: int = 64,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Order], list[str]]:
    """The launch order and the first orders with a proof, by name and text; names before the last for which none is."""
    found, refused = [Order(LAUNCHED, "", covers="every launch")], []
    for done, (name, source) in enumerate(candidates):
        on_step(done, len(candidates))
        if len(found) > most:
            break
        order = _proved(name, source, kind, gpu)
        found += [order] if order else []
        refused += [] if order else [name]
    return found, refused


def _proved(name: str, source: str, kind: str, gpu: Gpu) -> Order | None:
    """Order with a proof for every launch, else with one under the condition that its family states."""
    stated = condition_of(name) if is_spec(name) and names_of(name) <= FAMILIES.keys() else "always"
    where = "" if stated == "always" else stated
    for xcds in (None, gpu.xcds):
        if covers := _covered(source, kind, where, xcds):
            return Order(name, source, where, covers if xcds is None else f"{covers}, on {xcds} XCDs")
    return None


def _covered(source: str, kind: str, where: str, xcds: int | None) -> str:
    """Sizes that a proof covers, looked up where it was found before; empty for none."""
    store, key = DiskCache("proofs"), key_of(source, kind, where, xcds, code=(Path(proof.__file__).parent,))
    known = store.get(key)
    if known is None:
        condition = parse_condition(where) if where else None
        shown = proof.prove(Swizzle.parse(source).form, kind, where=condition, num_xcds=xcds)
        known = shown.range_text if shown.holds else ""
        store.put(key, known)
    return known


def choose(
    kernel: str,
    gpu: Gpu,
    replay: str,
    cases: Sequence[Case],
    orders: Sequence[Order],
    *,
    allowed: float = 1.0,
    depth: int = DEPTH,
) -> Policy:
    """Policy with the fewest orders that lose at most ``allowed`` percent; the first given is the launch order."""
    if not cases:
        raise SearchError("no size was scored, so there is nothing to choose by", code="policy")
    regret = np.array([regrets_of(case, orders, gpu, replay) for case in cases])
    calls = np.array([case.calls for case in cases])
    kept = fewest(regret, calls, allowed)
    rule = grown(cases, regret[:, kept], allowed, gpu.xcds, depth)
    used = sorted({kept[leaf.order] for _, leaf in _paths(rule)} | {0})
    rule = _renumbered(rule, {i: used.index(k) for i, k in enumerate(kept) if k in used})
    numbers = [decided(rule, case.values) for case in cases]
    chosen = tuple(
        k if _holds(orders[used[k]], case.values, gpu) else 0 for k, case in zip(numbers, cases, strict=True)
    )
    told = [
        _measure(case, orders[used[k]], gpu, replay) if row[0] > allowed else ""
        for case, k, row in zip(cases, chosen, regret, strict=True)
    ]
    matters = tuple(bool(((allowed < row) & (row < LOST)).any()) for row in regret)
    behind = tuple(
        regrets_of(case, [orders[used[k]]], gpu, replay, of_all=True)[0] for case, k in zip(cases, chosen, strict=True)
    )
    unseen = held_out(cases, regret[:, kept], allowed, gpu.xcds, depth)
    return Policy(
        kernel, gpu, replay, allowed, tuple(orders[k] for k in used), rule, tuple(cases), chosen,
        tuple(map(tuple, regret[:, used].tolist())), matters, tuple(told), behind, unseen,
    )  # fmt: skip


def regrets_of(case: Case, orders: Sequence[Order], gpu: Gpu, replay: str, *, of_all: bool = False) -> list[float]:
    """Percent that each order loses of the best of them, or of all that were replayed; `LOST` where it goes behind."""
    ranking = ranking_at(case, gpu, replay)
    names = [one.name if _holds(one, case.values, gpu) else LAUNCHED for one in orders]
    scores = case.scores if of_all else {name: case.scores[name] for name in names if name in case.scores}
    evenest = min(one.balance.over_ideal if one.balance else 1.0 for one in scores.values())
    ahead = {name: score for name, score in scores.items() if not ranking.is_behind(score, evenest)}
    costs = {name: ranking.main.cost(score) for name, score in (ahead or scores).items()}
    best = min(costs.values())
    return [_percent(costs[name], best, ranking) if name in costs else LOST for name in names]


def ranking_at(case: Case, gpu: Gpu, replay: str) -> Ranking:
    """The ranking of a run at a size."""
    return Ranking(default_objectives(gpu.name, replay, case.work_class), 1, gpu.name)


def _percent(cost: float, best: float, ranking: Ranking) -> float:
    """Percent of the best figure lost: of a rate, whose cost is negative, or of what has a logarithm as its cost."""
    if not math.isfinite(cost):
        return LOST
    lost = 1 - cost / best if ranking.main.largest and best else math.expm1(cost - best)
    return min(LOST, 100 * lost)


def _holds(order: Order, values: Mapping[str, int], gpu: Gpu) -> bool:
    """Whether the condition of an order's proof holds; a launch gets the launch order where it does not."""
    return not order.where or bool(evaluate(parse_condition(order.where), {**values, "num_xcds": gpu.xcds}))


def _measure(case: Case, order: Order, gpu: Gpu, replay: str) -> str:
    """Why the order of a size has to be measured; empty where evidence lets the model decide."""
    ranking = ranking_at(case, gpu, replay)
    if order.name == LAUNCHED or order.name not in case.scores:
        return ""
    evidence = evidence_of(gpu.name, ranking.main.name, case.work_class)
    if not evidence.ranks:
        return f"{ranking.main.spoken} is not shown to rank such launches: {evidence.sentence()}"
    gain = ranking.main.gain(case.scores[order.name], case.scores[LAUNCHED])
    return "" if gain > ranking.tolerance else "its gain over the launch order is not told apart"


def fewest(regret: np.ndarray, calls: np.ndarray, allowed: float) -> list[int]:
    """Smallest set of orders of which at every size one loses at most what is allowed; of equal ones the least regret.

    Parameters
    ----------
    regret : (n_sizes, n_orders) array [%]
    calls : (n_sizes,) array
    """
    worst = np.maximum(regret.min(1), allowed)  # a size at which no order is allowed takes its best
    good = regret <= worst[:, None]
    if good[:, 0].all():  # the launch order will do, and costs nothing
        return [0]
    for count in range(1, regret.shape[1] + 1):
        sets = [list(one) for one in combinations(range(regret.shape[1]), count) if good[:, one].any(1).all()]
        if sets:
            return min(sets, key=lambda one: (float(calls @ regret[:, one].min(1)), one))
    raise AssertionError("all orders together lose nothing")


def conditions(cases: Sequence[Case], num_xcds: int) -> Iterator[str]:
    """Conditions that split sizes: thresholds on sizes, then on counts of tiles, then what they are multiples of."""
    names = [name for name in cases[0].values if name.isidentifier() and all(name in one.values for one in cases)]
    names.sort(key=lambda name: name.startswith("num_pid"))
    for name in names:
        values = sorted({case.values[name] for case in cases})
        steps = (
            values[:-1]
            if len(values) <= THRESHOLDS
            else [values[len(values) * k // THRESHOLDS] for k in range(1, THRESHOLDS)]
        )
        yield from (f"{name} <= {value}" for value in steps)
    for name in names:
        divisors = {num_xcds, *DIVISORS} if name.startswith("num_pid") else set(DIVISORS[5:])
        yield from (f"{name} % {divisor} == 0" for divisor in sorted(divisors - {1}))


def grown(cases: Sequence[Case], regret: np.ndarray, allowed: float, num_xcds: int, depth: int) -> Node:
    """Tree of the least depth that loses nothing beyond the allowed at any case, or of the full depth."""
    return _Grower(cases, regret, np.array([case.calls for case in cases]), allowed, num_xcds).grown(depth)


def held_out(cases: Sequence[Case], regret: np.ndarray, allowed: float, num_xcds: int, depth: int) -> float | None:
    """Mean regret at every third size of trees grown at the others, over all three choices of it."""
    if len(cases) < FEWEST_HELD_OUT:
        return None
    mixed = np.random.default_rng(0).permutation(len(cases))
    lost = np.zeros(len(cases))
    for k in range(3):
        seen = [int(i) for place, i in enumerate(mixed) if place % 3 != k]
        rule = grown([cases[i] for i in seen], regret[seen], allowed, num_xcds, depth)
        for i in map(int, mixed[k::3]):
            lost[i] = regret[i, decided(rule, cases[i].values)]
    return float(np.average(lost, weights=[case.calls for case in cases]))


class _Grower:
    """Grows the cheapest tree: what is lost beyond the allowed counts first, then leaves, then the regret."""

    def __init__(self, cases: Sequence[Case], regret: np.ndarray, calls: np.ndarray, allowed: float, num_xcds: int):
        floor = np.maximum(regret.min(1), allowed)[:, None]
        self._costs = np.stack([calls[:, None] * np.maximum(regret - floor, 0), calls[:, None] * regret])
        self._splits: list[tuple[str, np.ndarray]] = []
        seen: set[bytes] = set()
        for text in conditions(cases, num_xcds):
            condition = parse_condition(text)
            mask = np.array([bool(evaluate(condition, case.values)) for case in cases])
            if mask.all() or not mask.any() or mask.tobytes() in seen:
                continue
            seen |= {mask.tobytes(), (~mask).tobytes()}
            self._splits.append((text, mask))
        self._masks = np.array([mask for _, mask in self._splits], dtype=bool).reshape(-1, len(cases))
        self._known: dict[tuple[bytes, int], tuple[Cost, Node]] = {}

    def grown(self, depth: int) -> Node:
        """Cheapest tree of the least depth that loses nothing beyond the allowed, or of the full depth."""
        every = np.ones(self._costs.shape[1], bool)
        found = [self._best(every, 0)]
        for level in range(1, depth + 1):
            if found[-1][0][0] == 0:
                break
            found.append(self._best(every, level))
        return min(found, key=lambda one: one[0])[1]

    def _best(self, mask: np.ndarray, depth: int) -> tuple[Cost, Node]:
        key = mask.tobytes(), depth
        if key not in self._known:
            self._known[key] = self._grow(mask, depth)
        return self._known[key]

    def _grow(self, mask: np.ndarray, depth: int) -> tuple[Cost, Node]:
        costs, order = self._leaves(mask[None])
        best: tuple[Cost, Node] = (costs[0], Leaf(int(order[0])))
        if depth == 0 or best[0][0] == 0 or not self._splits:
            return best
        sides = [self._masks & mask, ~self._masks & mask]
        if depth == 1:  # of all splits at once
            pairs = [self._leaves(side) for side in sides]
            totals = [_sum(one, other) for one, other in zip(pairs[0][0], pairs[1][0], strict=True)]
            at = min(range(len(totals)), key=totals.__getitem__)
            leaves = [Leaf(int(pair[1][at])) for pair in pairs]
            return min(best, (totals[at], Branch(self._splits[at][0], *leaves)), key=lambda one: one[0])
        for (text, _), then, other in zip(self._splits, *sides, strict=True):
            if not then.any() or not other.any():
                continue
            first = self._best(then, depth - 1)
            if first[0] >= best[0]:
                continue
            second = self._best(other, depth - 1)
            total = _sum(first[0], second[0])
            if total < best[0]:
                best = total, Branch(text, first[1], second[1])
        return best

    def _leaves(self, masks: np.ndarray) -> tuple[list[Cost], np.ndarray]:
        """Costs of the best single order of each set of sizes, and that order."""
        lost, regret = masks.astype(float) @ self._costs[0], masks.astype(float) @ self._costs[1]
        order = np.lexsort((regret, np.round(lost, 9)), axis=1)[:, 0]
        at = np.arange(len(masks))
        found = zip(np.round(lost[at, order], 9), np.round(regret[at, order], 9), strict=True)
        return [(float(one), 1.0, float(other)) for one, other in found], order


def _sum(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _paths(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    if isinstance(node, Leaf):
        yield path, node
        return
    yield from _paths(node.then, (*path, node.condition))
    yield from _paths(node.other, (*path, f"not ({node.condition})"))


def _renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    if isinstance(node, Leaf):
        return Leaf(numbers[node.order])
    then, other = (_renumbered(one, numbers) for one in (node.then, node.other))
    return then if then == other else Branch(node.condition, then, other)


def decided(node: Node, values: Mapping[str, Any]) -> int:
    """Number of the order that a rule gives a size."""
    while isinstance(node, Branch):
        node = node.then if evaluate(parse_condition(node.condition), values) else node.other
    return node.order


def most_helpful(cases: Sequence[Case], names: Sequence[str], gpu: Gpu) -> list[int]:
    """Places of orders, by lockstep hits: one after the other the one that leaves least to be lost over all calls."""
    orders = [Order(LAUNCHED, ""), *(Order(name, name) for name in names)]
    regret = np.array([regrets_of(case, orders, gpu, "lockstep") for case in cases])
    calls, best, left = np.array([case.calls for case in cases]), regret[:, 0], list(range(1, len(orders)))
    found = list[int]()
    while left:
        k = min(left, key=lambda k: (float(calls @ np.minimum(best, regret[:, k])), float(calls @ regret[:, k]), k))
        best, found = np.minimum(best, regret[:, k]), [*found, k - 1]
        left.remove(k)
    return found
