"""`evidence_of`: how often a predicted figure ranked measured orders of a GPU correctly, from ``ranked_pairs.toml``.

The table is data with its sources; `swizzle_benchmarks.validation.ranked_pairs` writes it from measured rows.
"""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

FEWEST = 30  # pairs, below which nothing is said to rank
RANKS = 0.9  # share of them that must come the right way round
READS_LESS = "reads_less_in_a_tie"  # its entry: pairs that times tie, right where what reads less from HBM was faster
READS_APART = 1.1  # ratio of bytes read from HBM from which one order reads less
ALIKE = 5e-4  # relative gap, or of a rate 0 to 1 its tenth: figures that print alike are ties everywhere


@dataclass(frozen=True)
class Evidence:
    """What measured rows say of one objective on one GPU."""

    gpu: str
    objective: str
    pairs: int = 0  # pairs of orders of one workload that were measured over 3 % (rates: one point) apart
    # of these, how many the timed replay puts the right way round; of times as the tool ranks them, ties by reads
    right: int = 0
    # predicted gap up to which its sign was no better than a coin's; relative, of a rate 0 to 1
    tells_apart: float = 0.0
    source: str = ""  # of the measurements; empty where there are none
    alone: int | None = None  # right by the figure alone, where another one breaks its ties
    launches: int = 0  # whose orders were all measured
    # measured time over that of each launch's best order, less 1, in the mean: of the order that is chosen, ties broken
    # as the tool breaks them, and of the launch order
    lost: float = 0.0
    launched: float = 0.0

    @property
    def ranks(self) -> bool:
        """Whether the figure may decide between orders: its pairs say so, or what is lost by choosing by it."""
        gains = self.launches >= FEWEST and self.lost < self.launched
        return self.pairs >= FEWEST and (self.right >= RANKS * self.pairs or gains)

    def sentence(self) -> str:
        """What the evidence is."""
        if not self.pairs:
            return f"no measured pair of orders on {self.gpu}"
        return f"{self.right} of {self.pairs} measured pairs of orders come the right way round on {self.gpu}"


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    text = resources.files("swizzle_sim.search.ranking").joinpath("ranked_pairs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def times_note(gpu: str, replay: str) -> str:
    """What a predicted time is worth on a GPU, for the foot of a table."""
    found = evidence_of(gpu, "time")
    if replay != "timed":
        return "The times of the lockstep replay rank no orders: it screens, by hits."
    if found.ranks and found.lost < found.launched:
        lost, launched = (f"{100 * one:.1f} %" for one in (found.lost, found.launched))
        loses = f"it loses {lost} of the best measured time of {found.launches} launches, the launch order {launched}"
        return f"Time chooses orders here: {loses}; {found.sentence()}."
    if found.ranks:
        return f"Times rank orders: {found.sentence()}."
    return f"Times do not rank orders here: {found.sentence()}."


def times_rank(gpu: str, replay: str) -> bool:
    """Whether the times of a replay may decide between orders of a GPU."""
    return replay == "timed" and evidence_of(gpu, "time").ranks


def reads_break_ties(gpu: str) -> bool:
    """Whether of orders whose predicted times tie on a GPU the one that reads less from HBM was measured faster."""
    return evidence_of(gpu, READS_LESS).ranks


def steps_more(value: float, least: float, step: float) -> int:
    """By how many steps, ratios such as `READS_APART`, a figure is above the least of those that tie."""
    return int(math.log((value + 1) / (least + 1), step))


def evidence_of(gpu: str, objective: str) -> Evidence:
    """Evidence on an objective; of a GPU that nobody measured an empty one, with the widest tolerance of the others."""
    known = _table().get(gpu, {}).get(objective)
    if known is None:
        widest = max((of[objective]["tells_apart"] for of in _table().values() if objective in of), default=0.0)
        return Evidence(gpu, objective, tells_apart=widest)
    return Evidence(gpu, objective, **known)
