"""A scorer under other constants, and its replays, cached on disk.

A study that was interrupted goes on from the draws that are cached, and a longer one from those of a shorter.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

import xcd_model
from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.uncertainty.constants import Setting, counting_settings
from xcd_model import Cache, Gpu, Traffic
from xcd_model.errors import SpecError
from xcd_model.spec.facts import Range

Settings = Mapping[str, Setting]
Figures = Mapping[str, float | None]
OnReplay = Callable[[int, int], None]
QUANTITIES = ("l2_hit_rate", "mall_hit_rate", "l2_misses", "hbm_bytes", "time_us")
HASHED_BITS = 38  # address bits that a drawn hash reads: beyond any tensor
EXPERIMENT = Path(__file__).parents[1]  # the package swizzle_sim
MACHINE = Path(xcd_model.__file__).parent


def perturbed(scorer: Scorer, settings: Settings) -> Scorer:
    """Scorer of the same kernel under other constants; it shares the trace, so the line size must stay."""
    trace, resources = scorer.trace, scorer.kernel.resources
    in_flight = int(settings.get("instructions_in_flight", resources.instructions_in_flight))
    kernel = replace(
        scorer.kernel,
        build_trace=lambda line_bytes: trace,
        resources=replace(resources, instructions_in_flight=in_flight),
    )
    made = Scorer(
        kernel,
        perturbed_gpu(scorer.gpu, settings),
        replay=scorer.replay,
        seed=int(settings.get("seed", scorer.seed)),
        jitter_ns=float(settings.get("jitter_ns", scorer.jitter_ns)),
    )
    most = made.gpu.limits.workgroups_per_cu
    made.occupancy = min(int(settings.get("workgroups_per_cu", scorer.occupancy)), most)
    return made


def perturbed_gpu(gpu: Gpu, settings: Settings) -> Gpu:
    """GPU under those settings that are its own; other keys are ignored."""
    whole: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        part, _, name = key.rpartition(".")
        if part:
            parts.setdefault(part, {})[name] = value
        elif hasattr(gpu, key):
            whole[key] = value
    clock_mhz = whole.get("clock_mhz", gpu.clock_mhz)
    share = whole.get("peak_tflops", 1.0) * clock_mhz / gpu.clock_mhz  # the matrix cores follow the clock
    whole["peak_tflops"] = {dtype: tflops * share for dtype, tflops in gpu.peak_tflops.items()}
    whole["sustained_clock_mhz"] = min(whole.get("sustained_clock_mhz", gpu.sustained_clock_mhz), clock_mhz)
    for part, values in parts.items():
        level = getattr(gpu, part)
        whole[part] = _cache(level, values) if isinstance(level, Cache) else with_constants(level, values)
    return replace(gpu, **whole)


def with_constants(part: Any, values: Mapping[str, Any]) -> Any:
    """Part of a GPU with other constants; of one that has a range, another value in it."""
    changed = dict(values)
    for name, value in values.items():
        known = getattr(part, name)
        if isinstance(known, Range):
            try:
                changed[name] = replace(known, value=value)
            except SpecError as error:
                raise SpecError(f"{name}: {error}") from None
    return replace(part, **changed)


def _cache(level: Cache, values: dict[str, Any]) -> Cache:
    """A cache with other constants: ways bring their bytes along, an index all that belongs to it."""
    values = dict(values)
    if "ways" in values:
        values["size_bytes"] = level.sets * level.line_bytes * int(values["ways"])
    index = values.pop("index", None)
    if index is not None and index != "xor given":
        values |= index_of(level, str(index))
    return replace(level, **values)


def index_of(level: Cache, words: str) -> dict[str, Any]:
    """Fields of an index in words: ``modulo``, ``channel-fold 256`` (interleave bytes), ``xor 1``, ``low-bits 1``."""
    name, _, detail = words.partition(" ")
    fields: dict[str, Any] = {"index": name, "index_channels": None, "index_interleave_bytes": None, "index_rows": None}
    if name == "channel-fold":
        fields |= {"index_channels": min(16, level.sets), "index_interleave_bytes": int(detail)}
    elif name in ("xor", "low-bits"):  # by the seed of their draw
        rows = random_rows if name == "xor" else low_bit_rows
        fields |= {"index": "xor", "index_rows": rows(level, int(detail))}
    return fields


def random_rows(level: Cache, seed: int) -> tuple[int, ...]:
    """Rows of a hash of full rank: bit i of the set is address bit i of the line, XOR upper bits drawn by seed."""
    rng = random.Random(seed)
    line_bits, set_bits = level.line_bytes.bit_length() - 1, level.sets.bit_length() - 1
    upper = range(line_bits + set_bits, HASHED_BITS)
    return tuple(1 << line_bits + bit | sum(rng.getrandbits(1) << at for at in upper) for bit in range(set_bits))


def low_bit_rows(level: Cache, seed: int) -> tuple[int, ...]:
    """Rows whose four channel bits are address bits 8 to 11, bit 13 added to the last, and whose other bits are drawn.

    The bits are those of a line of 128 B. Source: laboratory/l2-index.md of the evidence, the column "256 B, bit 13".
    """
    rng = random.Random(seed)
    line, inside = level.line_bytes.bit_length() - 1, level.sets.bit_length() - 1 - 4
    channel = [1 << line + 1, 1 << line + 2, 1 << line + 3, 1 << line + 4 | 1 << line + 6]
    low, *others = (1 << bit for bit in (line, *range(line + 5, HASHED_BITS)))
    named, upper = [low, *others[: inside - 1]], others[inside - 1 :]
    return (*channel, *(bit | sum(rng.getrandbits(1) * at for at in upper) for bit in named))


def digest_of(scorer: Scorer, order: np.ndarray) -> str:
    """Digest of all that the figures of an order depend on but the settings: code, trace, GPU, replay and order."""
    kernel, trace = scorer.kernel, scorer.trace
    touched = (trace.start, trace.base, trace.template, trace.rel_start, trace.rel, trace.sectors, trace.is_write)
    gpu = {key: value for key, value in scorer.gpu.as_dict().items() if key not in ("facts", "name", "title")}
    about = (gpu, scorer.replay, scorer.seed, scorer.jitter_ns, scorer.occupancy, kernel.programs, kernel.launches)
    works = (kernel.dtype, kernel.issued_flops, kernel.vector_ops)
    launched = [repr(one) for one in (kernel.resources, kernel.claims, kernel.clusters)]
    arrays = (*touched, trace.wave_requests, np.asarray(order, np.int64))
    return key_of(about, works, launched, arrays=arrays, code=(MACHINE, EXPERIMENT))


def figures_of(traffic: Traffic, time_us: float) -> Figures:
    """Figures of one replay, by `QUANTITIES`."""
    mall = traffic.mall_hit_rate
    return {
        "l2_hit_rate": traffic.l2_hit_rate,
        "mall_hit_rate": None if math.isnan(mall) else mall,
        "l2_misses": traffic.l2_misses,
        "hbm_bytes": traffic.hbm_read_bytes + traffic.hbm_write_bytes,
        "time_us": time_us,
    }


def replay_draws(
    scorer: Scorer,
    orders: Sequence[np.ndarray],
    settings: Sequence[Settings],
    *,
    threads: int | None = None,
    on_replay: OnReplay | None = None,
) -> tuple[list[list[Figures]], int]:
    """Figures of every order under every setting, (settings, orders), and the number of replays made.

    Each is cached on disk as soon as it is there.
    """
    store, digests = DiskCache("uncertainty"), [digest_of(scorer, order) for order in orders]

    def key(digest: str, one: Settings) -> str:
        return f"{digest} {json.dumps(dict(one), sort_keys=True)}"

    found: list[list[Any]] = [[store.get(key(digest, one)) for digest in digests] for one in settings]
    groups: dict[str, list[int]] = {}
    for at, one in enumerate(settings):
        if None in found[at]:
            groups.setdefault(repr(sorted(counting_settings(scorer, one).items())), []).append(at)
    total, done = sum(map(len, groups.values())) * len(orders), 0
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            draws = [(group, _Draw(scorer, [settings[at] for at in group], len(orders))) for group in groups.values()]
            jobs = {
                pool.submit(draw.replay, order): (group, k) for group, draw in draws for k, order in enumerate(orders)
            }
            for job in as_completed(jobs):
                group, k = jobs[job]
                for at, figures in zip(group, job.result(), strict=True):
                    found[at][k] = figures
                    store.put(key(digests[k], settings[at]), dict(figures))
                done += len(group)
                if on_replay:
                    on_replay(done // len(orders), total // len(orders))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return found, len(groups) * len(orders)


class _Draw:
    """Settings of the same counts, and the scorer that replays the orders under them, while there are any left."""

    def __init__(self, scorer: Scorer, settings: Sequence[Settings], orders: int):
        self.scorer, self.settings, self.left = scorer, settings, orders
        self.lock, self.first = Lock(), scorer

    def replay(self, order: np.ndarray) -> list[Figures]:
        """Figures of an order under each of the settings."""
        with self.lock:
            if self.first is self.scorer:
                self.first = perturbed(self.scorer, self.settings[0])
                _ = self.first.plan, self.first.fetches  # once
        first, (_, *others) = self.first, self.settings
        timers = [first, *(perturbed(self.scorer, one) for one in others)]
        traffic = first.traffic(order)
        with self.lock:
            self.left -= 1
            self.first = self.first if self.left else self.scorer
        return [figures_of(traffic, timer.time(traffic).total_us) for timer in timers]
