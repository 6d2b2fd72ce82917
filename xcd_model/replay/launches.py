"""Caches that outlive a launch, and repeated launches of a kernel until its counts are steady.

steady:  |count - count of the launch before| <= 1e-3 * max(count before, L2 requests),    times as counts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from xcd_model.cache.packed import Machine, aligned_words, bits_of, words_of
from xcd_model.errors import ReplayError
from xcd_model.replay.plan import Plan, mall_has_room
from xcd_model.replay.traffic import READ_REQUESTS, WRITE_REQUESTS, Traffic
from xcd_model.spec.gpu import Gpu

MAX_LAUNCHES = 10_000
STEADY = 1e-3  # a tenth of a point of the hit rate: timed launches need never repeat


@dataclass(frozen=True, eq=False)
class Caches:
    """L2s and the Infinity Cache of one GPU; replays change them in place.

    Parameters
    ----------
    gpu : Gpu
    l2 : (n_xcds, words) uint32, see `l2_words`
    mall : (sets * ways,) uint32, or a bit for each line
    mall_keeps : frozenset of (int, int)
        Spans of lines that the Infinity Cache has room for and of which ``mall`` has bits
        (`xcd_model.cache.packed`); empty where it has words.
    """

    gpu: Gpu
    l2: np.ndarray = field(repr=False)
    mall: np.ndarray = field(repr=False)
    mall_keeps: frozenset[tuple[int, int]] = field(repr=False)

    def begin(self, plan: Plan, *, workgroups_per_cu: int) -> Machine:
        """Drop what does not outlive a launch; return the machine of a launch of so many workgroups a CU.

        Raises
        ------
        ReplayError
            If they are those of another GPU, or of launches that do not read what this one reads.
        """
        if self.gpu != plan.gpu or (self.mall_keeps and not plan.loaded <= self.mall_keeps):
            raise ReplayError(
                f"these caches are not those of {plan.gpu.name} and of this launch: make new ones with cold_caches, of "
                "all plans that are to share them"
            )
        if not plan.gpu.l2.kept_between_launches:
            self.l2[:] = 0
        if plan.gpu.mall and not plan.gpu.mall.kept_between_launches:
            self.mall[:] = 0
        return plan.machine._replace(
            slots=plan.gpu.cus_per_xcd * workgroups_per_cu, mall_has_room=bool(self.mall_keeps)
        )


def l2_words(machine: Machine) -> int:
    """Words of one XCD's L2: of both partitions where it has two."""
    return words_of(machine.l2, machine.l2_ways) * (2 if machine.coherence_mask else 1)


def cold_caches(plan: Plan, *others: Plan) -> Caches:
    """Empty caches for the launches of one plan, or of several for one GPU."""
    machine, loaded = plan.machine, plan.loaded.union(*(one.loaded for one in others))
    keeps = mall_has_room(machine, loaded) if others else plan.mall_has_room
    return Caches(
        gpu=plan.gpu,
        l2=aligned_words(machine.xcds * l2_words(machine)).reshape(machine.xcds, -1),
        mall=bits_of(loaded) if keeps else aligned_words(words_of(machine.mall, machine.mall_ways)),
        mall_keeps=loaded if keeps else frozenset(),
    )


def replay_launches(
    plans: Sequence[Plan], replay_one: Callable[[Plan, Caches], Traffic], launches: int
) -> tuple[Traffic, ...]:
    """Repeat a round of kernels, caches warm, until a round is like the one before it.

    Parameters
    ----------
    plans : sequence of Plan
        One round: a single kernel, or several in turn that share one address space (the two directions of a
        ping-pong). More than one needs plans made with ``symmetry=False``.
    replay_one : callable
        ``replay_one(plan, caches) -> Traffic``, such as a partial `xcd_model.replay_lockstep`.
    launches : int
        Rounds at most, 1 to `MAX_LAUNCHES`.

    Returns
    -------
    traffic : tuple of Traffic
        Of the last round, each with its ``launch`` number from 1, and ``steady``: whether no total of a column, nor the
        time, differs from the round before by more than the share `STEADY`. From round `PATIENCE` on a column may
        differ by that share of all requests to the L2s, a tenth of a point of their hit rate: a few hundred stores
        that miss in millions can go up and down for ever. Where nearly all hits, that is more of what is left to miss.

    Raises
    ------
    ReplayError
        If there is no plan, launches is out of range, or the plans do not share GPU and tensors.
    """
    if not plans or not 1 <= launches <= MAX_LAUNCHES:
        raise ReplayError(
            f"{len(plans)} kernels, launches = {launches} out of range; pass at least one kernel, and "
            f"launches 1..{MAX_LAUNCHES}"
        )
    _check_round(plans)
    caches = cold_caches(*plans)
    before = None
    for launch in range(1, launches + 1):
        found = [replace(replay_one(plan, caches), launch=launch) for plan in plans]
        now = np.array([[traffic.time_fs, *traffic.per_xcd.sum(axis=0)] for traffic in found], float)
        if before is not None and np.all(np.abs(now - before) <= STEADY * _scale(before)):
            return tuple(replace(traffic, steady=True) for traffic in found)
        before = now
    return tuple(found)


def _scale(before: np.ndarray) -> np.ndarray:
    """What a change of each kernel's time and columns is a share of; both (n_kernels, 1 + n_columns)."""
    requests = before[:, 1 + READ_REQUESTS] + before[:, 1 + WRITE_REQUESTS]
    return np.hstack([before[:, :1], np.maximum(before[:, 1:], requests[:, None])])


def _check_round(plans: Sequence[Plan]) -> None:
    first = plans[0]
    for plan in plans[1:]:
        if plan.gpu != first.gpu or plan.trace.tensors != first.trace.tensors:
            raise ReplayError(
                "the kernels of a round run on one GPU and share their tensors: prepare them with one "
                "Gpu, from traces of the same tensors"
            )
    if len(plans) > 1 and any(plan.simulated_fraction < 1 for plan in plans):
        raise ReplayError("kernels that share caches are replayed set by set: prepare them with symmetry=False")
