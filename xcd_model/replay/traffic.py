"""`Traffic`: the counts that a replay gives, per XCD and over time, and level by level.

L2 hit rate = (requests - misses) / requests                          as TCC_HIT / (TCC_HIT + TCC_MISS)
HBM reads   = (read misses - Infinity Cache hits) * bytes a fill
HBM writes  = write-backs * bytes a write request
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from xcd_model.compiled.numba_inline import inlined
from xcd_model.dispatch import xcd_of
from xcd_model.resources import Resources
from xcd_model.spec.gpu import Gpu

COLUMNS = (
    "instructions",  # tensor instructions issued
    "read_requests",  # to the L2, of the GPU's read request size
    "write_requests",  # to the L2, of the GPU's write request size
    "read_misses",  # pieces of ``fetch_bytes`` read that the L2 lacked: lines, or halves of lines
    "write_misses",  # pieces written that the L2 lacked (allocated, not fetched)
    "writebacks",  # write requests' worth of dirty pieces that left the L2
    "mall_requests",  # fills requested from the Infinity Cache
    "mall_hits",  # of which it had
    "l1_requests",  # reads of waves that reach an L1, coalesced to lines; 0 without L1s
    "l1_hits",  # of which went no further: a hit, or another wave of the instruction read the line first
)
INSTRUCTIONS, READ_REQUESTS, WRITE_REQUESTS, READ_MISSES, WRITE_MISSES = range(5)
WRITEBACKS, MALL_REQUESTS, MALL_HITS, L1_REQUESTS, L1_HITS = range(5, 10)
MAX_BINS = 4096  # of a timeline while it is filled: pairs of bins are merged when they are full


class Tally(NamedTuple):
    """Where counts of one XCD are added up: ``counts`` (n_columns,) of a bin, ``by_tensor`` (n_tensors, n_columns)."""

    counts: np.ndarray
    by_tensor: np.ndarray


@inlined
def _count(tally, tensor, column, n):
    """Add ``n`` to a column, in all and for a tensor."""
    tally.counts[column] += n
    tally.by_tensor[tensor, column] += n


@dataclass(frozen=True, eq=False)
class Traffic:
    """Counts of one replay.

    Parameters
    ----------
    timeline : (n_bins, n_xcds, len(COLUMNS)) int64
        Counts of each bin of turns or of time; the dirty lines flushed at the end are in the last bin.
    turns_per_bin, turns : int
        Lockstep: turns a bin, and in all; a turn is one instruction of every resident workgroup. Timed: 0.
    fetch_bytes, write_request_bytes : int [bytes]
        What a miss fetches, and what a write request or a write-back writes at most.
    simulated_fraction : float
        Part of the cache sets that was looked up one by one; below 1 the rest follows exactly by symmetry.
    time_fs, bin_fs : int [fs]
        Timed: when the last workgroup is done, and the length of a bin. Lockstep: 0.
    activation_fs : int [fs]
        Timed: time of row activations, beyond that of the bytes, see `xcd_model.nvidia.memory`.
    l2_read_fs : int [fs]
        Timed: what a read request takes at an L2, less where several go as one, see `xcd_model.nvidia.rates`.
    remote_hits : int
        Read requests of lines that the L2 partition of the CU lacked, in whole or part, and the remote one had all of,
        see `xcd_model.nvidia.memory`; 0 where there are no partitions.
    hits_under_miss : int
        Timed: lines that a read found in an L2 while their fill was under way;
        hits, as AMD's counters have it (decision 0017). In lines, whatever a request is. Lockstep: 0.
    flushed : int
        Write requests' worth of dirty pieces that were in the L2s at the end, counted among the write-backs.
    by_tensor : (n_tensors, n_xcds, len(COLUMNS)) int64
        Totals of each tensor; write-backs are those of the tensor written back.
    tensors : tuple of str
        Their names.
    launch : int
        Which launch in a row this is, from 1.
    steady : bool
        The launch before counted the same.
    cu_finish : (n_xcds, cus_per_xcd) int64 [turns, or fs if timed]
        When each CU is done with its last workgroup; 0 for a CU that had none.
    """

    timeline: np.ndarray = field(repr=False)
    turns_per_bin: int
    turns: int
    fetch_bytes: int
    write_request_bytes: int
    simulated_fraction: float = 1.0
    time_fs: int = 0
    bin_fs: int = 0
    activation_fs: int = 0
    l2_read_fs: int = 0
    remote_hits: int = 0
    hits_under_miss: int = 0
    flushed: int = 0
    by_tensor: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0, len(COLUMNS)), np.int64))
    tensors: tuple[str, ...] = ()
    launch: int = 1
    steady: bool = False
    cu_finish: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0), np.int64))

    @property
    def bin_width(self) -> float:
        """Length of a bin [turns, or us if timed]."""
        return self.turns_per_bin if self.turns else self.bin_fs / 1e9

    @property
    def duration(self) -> float:
        """Length of the whole replay [turns, or us if timed]; more than 0."""
        return self.turns or max(self.time_fs, 1) / 1e9

    @property
    def per_xcd(self) -> np.ndarray:
        """(n_xcds, len(COLUMNS)) int64: totals of each XCD."""
        return self.timeline.sum(axis=0)

    def total(self, column: int) -> int:
        """Sum of one column over XCDs and time."""
        return int(self.timeline[:, :, column].sum())

    @property
    def l2_requests(self) -> int:
        """Requests that reached an L2, as TCC_HIT + TCC_MISS counts them."""
        return self.total(READ_REQUESTS) + self.total(WRITE_REQUESTS)

    @property
    def l2_misses(self) -> int:
        """Requests that missed: one for each ``fetch_bytes``, where the instruction's other requests hit."""
        return self.total(READ_MISSES) + self.total(WRITE_MISSES)

    @property
    def l2_hits(self) -> int:
        """Requests that hit."""
        return self.l2_requests - self.l2_misses

    @property
    def l2_hit_rate(self) -> float:
        """TCC_HIT / (TCC_HIT + TCC_MISS), 0 to 1, in requests."""
        return self.l2_hits / self.l2_requests

    @property
    def data_l2_hit_rate(self) -> float:
        """`l2_hit_rate` without the fetches of code, which hardware counters hold too."""
        data = self.by_tensor[[name != CODE for name in self.tensors]].sum(axis=(0, 1))
        requests = int(data[READ_REQUESTS] + data[WRITE_REQUESTS])
        return 1 - int(data[READ_MISSES] + data[WRITE_MISSES]) / requests

    @property
    def per_xcd_l2_hit_rate(self) -> tuple[float, ...]:
        """Hit rate of each XCD's L2; nan for an XCD that had no work."""
        totals = self.per_xcd
        requests = totals[:, READ_REQUESTS] + totals[:, WRITE_REQUESTS]
        misses = totals[:, READ_MISSES] + totals[:, WRITE_MISSES]
        rate = np.divide(requests - misses, requests, out=np.full(requests.size, np.nan), where=requests > 0)
        return tuple(float(r) for r in rate)

    @property
    def l1_hit_rate(self) -> float:
        """Share of the waves' reads that an L1 answered; nan where the GPU's L1s are not modelled."""
        requests = self.total(L1_REQUESTS)
        return self.total(L1_HITS) / requests if requests else float("nan")

    @property
    def mall_hit_rate(self) -> float:
        """Share of the L2s' fills that the Infinity Cache had; nan where the GPU has none."""
        requests = self.total(MALL_REQUESTS)
        return self.total(MALL_HITS) / requests if requests else float("nan")

    @property
    def hbm_read_bytes(self) -> int:
        """Bytes read from HBM: fills that no cache had."""
        return (self.total(READ_MISSES) - self.total(MALL_HITS)) * self.fetch_bytes

    @property
    def hbm_write_bytes(self) -> int:
        """Bytes written to HBM: dirty pieces that left an L2, the flush at the end included."""
        return self.total(WRITEBACKS) * self.write_request_bytes


def levels(counts: np.ndarray, *, fetch_bytes: int, write_request_bytes: int) -> dict[str, dict[str, int]]:
    """Requests, hits, misses and bytes of each level.

    Parameters
    ----------
    counts : (n_columns,) int64
        Columns of `COLUMNS`.
    fetch_bytes, write_request_bytes : int [bytes]
    """
    c = [int(value) for value in counts]
    misses = c[READ_MISSES] + c[WRITE_MISSES]
    requests = c[READ_REQUESTS] + c[WRITE_REQUESTS]
    written = c[WRITEBACKS] * write_request_bytes
    from_hbm = (c[READ_MISSES] - c[MALL_HITS]) * fetch_bytes
    return {
        "l1": {"requests": c[L1_REQUESTS], "hits": c[L1_HITS], "misses": c[L1_REQUESTS] - c[L1_HITS]},
        "l2": {
            "requests": requests,
            "read_requests": c[READ_REQUESTS],
            "write_requests": c[WRITE_REQUESTS],
            "hits": requests - misses,
            "misses": misses,
            "writebacks": c[WRITEBACKS],
            "read_bytes": c[READ_MISSES] * fetch_bytes,
            "write_bytes": written,
        },
        "mall": {
            "requests": c[MALL_REQUESTS],
            "hits": c[MALL_HITS],
            "misses": c[MALL_REQUESTS] - c[MALL_HITS],
            "read_bytes": from_hbm,
            "write_bytes": written,
        },
        "hbm": {"read_bytes": from_hbm, "write_bytes": written},
    }


def traffic_as_dict(traffic: Traffic) -> dict[str, Any]:
    """All counts of a replay by level: in all, for each XCD, and for each tensor; JSON-ready."""
    sizes = {"fetch_bytes": traffic.fetch_bytes, "write_request_bytes": traffic.write_request_bytes}
    return {
        "all": levels(traffic.per_xcd.sum(axis=0), **sizes),
        "per_xcd": [levels(counts, **sizes) for counts in traffic.per_xcd],
        "by_tensor": {
            name: levels(counts, **sizes)
            for name, counts in zip(traffic.tensors, traffic.by_tensor.sum(axis=1), strict=True)
        },
        "launch": traffic.launch,
        "steady": traffic.steady,
    }


CODE = "(code)"  # among the tensors of a `Traffic`


def instruction_fetches(gpu: Gpu, resources: Resources, n_workgroups: int, cluster: int = 1) -> np.ndarray:
    """Count the fetches of code of one launch: they reach the L2, and its counters, like loads.

        requests of an XCD = min(workgroups, instruction caches) * (lines of code + prefetched lines)

    Each instruction cache that serves a CU with work fetches the code once a launch, since a launch begins with empty
    ones. Of a large launch that is nothing; of a launch of 64 small workgroups it is a third of the L2's hits. The
    fetches are added to a replay's counts afterwards: code takes next to no room in an L2.

    Source: ROCm Compute Profiler documentation, "L2 cache": it serves requests of the L1 instruction caches.
    """
    counts = np.zeros((gpu.xcds, len(COLUMNS)), np.int64)
    if gpu.l1i is None or not resources.code_bytes:
        return counts
    workgroups = cluster * np.bincount(xcd_of(n_workgroups // cluster, gpu), minlength=gpu.xcds)
    caches = np.minimum(workgroups, -(-gpu.cus_per_xcd // gpu.l1i.cus))  # workgroups are dealt to caches in turn
    lines = -(-resources.code_bytes // gpu.l1i.line_bytes) + gpu.l1i.prefetch_lines
    counts[:, READ_REQUESTS] = caches * lines
    counts[:, READ_MISSES] = (caches > 0) * -(-lines * gpu.l1i.line_bytes // gpu.l2.fetch_bytes)
    if gpu.mall is not None:
        counts[:, MALL_REQUESTS] = counts[:, READ_MISSES]
        counts[:, MALL_HITS] = counts[:, READ_MISSES] * (np.arange(gpu.xcds) != xcd_of(1, gpu)[0])
    return counts


def add_fetches(traffic: Traffic, fetches: np.ndarray) -> Traffic:
    """Counts with `instruction_fetches` in the first bin, and as a tensor called `CODE`."""
    if not fetches.any():
        return traffic
    timeline = traffic.timeline.copy()
    timeline[0] += fetches
    by_tensor = np.concatenate([traffic.by_tensor, fetches[None]])
    return replace(traffic, timeline=timeline, by_tensor=by_tensor, tensors=(*traffic.tensors, CODE))
