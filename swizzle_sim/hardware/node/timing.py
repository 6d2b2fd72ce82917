"""Times of the candidates by GPU events, cold and warm, the orders taken in turn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

torch: Any = importlib.import_module("torch")

WARMUPS = 3
FLUSH_BYTES = 512 << 20  # twice MI300X's Infinity Cache
BATCH = 10  # samples between two looks at the results
AHEAD_CYCLES = 1_000_000  # GPU time in which the host gets ahead, so that no launch waits for Python
STATES = {
    "cold": "after reading {mib} MiB of other data, which leaves clean lines in every cache",
    "warm": "right after a launch of the same candidate on the same tensors",
}


class Clock:
    """Times launches.

    Parameters
    ----------
    launches : mapping of str to callable
        By candidate.
    flush_bytes : int [bytes]
    device : str
    """

    def __init__(
        self, launches: Mapping[str, Callable[[], None]], flush_bytes: int = FLUSH_BYTES, device: str = "cuda"
    ):
        self.launches = dict(launches)
        self.states = {name: text.format(mib=flush_bytes >> 20) for name, text in STATES.items()}
        self.flush = torch.zeros(flush_bytes // 4, dtype=torch.int32, device=device)

    def warm_up(self) -> None:
        """Launch everything a few times: compile, raise the clocks."""
        for _ in range(WARMUPS):
            for launch in self.launches.values():
                launch()
        torch.cuda.synchronize()

    def cold(self) -> None:
        """Fill the caches with other data, without leaving dirty lines."""
        self.flush.sum()

    def samples(self, count: int) -> Iterator[dict[str, dict[str, list[float]]]]:
        """Yield ``{candidate: {"cold": times, "warm": times}}`` [us], batch by batch.

        In every round all candidates have their turn, each round beginning with the next one.
        """
        names = list(self.launches)
        for start in range(0, count, BATCH):
            pairs: list[tuple[str, str, Any, Any]] = []
            for turn in range(start, min(start + BATCH, count)):
                shift = turn % len(names)
                for name in names[shift:] + names[:shift]:
                    pairs += [(name, state, *self._one(name, state)) for state in STATES]
                torch.cuda.synchronize()
            found: dict[str, dict[str, list[float]]] = {name: {state: [] for state in STATES} for name in names}
            for name, state, begin, end in pairs:
                found[name][state].append(round(begin.elapsed_time(end) * 1e3, 3))
            yield found

    def _one(self, name: str, state: str) -> tuple[Any, Any]:
        launch = self.launches[name]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(AHEAD_CYCLES)
        self.cold() if state == "cold" else launch()
        begin.record()
        launch()
        end.record()
        return begin, end
