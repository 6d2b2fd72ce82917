"""Workgroups that wait for others of their launch: stages of one persistent kernel, with a flag a tile.

A program that has claimed a tile waits until the flags are set that the tile needs. In the order of claims nobody waits
for ever if whatever a tile waits for was handed out before it:

    of all tiles that have not ended, the one with the lowest id waits for none, and its pool has handed it out or does
    so next: the pool's programs hold nothing before it, and come to it before they claim from any other counter

The replays know no flags: a tile begins when its program is free. `waited_fs` says afterwards for how long it would
have had to wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcd_model.errors import Deadlock


@dataclass(frozen=True, eq=False)
class Waits:
    """Which workgroups of a trace set flags, and which wait for all flags of a group.

    Parameters
    ----------
    sets : (n_workgroups,) int array
        Group in which the workgroup sets a flag at its end; -1 for none.
    awaits : (n_workgroups,) int array
        Group whose flags all have to be set before it goes on; -1 for none.
    """

    sets: np.ndarray
    awaits: np.ndarray

    def _latest(self, when: np.ndarray) -> np.ndarray:
        """Latest ``when`` of the workgroups that set a flag, by group; -1 in one without any, and last."""
        latest = np.full(int(max(self.sets.max(), self.awaits.max())) + 2, -1, np.int64)
        np.maximum.at(latest, self.sets[self.sets >= 0], when[self.sets >= 0])
        return latest


def check_waits(order: np.ndarray, waits: Waits) -> None:
    """Refuse an order that hands out a workgroup before one that it waits for.

    Parameters
    ----------
    order : (n_workgroups,) int array
        ``order[t]`` is what id ``t`` computes: a permutation.
    """
    handed_out = np.empty(order.size, np.int64)
    handed_out[order] = np.arange(order.size)
    latest = waits._latest(handed_out)
    early = (waits.awaits >= 0) & (handed_out < latest[waits.awaits])
    if early.any():
        first = int(handed_out[early].min())
        other = int(latest[waits.awaits[order[first]]])
        raise Deadlock(
            f"id {first} (tile {order[first]}) waits for the later id {other} (tile {order[other]}): put it after that"
        )


def waited_fs(spans: np.ndarray, order: np.ndarray, waits: Waits) -> np.ndarray:
    """How long each id's workgroup would have had to wait, when a replay let it begin, for what it needs.

    ``spans`` (n_workgroups, 5) int64 begins with its begin and end [fs]. Returns (n_workgroups,) int64 [fs], by id; 0
    where all that it needs had ended, or it waits for none.
    """
    end = np.empty(order.size, np.int64)
    end[order] = spans[:, 1]
    awaited = waits.awaits[order]
    late = waits._latest(end)[awaited] - spans[:, 0]
    return np.where(awaited >= 0, np.maximum(late, 0), 0)
