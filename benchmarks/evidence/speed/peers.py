"""Independent cache simulators on the stream of one XCD, each through its fastest public interface."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from xcd_model import Cache, Gpu, Trace
from xcd_model.cache.locate import _locate
from xcd_model.cache.packed import index_of, machine_of, stream_of
from xcd_model.compiled.numba_setup import njit
from xcd_model.dispatch import _next_instruction, slots_of

CHUNK_LINES = 1 << 20


@njit(cache=True)
def _walk(stream, machine, order, slots, xcd, lines):
    """Fill ``lines`` with what one XCD touches, turn by turn and slot by slot; return how many there are."""
    n, idle = 0, False
    while not idle:
        idle = True
        for slot in range(machine.slots):
            at = _next_instruction(stream.start, machine, order, slots, xcd, slot)
            if at < 0:
                continue
            idle = False
            template = stream.template[at]
            for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
                lines[n] = stream.base[at] + stream.rel[entry]
                n += 1
                if n == lines.size:
                    return n
    return n


def stream_of_xcd(trace: Trace, gpu: Gpu, xcd: int, n_lines: int, workgroups_per_cu: int = 1) -> np.ndarray:
    """First lines that reach the L2 of one XCD in lockstep, dispatched in order, with no L1 before it; int64."""
    plain = machine_of(gpu, trace.highest_line, programs=0, pools=0, local=0, steals=False)
    machine = plain._replace(slots=gpu.cus_per_xcd * workgroups_per_cu)
    lines = np.empty(min(n_lines, trace.n_touches), np.int64)
    n = _walk(stream_of(trace, gpu, plain), machine, np.arange(trace.n_workgroups), slots_of(machine), xcd, lines)
    return lines[:n]


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


def pycachesim(lines: np.ndarray, cache: Cache, clock: Callable[[], float] = time.perf_counter) -> tuple[float, int]:
    """Seconds of a clock and hits of RRZE-HPC/pycachesim; making the lists it wants is not timed."""
    import cachesim

    memory = cachesim.MainMemory()
    level = cachesim.Cache("L2", cache.sets, cache.ways, cache.line_bytes, "LRU")
    memory.load_to(level)
    memory.store_from(level)
    cachesim.CacheSimulator(level, memory)
    seconds = 0.0
    for chunk in _chunks(lines, cache):
        began = clock()
        level.backend.iterload(chunk, length=1)
        seconds += clock() - began
    return seconds, int(level.stats()["HIT_count"])


@functools.lru_cache(maxsize=1)
def _compiled() -> Path:
    """``lru.cpp`` beside this file, compiled for this machine; raises FileNotFoundError where there is no g++."""
    program = Path(tempfile.mkdtemp()) / "lru"
    atexit.register(shutil.rmtree, program.parent, ignore_errors=True)
    source = Path(__file__).with_name("lru.cpp")
    subprocess.run(["g++", "-O3", "-march=native", "-o", str(program), str(source)], check=True)
    return program


def plain_lru(lines: np.ndarray, cache: Cache) -> tuple[float, int]:
    """CPU seconds and hits of ``lru.cpp``, of 16 ways; lines are renamed beforehand for the cache's index."""
    renamed = lines.copy()
    _renumber(renamed, index_of(cache, int(lines.max())))
    with tempfile.NamedTemporaryFile(suffix=".lines") as file:
        renamed.astype(np.uint32).tofile(file.name)
        command = [str(_compiled()), file.name, str(cache.sets)]
        hits, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(hits)


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
