"""A trace and a GPU as the compiled replays read them: arrays and numbers.

instruction i touches lines  base[i] + rel[rel_start[t] .. rel_start[t + 1] - 1]   with t = template[i]
workgroup   w issues instructions  start[w] .. start[w + 1] - 1

A cache is words, see `xcd_model.cache.locate`; or, where no set is the place of more lines than it has ways, so that
nothing is evicted and a line hits from its second touch on, a bit for each line. 256 MiB of an Infinity Cache hold all
that most kernels read; its words are 8 MiB on the host, its bits a thirty-second of that, which stay in the host's L2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import DIRTY_BITS, HOST_SETS, MARK_BITS
from xcd_model.compiled.by_reference import by_reference
from xcd_model.errors import TraceError
from xcd_model.spec.caches import Index, hash_table
from xcd_model.spec.gpu import Cache, Gpu
from xcd_model.trace.trace import Trace

HOST_LINE_BYTES = 64
BITS = 32  # of a word
SLACK = 64  # words, behind those of a cache: as many as the longest vector of `xcd_model.fast.lru_simd`
NO_L1, BY_TILE, BY_LINE = range(3)  # how the L1s are replayed, see `xcd_model.replay.through_l1`


@by_reference
class Stream(NamedTuple):
    """A trace as the compiled replays read it, in the GPU's request sizes.

    Of templates: ``is_write``, ``requests`` (to the L2, with every line missing the L1), ``waves`` (to the L1),
    ``passes`` (through the L1's port), ``tensor``. Of entries: ``marks`` (see
    `xcd_model.cache.locate`), ``pieces`` (read requests of the line), ``wave_requests``.
    ``set_weight`` is (l2_sets,): how many sets each L2 set stands for. For L1s by tile ``block`` is (n_instructions,),
    one number for tiles of the same lines, and ``tile_lines, tile_requests`` are (n_templates, l1_sets): lines and L2
    requests of a tile.
    ``tensor_lines`` is (n_tensors, 2): first line and the one after the last; ``only_read`` (n_tensors,) bool: no
    instruction stores to it, and the L2 fetches its lines whole. ``multicast`` is (n_instructions,) bool, empty without
    clusters. ``fills_l1`` is (n_templates,) bool: whether a template has as many lines of each L1 set as that has ways.
    """

    start: np.ndarray
    base: np.ndarray
    template: np.ndarray
    rel_start: np.ndarray
    rel: np.ndarray
    marks: np.ndarray
    pieces: np.ndarray
    wave_requests: np.ndarray
    is_write: np.ndarray
    requests: np.ndarray
    waves: np.ndarray
    passes: np.ndarray
    tensor: np.ndarray
    set_weight: np.ndarray
    block: np.ndarray
    tile_lines: np.ndarray
    tile_requests: np.ndarray
    tensor_lines: np.ndarray
    only_read: np.ndarray
    multicast: np.ndarray
    fills_l1: np.ndarray


@by_reference
class Machine(NamedTuple):
    """The numbers of a GPU and a launch that the compiled replays read; a cache that is absent has 0 sets.

    ``run`` is the number of consecutive ids that an XCD gets (`xcd_model.dispatch.run_of`); ``programs`` is the number
    of persistent programs, or 0 where each workgroup computes one tile; ``pools``, ``local`` and ``steals`` are those
    of their `xcd_model.trace.claims.Claims`, 0 without; ``cluster`` is the number of workgroups that are dispatched
    together, 1 without clusters. Of a partitioned L2 (`xcd_model.nvidia.memory`) ``coherence_mask`` picks the bits of a
    line's number whose parity is its point of coherence, and ``partition_of`` (cus,) is the partition of each CU; of
    any other L2 0 and empty. ``mall_has_room``: the Infinity Cache evicts nothing of what is read (`has_room`).
    """

    xcds: int
    cus: int
    slots: int
    offset: int
    run: int
    programs: int
    pools: int
    local: int
    steals: bool
    cluster: int
    l1_mode: int
    l1: Index
    l1_ways: int
    l2: Index
    l2_ways: int
    coherence_mask: int
    partition_of: np.ndarray
    mall: Index
    mall_ways: int
    mall_has_room: bool


@by_reference
class Inputs(NamedTuple):
    """What a replay in lockstep reads and never writes; ``order`` is (n_workgroups,) int64, a permutation."""

    stream: Stream
    machine: Machine
    order: np.ndarray


def machine_of(gpu: Gpu, highest_line: int, *, programs: int, pools: int, local: int, steals: bool) -> Machine:
    """Numbers of a GPU for the compiled replays, with one slot a CU and the L1 replayed line by line."""
    return Machine(
        xcds=gpu.xcds,
        cus=gpu.cus_per_xcd,
        slots=gpu.cus_per_xcd,
        offset=gpu.dispatch_offset,
        run=1,
        programs=programs,
        pools=pools,
        local=local,
        steals=steals,
        cluster=1,
        l1_mode=BY_LINE if gpu.l1 else NO_L1,
        l1=index_of(gpu.l1, highest_line),
        l1_ways=gpu.l1.ways if gpu.l1 else 0,
        l2=index_of(gpu.l2, highest_line),
        l2_ways=gpu.l2.ways,
        coherence_mask=gpu.l2_partitions.coherence_bits // gpu.l2.line_bytes if gpu.l2_partitions else 0,
        partition_of=gpu.l2_partitions.partition_of(gpu.cus_per_xcd) if gpu.l2_partitions else np.zeros(0, np.int64),
        mall=index_of(gpu.mall, highest_line),
        mall_ways=gpu.mall.ways if gpu.mall else 0,
        mall_has_room=False,
    )


def stream_of(trace: Trace, gpu: Gpu, machine: Machine) -> Stream:
    """A whole trace for the compiled replays; tiles are left empty."""
    none = np.zeros((0, 0), np.int16)
    only_read = np.full(len(trace.tensors), not gpu.l2.fetches_halves)
    only_read[trace.tensor[trace.is_write]] = False
    return Stream(
        start=trace.start,
        base=trace.base,
        template=trace.template,
        rel_start=trace.rel_start,
        rel=trace.rel,
        marks=trace.written_pieces(gpu.l2.write_request_bytes) | (trace.fills(gpu.l2.fetch_bytes) << DIRTY_BITS),
        pieces=trace.read_pieces(gpu.l2.read_request_bytes),
        wave_requests=trace.wave_requests,
        is_write=trace.is_write,
        requests=trace.requests_per_template(gpu.l2.read_request_bytes, gpu.l2.write_request_bytes).astype(np.int32),
        waves=trace.requests_of_waves.astype(np.int32),
        passes=trace.l1_passes if gpu.l1 and gpu.l1.by_bank else trace.requests_of_waves,
        tensor=trace.tensor,
        set_weight=np.ones(machine.l2.n_sets, np.int64),
        block=np.zeros(0, np.int32),
        tile_lines=none,
        tile_requests=none,
        tensor_lines=np.array([(t.base_line, t.base_line + t.n_lines) for t in trace.tensors], np.int64),
        only_read=only_read,
        multicast=np.zeros(0, np.bool_),
        fills_l1=_fills(trace, machine.l1, machine.l1_ways),
    )


def _fills(trace: Trace, index: Index, ways: int) -> np.ndarray:
    """(n_templates,) bool: whether a template has ``ways`` lines of each set, wherever it begins."""
    if index.n_sets == 0 or index.mask < 0 or index.hash.size:  # then its base says which line lies in which set
        return np.zeros(trace.is_write.size, np.bool_)
    first = np.repeat(np.arange(trace.is_write.size) * index.n_sets, trace.entries_per_template)
    lines = np.bincount(first + (trace.rel & index.mask), minlength=trace.is_write.size * index.n_sets)
    return lines.reshape(-1, index.n_sets).min(axis=1) >= ways


def check_tags(highest_line: int, cache: Cache, name: str, *, mark_bits: int = MARK_BITS) -> None:
    """Refuse a trace whose tags would not fit a word."""
    max_tag = (1 << (32 - mark_bits)) - 2
    if highest_line // cache.sets > max_tag:
        limit = max_tag * cache.sets * cache.line_bytes
        raise TraceError(
            f"line {highest_line} does not fit the tags of {name}: the model addresses {limit} B there; use smaller "
            "tensors"
        )


def index_of(cache: Cache | None, highest_line: int) -> Index:
    """Index function of a cache for lines up to ``highest_line``; no sets at all where there is no cache."""
    none = np.zeros(0, np.int64)
    if cache is None:
        return Index(0, 0, 0, none)
    n_sets = cache.sets
    if n_sets & (n_sets - 1):
        return Index(n_sets, -1, -1, none)
    shift = n_sets.bit_length() - 1
    rows = cache.line_rows()
    return Index(n_sets, n_sets - 1, shift, hash_table(rows, (highest_line >> shift) + 1) if rows else none)


def words_of(index: Index, ways: int) -> int:
    """Words of a cache: as many rows as its sets, or more (`xcd_model.cache.locate._spread`)."""
    return -(-index.n_sets // HOST_SETS) * HOST_SETS * ways


def aligned_words(n_words: int) -> np.ndarray:
    """Empty cache words whose first starts a line of the host's cache, with the slack of a vector behind the last.

    Where a set of 16 words starts a host line, a look-up costs one of them; a vector of a set may reach past the end.
    """
    step = HOST_LINE_BYTES // 4
    words = np.zeros(n_words + step + SLACK, np.uint32)
    skip = -(words.ctypes.data // 4) % step
    return words[skip : skip + n_words]


def has_room(index: Index, ways: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether every set has a way for each line in it of some spans, (first, end), that share no line."""
    sets = index.n_sets
    spans = list(spans)
    if sum(end - first for first, end in spans) > sets * ways:
        return False
    lines = np.zeros(sets, np.int64)
    for first, end in spans:
        for tag in range(first // sets, -(-end // sets)):
            low = np.arange(max(first, tag * sets), min(end, (tag + 1) * sets)) - tag * sets
            lines[low ^ index.hash[tag] if index.hash.size else low] += 1  # each set once
    return bool(lines.max(initial=0) <= ways)


def bits_of(spans: Iterable[tuple[int, int]]) -> np.ndarray:
    """Words of a bit for each line up to the end of the last span: none touched yet."""
    return np.zeros(-(-max(end for _, end in spans) // BITS), np.uint32)
