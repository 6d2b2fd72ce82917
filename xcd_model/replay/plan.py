"""`Plan`: a trace made ready to be replayed on one GPU, under any number of orders; `Caches`: what outlives a launch.

Where the trace allows it the plan has only one cache set of each class of sets that see the same stream up to names
(`xcd_model.fast.symmetry`); counts stay exact.

Launches of a kernel repeat, caches warm, until its counts are steady:

    steady:  |count - count of the launch before| <= 1e-3 * max(count before, L2 requests),    times as counts
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xcd_model.cache.locate import DIRTY_BITS, FILL_BITS, MARK_BITS
from xcd_model.cache.packed import (
    Machine,
    Stream,
    aligned_words,
    bits_of,
    check_tags,
    has_room,
    machine_of,
    stream_of,
    words_of,
)
from xcd_model.dispatch import run_of
from xcd_model.errors import ReplayError
from xcd_model.replay.traffic import READ_REQUESTS, WRITE_REQUESTS, Traffic
from xcd_model.spec.gpu import Gpu
from xcd_model.speed import shorten
from xcd_model.trace.claims import Claims
from xcd_model.trace.clusters import Clusters, check_together, order_of_workgroups, spread
from xcd_model.trace.trace import SECTOR_BYTES, Trace

MAX_LAUNCHES = 10_000
STEADY = 1e-3  # a tenth of a point of the hit rate: timed launches need never repeat


@dataclass(frozen=True, eq=False)
class Plan:
    """A trace ready for a GPU; make it with `prepare`.

    Parameters
    ----------
    trace : Trace
    gpu : Gpu
    stream, machine
        What the compiled replay reads.
    simulated_fraction : float
        L2 sets looked up one by one, of all.
    """

    trace: Trace
    gpu: Gpu
    stream: Stream = field(repr=False)
    machine: Machine = field(repr=False)
    simulated_fraction: float = 1.0

    @property
    def n_workgroups(self) -> int:
        """Workgroups of the trace."""
        return self.trace.n_workgroups

    @functools.cached_property
    def loaded(self) -> frozenset[tuple[int, int]]:
        """First line and the one after the last, of each tensor that is read."""
        tensors = np.unique(self.stream.tensor[~self.stream.is_write])
        return frozenset((int(first), int(end)) for first, end in self.stream.tensor_lines[tensors])

    @functools.cached_property
    def mall_has_room(self) -> bool:
        """Whether the Infinity Cache evicts nothing: it has room for all that is read."""
        return mall_has_room(self.machine, self.loaded)

    def order_of_workgroups(self, order: np.ndarray) -> np.ndarray:
        """(n_workgroups,) int64 order of the trace's workgroups, from one of them or of its (n_clusters,) clusters.

        Raises ReplayError if it is no permutation, TornCluster if it parts the workgroups of a cluster.
        """
        size, n = self.machine.cluster, self.trace.n_workgroups
        if size > 1 and np.size(order) != n:
            return order_of_workgroups(check_order(order, n // size), size)
        order = check_order(order, n)
        if size > 1:
            check_together(order, size)
        return order

    def traffic(self, timeline: np.ndarray, by_tensor: np.ndarray, **found: Any) -> Traffic:
        """`Traffic` of a replay; ``found`` are the fields that differ between lockstep and timed."""
        return Traffic(
            timeline=timeline,
            by_tensor=by_tensor,
            tensors=tuple(tensor.name for tensor in self.trace.tensors),
            fetch_bytes=self.gpu.l2.fetch_bytes,
            write_request_bytes=self.gpu.l2.write_request_bytes,
            simulated_fraction=self.simulated_fraction,
            **found,
        )


def check_order(order: np.ndarray, n_workgroups: int) -> np.ndarray:
    """Return ``order`` as int64 if it is a permutation of the trace's workgroups."""
    order = np.asarray(order)
    if order.shape != (n_workgroups,) or not np.issubdtype(order.dtype, np.integer):
        raise ReplayError(
            f"order has shape {order.shape} and type {order.dtype}; pass one integer for each of the trace's "
            f"{n_workgroups} workgroups"
        )
    if order.size and (order.min() < 0 or order.max() >= n_workgroups):
        raise ReplayError(
            f"order holds {order.min()}..{order.max()}; workgroups are 0..{n_workgroups - 1}: number them from 0"
        )
    order = np.ascontiguousarray(order, np.int64)  # before NumPy 2.1 `bincount` refuses uint64
    times = np.bincount(order, minlength=n_workgroups)
    if times.max() > 1:
        raise ReplayError(
            f"order computes workgroup {int(times.argmax())} twice and workgroup {int(times.argmin())} not at all; "
            "replay a permutation"
        )
    return order


def mall_has_room(machine: Machine, loaded: frozenset[tuple[int, int]]) -> bool:
    """Whether there is an Infinity Cache, and it has room for some spans of lines."""
    return machine.mall.n_sets > 0 and bool(loaded) and has_room(machine.mall, machine.mall_ways, loaded)


def _check_policy(gpu: Gpu) -> None:
    """Refuse an L2 that the replay would silently treat as another."""
    l2 = gpu.l2
    if not (l2.write_back and l2.write_allocate):
        raise ReplayError(
            f"{gpu.name} has l2.write_back = {l2.write_back}, l2.write_allocate = {l2.write_allocate}: the replay "
            "models an L2 that does both; set both to true"
        )
    if gpu.mall and (gpu.mall.write_back or gpu.mall.write_allocate):
        raise ReplayError(
            f"{gpu.name} has mall.write_back = {gpu.mall.write_back}, mall.write_allocate = {gpu.mall.write_allocate}: "
            "the replay lets writes pass through the Infinity Cache; set both to false"
        )
    for key in ("read_request_bytes", "write_request_bytes"):
        if getattr(l2, key) % SECTOR_BYTES:
            raise ReplayError(
                f"{gpu.name} has l2.{key} = {getattr(l2, key)}: a trace resolves multiples of {SECTOR_BYTES} B; "
                "round it up to one"
            )
    if (gpu.l1 and gpu.l1.fetches_halves) or (gpu.mall and (gpu.mall.fetches_halves or l2.fetches_halves)):
        raise ReplayError(
            f"{gpu.name}: fetches_halves is modelled for an L2 with no Infinity Cache behind it, and for no other "
            "cache; set it to false, or leave out [mall]"
        )
    if gpu.l2_partitions and gpu.mall:
        raise ReplayError(
            f"{gpu.name}: l2_partitions is modelled for an L2 with no Infinity Cache behind it; leave out "
            "[l2_partitions] or [mall]"
        )
    if gpu.hbm_rows and gpu.mall:
        raise ReplayError(
            f"{gpu.name}: hbm_rows is modelled for an HBM with no Infinity Cache before it; leave out "
            "[hbm_rows] or [mall]"
        )
    if l2.line_bytes // l2.write_request_bytes > DIRTY_BITS:
        raise ReplayError(
            f"{gpu.name} has l2.write_request_bytes = {l2.write_request_bytes}: the replay tracks at most "
            f"{DIRTY_BITS} dirty pieces a line, so at least {l2.line_bytes // DIRTY_BITS} B each"
        )


def check_clusters(clusters: Clusters, gpu: Gpu, programs: int | None = None) -> None:
    """Refuse clusters that a GPU does not dispatch, or that are not modelled."""
    most = gpu.limits.workgroups_per_cluster or 1
    if clusters.size > min(most, gpu.cus_per_xcd):
        has = f"at most {most} workgroups, on {gpu.cus_per_xcd} CUs" if most > 1 else "no clusters"
        raise ReplayError(
            f"{gpu.name} has {has} (limits.workgroups_per_cluster), and the kernel is launched in clusters of "
            f"{clusters.size}: choose a GPU that has them, such as h200 or mi450"
        )
    if programs is not None:
        raise ReplayError("clusters of persistent programs are not modelled: leave out programs or clusters")


def _check_fit(trace: Trace, gpu: Gpu) -> None:
    _check_policy(gpu)
    for name, cache in (("l1", gpu.l1), ("l2", gpu.l2), ("mall", gpu.mall)):
        if cache is None:
            continue
        if cache.line_bytes != trace.line_bytes:
            raise ReplayError(
                f"{gpu.name} has {name}.line_bytes = {cache.line_bytes}, the trace was built for {trace.line_bytes}: "
                "build the trace with the GPU's line size"
            )
        check_tags(trace.highest_line, cache, f"{gpu.name} {name}", mark_bits=FILL_BITS if name == "l1" else MARK_BITS)


def prepare(
    trace: Trace,
    gpu: Gpu,
    *,
    programs: int | None = None,
    claims: Claims | None = None,
    clusters: Clusters | None = None,
    symmetry: bool = True,
) -> Plan:
    """Make a trace ready for replays on one GPU.

    Parameters
    ----------
    trace : Trace
    gpu : Gpu
    programs : int, optional
        Of a persistent kernel: that many are launched, and program p computes tiles p, p + programs, ... of the
        order, each a workgroup of the trace.
    claims : Claims, optional
        Of a persistent kernel whose programs claim their tiles from atomic counters: tile t of a counter is the order's
        t-th. A claim takes no time.
    clusters : Clusters, optional
        Of a launch whose programs, the workgroups of ``trace``, are clusters of workgroups.
    symmetry : bool
        Simulate one cache set of each class of equivalent sets, where there are such classes and the GPU has no
        ``hbm_rows``. Counts are the same.

    Returns
    -------
    Plan

    Raises
    ------
    ReplayError
        If the trace was built for another line size, the L2's write policy or request sizes are not modelled, or
        there are fewer than one or more programs than tiles, a pool of claimed tiles has none, or the GPU has no such
        clusters.
    UnknownName
        If a cluster shares the loads of a tensor that the trace does not have.
    TraceError
        If an address does not fit the model's tags.
    """
    if clusters is not None:
        check_clusters(clusters, gpu, programs)
        trace = spread(trace, clusters)
    _check_fit(trace, gpu)
    if programs is not None and not 1 <= programs <= trace.n_workgroups:
        raise ReplayError(f"programs = {programs} is out of range; must be 1..{trace.n_workgroups}, the kernel's tiles")
    if claims is not None and programs is None:
        raise ReplayError("claims are those of persistent programs: give programs too")
    owned = claims.pools if claims and not claims.steals else 0
    if claims is not None and (programs or 0) < min(owned, claims.local, trace.n_workgroups):
        raise ReplayError(f"programs = {programs}: each of {claims.pools} pools needs a program that claims its tiles")
    pools, local = (claims.pools, min(claims.local, trace.n_workgroups)) if claims else (0, 0)
    steals = claims is not None and claims.steals
    machine = machine_of(gpu, trace.highest_line, programs=programs or 0, pools=pools, local=local, steals=steals)
    stream = stream_of(trace, gpu, machine)
    if clusters is not None:
        machine = machine._replace(cluster=clusters.size)
        stream = stream._replace(multicast=trace.multicast[trace.template])
    machine = machine._replace(run=run_of(gpu, programs or trace.n_workgroups // machine.cluster))
    by_class = symmetry and gpu.hbm_rows is None  # rows of the memory span classes of sets
    short = shorten(trace, stream, machine, by_tile=gpu.l1 is not None, by_class=by_class)
    return Plan(trace, gpu, *short)


@dataclass(frozen=True, eq=False)
class Caches:
    """L2s and the Infinity Cache of one GPU; replays change them in place."""

    gpu: Gpu
    l2: np.ndarray = field(repr=False)  # (n_xcds, words) uint32, see `l2_words`
    mall: np.ndarray = field(repr=False)  # (sets * ways,) uint32, or a bit for each line
    # frozenset of (int, int): spans of lines that the Infinity Cache has room for and of which ``mall`` has bits
    # (`xcd_model.cache.packed`); empty where it has words
    mall_keeps: frozenset[tuple[int, int]] = field(repr=False)

    def begin(self, plan: Plan, *, workgroups_per_cu: int) -> Machine:
        """Drop what does not outlive a launch; return the machine of a launch of so many workgroups a CU."""
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
    """Repeat a round of kernels that share one address space, caches warm, until it is like the round before it.

    No count of a kernel, nor its time, may differ by more than `STEADY` of itself or, of counts, of the requests to the
    L2s: a few hundred stores that miss in millions can go up and down for ever. Traffic is that of the last round.
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
