"""`Inputs`: what a run of the llm proposer reads besides kernel and GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.prices import Prices


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run reads besides kernel and GPU; kept in the run, so that it can be repeated without the files.

    Parameters
    ----------
    docs : str or None
        Document of the overload context.
    program : mapping or None
        State of a tuned program.
    prices : Prices
    """

    docs: str | None = None
    program: Mapping[str, Any] | None = None
    prices: Prices

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"docs": self.docs, "program": self.program, "prices": vars(self.prices)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Inputs:
        """Inverse of `as_dict`."""
        prices = values["prices"]
        table = {model: (pair[0], pair[1]) for model, pair in prices["per_million"].items()}
        return cls(
            docs=values["docs"], program=values["program"], prices=Prices(prices["date"], prices["source"], table)
        )
