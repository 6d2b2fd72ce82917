"""A timed replay that says how far it is: another thread looks at the times that it writes."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from xcd_model import Traffic
from xcd_model.replay.timed import SPAN_COLUMNS

LOOK_EVERY_S = 0.2


class Told(Protocol):
    """What is told how far the work is."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` workgroups of the order ``what`` have ended."""
        ...


def untold(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def watched_traffic(scorer: Scorer, order: np.ndarray, what: str, told: Told) -> Traffic:
    """Traffic of an order in the scorer's replay; of the timed one, ``told`` hears how far it is.

    Parameters
    ----------
    scorer : Scorer
    order : (num_pids,) int array
    what : str
        The order's name.
    told : Told
        Called from another thread; of several launches, with the count of the one under way.
    """
    if scorer.replay != "timed":
        return scorer.traffic(order)
    spans, over = np.full((order.size, SPAN_COLUMNS), -1, np.int64), threading.Event()

    def look() -> None:
        told(what, 0, order.size)
        while not over.wait(LOOK_EVERY_S):
            told(what, int(np.count_nonzero(spans[:, 1] >= 0)), order.size)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        return scorer.traffic_and_spans(order, spans)[0]
    finally:
        over.set()
        watcher.join()
