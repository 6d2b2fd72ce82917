"""Independent cache simulators on the stream of one XCD, each through its fastest public interface."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xcd_model import Cache, Gpu, Trace, xcd_of
from xcd_model.cache.lru import _locate, index_of
from xcd_model.numba_setup import njit

CHUNK_LINES = 1 << 20


def stream_of_xcd(trace: Trace, gpu: Gpu, xcd: int, n_lines: int) -> np.ndarray:
    """First lines that reach the L2 of one XCD in lockstep, dispatched in order, one workgroup a CU.

    Raises
    ------
    ValueError
        If workgroups differ in length: then a slot is not refilled when all the others are.
    """
    lengths = np.unique(np.diff(trace.start))
    if lengths.size > 1:
        raise ValueError("the benchmark's stream needs workgroups of equal length")
    mine = np.flatnonzero(xcd_of(trace.n_workgroups, gpu) == xcd)
    parts, have = [], 0
    for first in range(0, mine.size, gpu.cus_per_xcd):
        for step in range(int(lengths[0])):
            for instruction in trace.start[mine[first : first + gpu.cus_per_xcd]] + step:
                at = trace.template[instruction]
                parts.append(trace.base[instruction] + trace.rel[trace.rel_start[at] : trace.rel_start[at + 1]])
                have += parts[-1].size
            if have >= n_lines:
                return np.concatenate(parts)[:n_lines]
    return np.concatenate(parts)


@njit(cache=True)
def _renumber(lines, index):
    """Rename each line in place so that plain modulo finds its set."""
    for i in range(lines.size):
        at, tag = _locate(lines[i], index)
        lines[i] = tag * index.n_sets + at


def _chunks(lines: np.ndarray, cache: Cache) -> Iterator[list[int]]:
    index = index_of(cache, int(lines.max()))
    for first in range(0, lines.size, CHUNK_LINES):
        chunk = lines[first : first + CHUNK_LINES].copy()
        _renumber(chunk, index)
        yield (chunk * cache.line_bytes).tolist()


def pycachesim(lines: np.ndarray, cache: Cache) -> tuple[float, int]:
    """Seconds and hits of RRZE-HPC/pycachesim; making the lists it wants is not timed."""
    import cachesim

    memory = cachesim.MainMemory()
    level = cachesim.Cache("L2", cache.sets, cache.ways, cache.line_bytes, "LRU")
    memory.load_to(level)
    memory.store_from(level)
    cachesim.CacheSimulator(level, memory)
    seconds = 0.0
    for chunk in _chunks(lines, cache):
        began = time.perf_counter()
        level.backend.iterload(chunk, length=1)
        seconds += time.perf_counter() - began
    return seconds, int(level.stats()["HIT_count"])


def libcachesim(lines: np.ndarray, n_lines: int) -> tuple[float, int]:
    """Seconds and hits of libCacheSim: fully associative LRU of ``n_lines``, from a binary file, all in C."""
    import libcachesim as peer

    record = np.zeros(
        lines.size, np.dtype([("time", "<u4"), ("line", "<u8"), ("size", "<u4"), ("next", "<i8")], align=False)
    )
    record["line"], record["size"], record["next"] = lines + 1, 1, -1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.oracleGeneral.bin"
        record.tofile(path)
        reader = peer.TraceReader(str(path), peer.TraceType.ORACLE_GENERAL_TRACE)
        cache = peer.LRU(n_lines)
        began = time.perf_counter()
        miss_ratio, _ = cache.process_trace(reader)
        seconds = time.perf_counter() - began
    return seconds, round((1 - miss_ratio) * lines.size)
