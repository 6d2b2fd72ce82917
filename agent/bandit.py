"""`Bandit`: which of several models to ask next, by what its answers were worth for what they cost.

Source: Auer, Cesa-Bianchi and Fischer, Machine Learning 47, 2002 (UCB1), on reward per dollar scaled to 1.
"""

from __future__ import annotations

import math

from agent.failures import Failure
from xcd_model.errors import ModelError

DOLLARS_PER_MILLION = 1.0  # stands for the price of a model that has none, so that free and unknown models compare
LEAST_DOLLARS = 1e-6


class Bandit:
    """Chooses among models; the same rewards give the same choices.

    Parameters
    ----------
    models : sequence of str
        In the order in which they are tried first.
    """

    def __init__(self, models: tuple[str, ...]):
        self._worth: dict[str, list[float]] = {model: [] for model in models}
        self._out: dict[str, Failure] = {}

    @property
    def left(self) -> list[str]:
        """Models that may still be asked."""
        return [model for model in self._worth if model not in self._out]

    @property
    def why(self) -> str:
        """Why models were dropped."""
        return "; ".join(f"{model}: {failure.message}" for model, failure in self._out.items())

    @property
    def code(self) -> str:
        """Code of the first failure for which a model was dropped."""
        return next((failure.code for failure in self._out.values()), "model")

    def drop(self, model: str, why: Failure) -> None:
        """Ask a model no more."""
        self._out[model] = why

    def choose(self) -> str:
        """Model to ask next.

        Raises
        ------
        ModelError
            If all have been dropped; says why.
        """
        if not self.left:
            raise ModelError(f"no model is left to ask: {self.why}", code=self.code)
        for model in self.left:
            if not self._worth[model]:
                return model
        asked = sum(len(self._worth[model]) for model in self.left)
        most = max(max(self._worth[model]) for model in self.left) or 1.0

        def promise(model: str) -> float:
            worth = self._worth[model]
            return sum(worth) / len(worth) / most + math.sqrt(2 * math.log(asked) / len(worth))

        return max(self.left, key=promise)

    def pay(self, model: str, gain: float, dollars: float | None, tokens: int) -> None:
        """Note what an iteration of a model was worth.

        Parameters
        ----------
        gain : float
            By how much the best L2 hit rate rose, at least 0.
        dollars : float or None
            What it cost; where that is unknown the tokens stand for it.
        tokens : int
        """
        cost = tokens * DOLLARS_PER_MILLION / 1e6 if dollars is None else dollars
        self._worth[model].append(gain / max(cost, LEAST_DOLLARS))
