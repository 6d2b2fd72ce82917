"""Requests of a run to language models, and their cost, as its proposer reports them through entry-point group `GROUP`.

This package does not know how a proposer stores its transcript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from xcd_model.errors import SwizzleSimError

GROUP = "swizzle_sim.spending"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One question to a model."""

    # number of the attempt that its answer became; None for an analysis, a repeated question, or no answer
    attempt: int | None
    purpose: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    dollars: float | None  # none for a model without a price
    waited_s: float  # [s]
    failed: str = ""  # code of what went wrong, empty if nothing


@dataclass(frozen=True)
class Spending:
    """All questions of a run, why it ended, why its orders are better, by attempt, and why that cannot be told."""

    asks: tuple[Ask, ...] = ()
    ended: str = ""
    fault: str = ""
    why: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def of(self, attempt: int) -> str:
        """Cost of one attempt, in words; empty where no model was involved."""
        mine = [ask for ask in self.asks if ask.attempt == attempt]
        return _words(mine) if mine else ""

    def sentences(self) -> list[str]:
        """Total cost; empty where no model was involved."""
        if not self.asks:
            return [f"The requests to models cannot be read: {self.fault}"] if self.fault else []
        failed = sum(bool(ask.failed) for ask in self.asks)
        models = ", ".join(dict.fromkeys(ask.model for ask in self.asks))
        waited = sum(ask.waited_s for ask in self.asks)
        lines = [
            f"{len(self.asks)} questions to {models} ({failed} without a usable answer): {_words(self.asks)}, "
            f"{waited:.1f} s of waiting."
        ]
        return lines + ([f"The run ended by {self.ended}."] if self.ended else [])


def _words(asks: Sequence[Ask]) -> str:
    tokens_in = sum(ask.input_tokens or 0 for ask in asks)
    tokens_out = sum(ask.output_tokens or 0 for ask in asks)
    prices = [ask.dollars for ask in asks]
    price = "price unknown" if None in prices else f"${sum(p for p in prices if p is not None):.4f}"
    return f"{tokens_in:,} tokens in, {tokens_out:,} out, {price}"


def spending_of(folder: Path) -> Spending:
    """Cost of a run, from the first proposer that knows it."""
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda one: one.name):
        try:
            found = entry.load()(folder)
        except SwizzleSimError as error:
            return Spending(fault=str(error))
        if found:
            return found
    return Spending()
