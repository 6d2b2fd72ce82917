"""Predictions of measured rows, cached on disk: a change of code or constants replays only the rows that it touches."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pkgutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import swizzle_sim.language
from swizzle_sim.base.disk_cache import DiskCache
from swizzle_sim.base.progress import Progress
from swizzle_sim.uncertainty.perturbed_scorer import with_constants
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.errors import SpecError, UnknownName

from .quantities import QUANTITIES
from .rows import Row
from .sources import digest_of, kernel_modules
from .variants import VARIANTS, Counts, predict


def read_sets(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read ``gpu.key=value`` words; values are JSON, or text where they are none."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        name, _, value = word.partition("=")
        device, _, key = name.partition(".")
        if not value or not key:
            raise SpecError(f"{word!r}: write GPU.KEY=VALUE, such as mi300x.hbm.latency_ns=400")
        if device not in gpu_names():
            raise UnknownName("GPU", device, gpu_names())
        _check_key(gpu(device), key)
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        found.setdefault(device, {})[key] = tuple(parsed) if isinstance(parsed, list) else parsed
    return found


def overridden(gpu: Gpu, values: Mapping[str, Any]) -> Gpu:
    """GPU with other constants, by dotted key such as ``l2.latency_ns``."""
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        _check_key(gpu, key)
        part, _, name = key.rpartition(".")
        parts.setdefault(part, {})[name] = value
    own = parts.pop("", {})
    changed = {part: with_constants(getattr(gpu, part), inner) for part, inner in parts.items()}
    return dataclasses.replace(gpu, **own, **changed)


def _check_key(gpu: Gpu, key: str) -> None:
    """Refuse a key that names no constant of a GPU or of one of its parts."""
    part, _, name = key.rpartition(".")
    parts = {f.name: held for f in dataclasses.fields(gpu) if dataclasses.is_dataclass(held := getattr(gpu, f.name))}
    if part and part not in parts:
        raise UnknownName(f"part of {gpu.name}", part, parts)
    known = [f.name for f in dataclasses.fields(parts[part] if part else gpu)]
    if name not in known:
        raise UnknownName(f"constant of {part or gpu.name}", name, known)


Job = tuple[Row, str, Gpu]
MODEL = (
    *("swizzle_sim.pricing.replaying", "swizzle_sim.workload.kernels", predict.__module__),
    *(found.name for found in pkgutil.walk_packages(swizzle_sim.language.__path__, "swizzle_sim.language.")),
)
NOT_PHYSICAL = ("name", "title", "facts", "arch", "partition", "memory_mode")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A row, the variant it was predicted under, and the value; None where the variant has no such quantity."""

    row: Row
    variant: str
    value: float | None
    counts: Mapping[str, Any] = field(hash=False)

    @property
    def error(self) -> float | None:
        """Predicted minus measured, in points or in percent of the measured value."""
        if self.value is None:
            return None
        gap = self.value - self.row.measured
        if not QUANTITIES[self.row.quantity].relative:
            return gap
        return 100 * gap / self.row.measured if self.row.measured else None


def cache() -> DiskCache:
    """Store of predictions: in ``SWIZZLE_SIM_FIDELITY_CACHE``, or the user's cache folder."""
    folder = os.environ.get("SWIZZLE_SIM_FIDELITY_CACHE")
    return DiskCache("fidelity", Path(folder) if folder else None)


def predict_all(
    rows: Sequence[Row],
    variants: Sequence[str],
    *,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    processes: int | None = None,
    again: bool = False,
) -> list[Prediction]:
    """Predict rows under variants, several processes at a time; what is on disk is not replayed again."""
    for variant in variants:
        if variant not in VARIANTS:
            raise UnknownName("variant", variant, VARIANTS)
    names = {row.gpu for row in rows}
    for name in (overrides or {}).keys() - names:
        raise SpecError(f"{name}: a constant for it, and none of the {len(rows)} rows is of that GPU")
    devices = {name: overridden(gpu(name), (overrides or {}).get(name, {})) for name in names}
    jobs: dict[str, Job] = {}
    keys = {}
    for variant in variants:
        for row in rows:
            key = keys[row.id, variant] = key_of(row, variant, devices[row.gpu])
            jobs.setdefault(key, (row, variant, devices[row.gpu]))
    store = cache()
    found = {} if again else {key: counts for key in jobs if (counts := store.get(key)) is not None}
    missing = {key: job for key, job in jobs.items() if key not in found}
    found.update(_run(missing, processes or os.cpu_count() or 1))
    return [
        Prediction(
            row=row,
            variant=variant,
            value=QUANTITIES[row.quantity].of(found[keys[row.id, variant]]),
            counts=found[keys[row.id, variant]],
        )
        for variant in variants
        for row in rows
    ]


def key_of(row: Row, variant: str, device: Gpu) -> str:
    """Digest of all that a prediction depends on; rows that differ in quantity alone share it."""
    physical = {f.name: getattr(device, f.name) for f in fields(device) if f.name not in NOT_PHYSICAL}
    parts = {
        "kernel": row.kernel,
        "problem": dict(row.problem),
        "resources": dict(row.resources),
        "order": row.mapping or row.order,
        "variant": variant,
        "gpu": {name: _plain(value) for name, value in physical.items()},
        "code": digest_of(*MODEL, *kernel_modules(row.kernel)),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return dict(value) if isinstance(value, Mapping) else value


def _run(jobs: Mapping[str, Job], processes: int) -> dict[str, Counts]:
    """Replay what is missing; orders of one workload go to one process, so that its plan is built once."""
    queues: dict[str, list[tuple[str, Job]]] = {}
    for key, job in jobs.items():
        queues.setdefault(f"{job[0].workload}|{job[1]}", []).append((key, job))
    longest_first = sorted(queues.values(), key=len, reverse=True)
    found: dict[str, Counts] = {}
    with Progress("fidelity", "replays") as progress:
        if processes == 1 or len(queues) <= 1:
            for key, job in (one for queue in longest_first for one in queue):
                found[key] = _one(key, job)
                progress(len(found), len(jobs))
            return found
        with ProcessPoolExecutor(min(processes, len(queues))) as pool:
            try:
                for future in as_completed([pool.submit(_queue, queue) for queue in longest_first]):
                    found.update(future.result())
                    progress(len(found), len(jobs))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return found


def _queue(jobs: list[tuple[str, Job]]) -> dict[str, Counts]:
    return {key: _one(key, job) for key, job in jobs}


def _one(key: str, job: Job) -> Counts:
    """Predict one row and cache the counts at once: an interrupt loses only what is being replayed."""
    row, variant, device = job
    counts = {"row": row.id, "variant": variant, **predict(row, variant, device)}
    cache().put(key, counts)
    return counts
