"""`Knobs`, what a search may set of a kernel beside the order of its workgroups, as the replay takes it.

Some programs walk the main loop backwards, and loads of some tensors are streamed; `swizzle_sim.tuning.loops` writes
both into a kernel's source.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from xcd_model import Gpu
from xcd_model.replay.knobs import with_knobs
from xcd_model.replay.plan import Plan


@dataclass(frozen=True)
class Knobs:
    """A setting of the knobs."""

    # hardware workgroup ``w`` walks the main loop backwards where ``w // period`` is odd; 0 where none does
    period: int = 0
    # tensors, by their names in the trace, whose loads leave their lines the first to be evicted from the L2
    streamed: tuple[str, ...] = ()

    def __str__(self) -> str:
        walk = f"back every {self.period}" if self.period else "forward"
        return f"{walk}, {', '.join(self.streamed)} streamed" if self.streamed else walk

    def backwards(self, order: np.ndarray) -> np.ndarray | None:
        """Whether each workgroup of the trace walks backwards, (n_workgroups,) bool; None where none does.

        Parameters
        ----------
        order : (n_workgroups,) int array
            Workgroup of the trace that each hardware workgroup computes.
        """
        if not self.period:
            return None
        found = np.zeros(order.size, bool)
        found[order] = np.arange(order.size) // self.period % 2 == 1
        return found

    def on(self, plan: Plan, order: np.ndarray) -> Plan:
        """The plan with the knobs so set, for one order."""
        return with_knobs(plan, backwards=self.backwards(np.asarray(order)), streamed=self.streamed)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "streamed": list(self.streamed)}


DEFAULT = Knobs()


def periods(gpu: Gpu, workgroups_per_cu: int, workgroups: int) -> tuple[int, ...]:
    """Periods that a search tries: every other workgroup, every other of an XCD, and every other round of all slots."""
    found = {1, gpu.xcds, gpu.cus * workgroups_per_cu}
    return tuple(sorted(period for period in found if period < workgroups))
