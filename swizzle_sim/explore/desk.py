"""`Desk`: takes the requests of all pages, and of each page works only on the newest."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from swizzle_sim.explore.worker import Worker

if TYPE_CHECKING:
    from swizzle_sim.explore.evaluate import Result
    from swizzle_sim.explore.gallery import Card

PAUSE_S = 0.05  # a request waits so long for a newer one, as a slider that is dragged sends
MAX_PAGES = 100


class Desk:
    """Requests of pages in front of one worker.

    Parameters
    ----------
    worker : Worker
    pause_s : float [s]
    """

    def __init__(self, worker: Worker, *, pause_s: float = PAUSE_S):
        self._worker, self._pause_s = worker, pause_s
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._drawing, self._busy = threading.Lock(), threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether requests are answered; before, kernels are compiled."""
        return self._worker.ready

    @property
    def cards(self) -> list[Card]:
        """The gallery, once `ready`."""
        return self._worker.cards

    def ask(self, page: str, query: str, *, anyway: bool = False) -> Result | None:
        """Evaluate the state of a page, unless the page asks again before it is begun.

        Parameters
        ----------
        page : str
            Any name; what one page asked last makes what it asked before stale.
        query : str
        anyway : bool

        Returns
        -------
        result : Result or None
            None if a newer request took its place.

        Raises
        ------
        ReplayError
            If it took too long; see `Worker.ask`.
        """
        ticket = self._draw(page)

        def stale() -> bool:
            return self._newest.get(page) != ticket

        time.sleep(self._pause_s)
        while not stale():
            if self._busy.acquire(timeout=0.05):
                try:
                    return None if stale() else self._worker.ask(query, anyway=anyway, stale=stale)
                finally:
                    self._busy.release()
        return None

    def _draw(self, page: str) -> int:
        """Next ticket of a page; pages that asked longest ago are forgotten."""
        with self._drawing:
            ticket = self._newest.pop(page, 0) + 1
            self._newest[page] = ticket
            while len(self._newest) > MAX_PAGES:
                self._newest.popitem(last=False)
        return ticket
