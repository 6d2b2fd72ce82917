"""``swizzle-sim lab calibrate``: constants of the GPU of this machine, measured, as its description.

    calibrate.cpp -- nvcc or hipcc --> program -- runs --> CSV lines -- `facts` --> the GPU's TOML, status measured

What a document says is left alone and compared; what was assumed, fitted or measured elsewhere is replaced. The set
index of the L2 follows from how many lines it keeps at each stride: functions that keep others are refuted.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from swizzle_sim.uncertainty.perturbed_scorer import index_of
from xcd_model import Gpu
from xcd_model.cache.packed import index_of as compiled_index
from xcd_model.errors import HardwareError
from xcd_model.spec.caches import Cache

COMPILERS = {"nvcc": ("-arch=native", "-x", "cu"), "hipcc": ("-x", "hip")}
INDICES = ("as described", "modulo", "channel-fold 128", "channel-fold 256", "low-bits 1", "xor 1")
TIMEOUT_S = 600
LOST = 0.15  # part of the way from the latency of a hit to that of a miss, from which a ring counts as not kept


class Measured(NamedTuple):
    """One constant of a GPU as it was measured, by its dotted key in the description."""

    key: str
    value: float | int
    how: str


Lines = Mapping[tuple[str, str], list[tuple[int, int, float]]]  # (what, unit): two parameters and the value


def source() -> Path:
    """The program, for CUDA and HIP alike."""
    return Path(str(resources.files("swizzle_sim.hardware").joinpath("files/calibrate.cpp")))


def compile_program(out: Path, *options: str) -> list[str]:
    """Compile the program with the compiler that is here; return the command."""
    name = next((name for name in COMPILERS if shutil.which(name)), None)
    if name is None:
        raise HardwareError("calibrate: neither nvcc nor hipcc is on the PATH: CUDA's or ROCm's compiler is needed")
    words = [name, "-O3", "-std=c++17", *options, *COMPILERS[name], "-o", str(out), str(source())]
    amd = {"HIP_PLATFORM": "amd"} if name == "hipcc" else {}  # which must not take itself for nvcc's front end
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **amd})
    if done.returncode:
        raise HardwareError(f"calibrate: {name} failed: {done.stderr.strip()[-400:]}")
    return words


def measure() -> str:
    """Compile and run the program on this machine's first GPU; return the CSV that it prints."""
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "calibrate"
        compile_program(program)
        try:
            done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise HardwareError(f"calibrate: the program ran for over {TIMEOUT_S} s and was stopped") from None
    if done.returncode:
        raise HardwareError(f"calibrate: the program failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def read(text: str) -> tuple[str, Lines]:
    """Name of the GPU and the measured lines of a CSV that the program printed."""
    found: dict[tuple[str, str], list[tuple[int, int, float]]] = {}
    name = ""
    try:
        for line in csv.DictReader(text.splitlines()):
            if line["what"] == "name":
                name = line["value"]
            else:
                entry = (int(line["first"]), int(line["second"]), float(line["value"]))
                found.setdefault((line["what"], line["unit"]), []).append(entry)
    except (KeyError, TypeError, ValueError) as error:
        raise HardwareError(f"calibrate: not what the program prints ({error})") from None
    if not name or ("latency past the L1", "ns") not in found:
        raise HardwareError("calibrate: not what the program prints: no name of a GPU, or no latencies")
    return name, found


def facts(lines: Lines, gpu: Gpu) -> list[Measured]:
    """Constants that the lines give, by the keys of a GPU's description."""
    l2, key = _latency(lines, gpu.l2.size_bytes // 8, gpu.l2.size_bytes // 2), "latency past the L1"
    pairs = zip(lines[key, "cycles"], lines[key, "ns"], strict=True)
    clock = median(c[2] / ns[2] for c, ns in pairs if ns[0] * ns[1] <= gpu.l2.size_bytes // 2)  # [GHz]
    last = gpu.mall.size_bytes if gpu.mall else gpu.l2.size_bytes * (2 if gpu.l2_partitions else gpu.xcds)
    gap = "from one workgroup to the next"
    mib = f"pointer chase over {4 * last >> 20} to {8 * last >> 20} MiB"
    chased = "cycles over nanoseconds of a pointer chase in the L2"
    succeeded = "median from the last clock of a workgroup to the first of its successor"
    found = [
        Measured("clock_mhz", round(1000 * clock), chased),
        Measured("l2.latency_ns", l2, "pointer chase over an eighth to half of the L2"),
        Measured("hbm.latency_ns", _latency(lines, 4 * last, 8 * last), mib),
        Measured("hbm.bandwidth_gbps", round(lines["copied", "GB/s"][0][2]), "copy, read plus written"),
        Measured("limits.workgroup_gap_ns", round(lines[gap, "cycles"][0][2] / clock, 1), succeeded),
        Measured("dispatch_offset", _xcds(lines)[0], "XCD of workgroup 0"),
    ]
    if gpu.l1:
        low = min(ns for n, stride, ns in lines["latency through the L1", "ns"] if n * stride <= gpu.l1.size_bytes // 2)
        found.append(Measured("l1.latency_ns", round(low, 1), "pointer chase over up to half of the L1"))
    if gpu.mall:
        wide = _latency(lines, 8 * gpu.l2.size_bytes, gpu.mall.size_bytes // 2)
        found.append(Measured("mall.latency_ns", wide, "pointer chase beyond the L2"))
    if gpu.hbm_rows:
        for what, key in (("read", "read_ps"), ("written", "write_ps")):
            ps = next(v for first, _, v in lines[f"{what} in random order", "ps"] if first == 64)
            found.append(Measured(f"hbm_rows.{key}", round(ps, 1), "64 B in random order over 4 GiB"))
    return found


def _latency(lines: Lines, low: int, high: int) -> float:
    """Median nanoseconds of the rings between two sizes [bytes]."""
    what = "latency past the L1"
    values = [value for n, stride, value in lines[what, "ns"] if low <= n * stride <= high]
    if not values:
        raise HardwareError(f"calibrate: no {what} was measured between {low} and {high} B")
    return round(median(values), 1)


def _xcds(lines: Lines) -> list[int]:
    """XCD of each of the first workgroups."""
    return [int(value) for _, _, value in sorted(lines["dispatched to", "XCD"])]


def is_round_robin(lines: Lines) -> bool | None:
    """Whether workgroup ``w`` came to XCD ``(w + offset) mod n``; None where there is one XCD."""
    seen = _xcds(lines)
    n = max(seen) + 1
    return None if n == 1 else all(xcd == (w + seen[0]) % n for w, xcd in enumerate(seen))


def lines_kept(lines: Lines, gpu: Gpu) -> dict[int, int]:
    """Stride [bytes] -> most lines, a power of two, that the L2 keeps, where one ring was too long for it."""
    hit = _latency(lines, gpu.l2.size_bytes // 8, gpu.l2.size_bytes // 2)
    miss = _latency(lines, 4 * gpu.l2.size_bytes, 8 * gpu.l2.size_bytes)
    found: dict[int, int] = {}
    for n, stride, ns in sorted(lines["ring past the L1", "ns"], key=lambda one: (one[1], one[0])):
        if ns > hit + LOST * (miss - hit):
            found.setdefault(stride, n // 2)
    return found


def would_keep(cache: Cache, stride: int, most: int) -> int:
    """Lines at a stride, a power of two, that an LRU cache with this index keeps all of."""
    n = 8
    while n <= most:
        line = np.arange(n, dtype=np.int64) * (stride // cache.line_bytes)
        index = compiled_index(cache, int(line[-1]))
        tag, low = np.divmod(line, index.n_sets)
        place = low ^ index.hash[tag] if index.hash.size else low
        if np.bincount(place).max() > cache.ways:
            break
        n *= 2
    return n // 2


def indices(lines: Lines, gpu: Gpu) -> dict[str, int]:
    """Of the strides at which the L2 was seen to lose lines, at how many each index function keeps as many."""
    kept = lines_kept(lines, gpu)
    found = {}
    for words in INDICES:
        cache = gpu.l2 if words == "as described" else replace(gpu.l2, **index_of(gpu.l2, words))
        found[words] = sum(would_keep(cache, stride, 2 * n) == n for stride, n in kept.items())
    return found


def description(gpu_text: str, name: str, measured: Iterable[Measured], gpu: Gpu) -> str:
    """Text of a GPU's TOML with what was measured in the place of what was assumed, fitted or measured elsewhere.

    What the file takes from its ``base`` is added to it.
    """
    left: dict[str, dict[str, str]] = {}  # by section, then key: lines that are not written yet
    for one in measured:
        fact, (section, _, key) = gpu.facts.get(one.key), one.key.rpartition(".")
        if fact and fact.status != "documented":
            how = f"{one.how}; swizzle-sim lab calibrate on {name}; {fact.value} before ({fact.status})"
            value = json.dumps(float(one.value) if isinstance(fact.value, float) else one.value)
            line = f'{key} = {{ value = {value}, status = "measured", source = {json.dumps(how)} }}'
            left.setdefault(section, {})[key] = line
    # a text, then name and text of each section
    parts = re.split(r"^\[(.+)\]\s*$", gpu_text.rstrip(), flags=re.MULTILINE)
    out = []
    for section, text in zip(["", *parts[1::2]], parts[::2], strict=True):
        own, lines = left.pop(section, {}), text.strip("\n").splitlines()
        lines = [own.pop(line.partition("=")[0].strip(), line) for line in lines]
        end = max((i for i, line in enumerate(lines, start=1) if "=" in line.partition("#")[0]), default=0)
        lines[end:end] = own.values()  # before the comment of the next section
        out.append("\n".join([*([f"[{section}]"] if section else []), *lines]))
    out += ["\n".join([f"[{section}]", *own.values()]) for section, own in left.items()]
    return "\n\n".join(out) + "\n"


def compared(measured: Iterable[Measured], gpu: Gpu) -> list[dict[str, Any]]:
    """Each constant beside the one that is described, with the difference in percent of it."""
    rows = []
    for one in measured:
        fact = gpu.facts.get(one.key)
        before = fact.value if fact else None
        off = 100 * (one.value / before - 1) if before else None
        status = fact.status if fact else "absent"
        rows.append({"key": one.key, "measured": one.value, "described": before, "status": status, "percent": off})
    return rows
