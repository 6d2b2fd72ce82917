"""Clusters: workgroups that the hardware dispatches together, and loads of which one fetch serves all of them.

    program p of a launch   ->   workgroups p * size, ..., p * size + size - 1, one cluster
    loads and stores             workgroup j has the j-th part of the program's lines, in their order
    loads of common tensors      every workgroup needs all lines: it fetches all of them,
                                 or, by multicast, the j-th part, and all workgroups get every line

That is how Triton launches a program with ``num_ctas``: ids are those of clusters, and a remap of ids moves clusters
and keeps the place of each workgroup in its own. What a tensor instruction of too few lines to go round reads, every
workgroup reads for itself.

Sources: CUDA C++ Programming Guide, thread block clusters (co-scheduled on a GPC); PTX ISA, ``cp.async.bulk.tensor``
with ``.multicast::cluster``; triton-lang/triton PRs 8718 and 8759 (clusters and multicast loads of gfx1250). Triton 3.9
makes clusters for sm_90a and no multicast: no such instruction is in the code that it gives for a GEMM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcd_model.errors import ReplayError, TornCluster, UnknownName
from xcd_model.trace.trace import PASSES, Trace

LEAST_SIZE = 2


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """How the programs of a launch are clusters of workgroups.

    Parameters
    ----------
    size : int
        Workgroups of a cluster, at least 2.
    common : tuple of str
        Tensors, by their names in the trace, of whose loads every workgroup needs all.
    multicast : bool
        Whether one fetch of those serves the whole cluster; else each workgroup fetches them for itself.

    Raises
    ------
    ReplayError
        If a cluster has fewer than two workgroups.
    """

    size: int
    common: tuple[str, ...] = ()
    multicast: bool = True

    def __post_init__(self):
        if self.size < LEAST_SIZE:
            raise ReplayError(f"size = {self.size}: a cluster has at least {LEAST_SIZE} workgroups")


def spread(trace: Trace, clusters: Clusters) -> Trace:
    """Trace of the workgroups of a trace's programs."""
    names = [tensor.name for tensor in trace.tensors]
    for name in clusters.common:
        if name not in names:
            raise UnknownName("tensor", name, names)
    size, count = clusters.size, trace.entries_per_template[:, None]
    common = np.isin(names, list(clusters.common))[trace.tensor] & ~trace.is_write
    together = common & (count[:, 0] >= size) & clusters.multicast
    place, few = np.arange(size)[None, :], (count < size) | (common & ~together)[:, None]
    low = np.where(few, np.where(trace.is_write[:, None], np.minimum(place, count), 0), count * place // size)
    stop = np.where(trace.is_write[:, None], np.minimum(place + 1, count), count)
    high = np.where(few, stop, count * (place + 1) // size)
    kept = high > low
    lines = (high - low)[kept]
    first = np.repeat((trace.rel_start[:-1, None] + low)[kept] - (np.cumsum(lines) - lines), lines)
    entry = first + np.arange(lines.sum())
    of = np.nonzero(kept)[0]
    waves = np.zeros((of.size, trace.waves.shape[1]), np.int64)
    waves[:, PASSES] = -(-trace.waves[of, PASSES] * lines // count[of, 0])
    cut = _Cut(np.where(kept, np.cumsum(kept).reshape(kept.shape) - 1, -1), size)
    return replace(
        trace,
        **cut.instructions(trace),
        rel_start=np.concatenate([[0], np.cumsum(lines)]),
        rel=trace.rel[entry],
        sectors=trace.sectors[entry],
        wave_requests=trace.wave_requests[entry],
        is_write=trace.is_write[of],
        tensor=trace.tensor[of],
        waves=waves,
        multicast=together[of],
    )


@dataclass(frozen=True)
class _Cut:
    """Template of each workgroup's part, -1 for none: (n_templates, size); and the workgroups of a cluster."""

    part: np.ndarray
    size: int

    def instructions(self, trace: Trace) -> dict[str, Any]:
        """``start``, ``base`` and ``template`` of the workgroups."""
        owner = np.repeat(np.arange(trace.n_workgroups), np.diff(trace.start))
        part = self.part[trace.template]
        at, place = np.nonzero(part >= 0)
        workgroup = owner[at] * self.size + place
        order = np.argsort(workgroup, kind="stable")
        at, place = at[order], place[order]
        many = np.bincount(workgroup, minlength=trace.n_workgroups * self.size)
        return {
            "start": np.concatenate([[0], np.cumsum(many)]).astype(np.int64),
            "base": trace.base[at],
            "template": part[at, place].astype(np.int32),
        }


def order_of_workgroups(order: np.ndarray, size: int) -> np.ndarray:
    """Order of workgroups, from one of the clusters: each keeps its place in its own."""
    return (order[:, None] * size + np.arange(size)).reshape(-1)


def check_together(order: np.ndarray, size: int) -> None:
    """Refuse an order of workgroups that tears a cluster apart.

    Parameters
    ----------
    order : (n,) int array
        ``order[w]`` is what hardware workgroup ``w`` computes: a permutation.
    """
    computed = order.reshape(-1, size)
    torn = (computed[:, 0] % size != 0) | (computed != computed[:, :1] + np.arange(size)).any(axis=1)
    if torn.any():
        first = int(torn.argmax()) * size
        raise TornCluster(
            f"workgroups {first}..{first + size - 1} are dispatched as one cluster of {size} and would compute "
            f"{', '.join(map(str, order[first : first + size].tolist()))}, which is no cluster: remap pid // {size} "
            f"and keep pid % {size}"
        )
