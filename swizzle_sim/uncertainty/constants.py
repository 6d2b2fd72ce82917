"""`Constant`: one number of the model that may be another, its plausible range (``ranges.toml``), and draws of many."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from xcd_model import Gpu, Resources, workgroups_per_cu
from xcd_model.errors import ReplayError
from xcd_model.spec.facts import Range
from xcd_model.spec.load import tomllib

NO_RANGE = "no range is known for it: taken as exact"
Setting = float | int | bool | str
# Keys, and ends of keys, of rates and latencies: in the lockstep replay they change times and no count.
RATES = (
    *("clock_mhz", "sustained_clock_mhz", "compute_spread", "peak_tflops", "fabric_bytes_per_cycle"),
    *("instructions_in_flight", "limits.reads_in_flight_per_cu", "limits.workgroup_gap_ns", "hbm.turnaround_ns"),
    *("l2_partitions.remote_ns", "l2_partitions.reads_as_one", "l2_partitions.under_way", "energy.power_w"),
    *("limits.matrix_beside_vector", "limits.copy_ns", "limits.products_before_loads"),
    *("limits.scalar_cycles", "limits.scalar_wait_cycles"),
)
RATE_ENDS = ("latency_ns", "bytes_per_cycle", "bandwidth_gbps")


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One constant and its plausible range."""

    # dotted key of the GPU's description, or ``workgroups_per_cu``, ``instructions_in_flight`` or ``jitter_ns``
    key: str
    status: str  # of the fact, such as ``fitted``; ``run`` for a constant that is no fact of the GPU
    value: Setting  # in use
    low: float | None = None  # ends of the range, in the unit of the key; None where there are ``choices``
    high: float | None = None
    choices: tuple[Setting, ...] = ()  # alternatives to the value in use
    reason: str  # why the range is plausible

    def at(self, share: float) -> Setting:
        """Setting at a fraction of the range, in [0, 1); choices and the value in use have equal parts of it."""
        if self.low is None or self.high is None:
            every = (self.value, *self.choices)
            return every[min(int(share * len(every)), len(every) - 1)]
        return self._whole(self.low + share * (self.high - self.low))

    def ends(self) -> tuple[Setting, ...]:
        """Both ends of the range, or every choice; without the value in use."""
        if self.low is None or self.high is None:
            return self.choices
        return tuple(end for end in dict.fromkeys((self._whole(self.low), self._whole(self.high))) if end != self.value)

    def _whole(self, number: float) -> Setting:
        return max(1, round(number)) if isinstance(self.value, int) else number

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        span = {"low": self.low, "high": self.high} if self.low is not None else {"choices": list(self.choices)}
        return {"key": self.key, "status": self.status, "value": self.value, **span, "reason": self.reason}


@cache
def _ranges() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("swizzle_sim.uncertainty").joinpath("ranges.toml").read_text(encoding="utf-8"))


def constants_of(gpu: Gpu, resources: Resources, *, jitter_ns: float = 0.0) -> list[Constant]:
    """Constants of a GPU and a compiled kernel that have a plausible range."""
    run = {"instructions_in_flight": resources.instructions_in_flight, "jitter_ns": jitter_ns}
    found: dict[str, Constant] = {}
    for entry in _ranges()["range"]:
        key = entry["key"]
        if key in found or not gpu.arch.startswith(entry.get("arch", "")):
            continue
        if key == "workgroups_per_cu":
            made: Constant | None = _occupancy(entry, gpu, resources)
        else:
            made = _of_run(entry, run[key]) if key in run else _of_gpu(entry, gpu)
        if made is not None and made.ends():
            found[key] = made
    return list(found.values())


def _of_run(entry: Mapping[str, Any], value: float) -> Constant:
    low, high = entry["between"] if "between" in entry else [factor * value for factor in entry["times"]]
    return Constant(key=entry["key"], status="run", value=value, low=low, high=high, reason=entry["reason"])


def _occupancy(entry: Mapping[str, Any], gpu: Gpu, resources: Resources) -> Constant:
    """Workgroups a CU holds if the compiler takes so many times the registers and LDS."""
    value, choices = workgroups_per_cu(resources, gpu), []
    for factor in entry["resources"]:
        vgprs, lds_bytes = (round(factor * each) for each in (resources.vgprs, resources.lds_bytes))
        with contextlib.suppress(ReplayError):  # too large for a CU: the compiler would spill instead
            choices.append(workgroups_per_cu(replace(resources, vgprs=vgprs, lds_bytes=lds_bytes), gpu))
    others = tuple(dict.fromkeys(choice for choice in choices if choice != value))
    return Constant(key=entry["key"], status="run", value=value, choices=others, reason=entry["reason"])


def _of_gpu(entry: Mapping[str, Any], gpu: Gpu) -> Constant | None:
    key = entry["key"]
    value = value_of(gpu, key)
    status = _status(gpu, key)
    if value is None or not _fits(entry, status):
        return None
    about: dict[str, Any] = {"key": key, "status": status, "value": value, "reason": entry["reason"]}
    if isinstance(value, Range):
        return Constant(**about | {"value": value.value, "low": value.low, "high": value.high})
    if "choices" in entry:
        named = {"half": gpu.xcds // 2}
        choices = dict.fromkeys(named.get(choice, choice) for choice in entry["choices"])
        return Constant(**about, choices=tuple(choice for choice in choices if choice != value))
    low, high = (factor * value for factor in entry[status])
    if key == "hbm.bandwidth_gbps":
        high = min(high, gpu.hbm.peak_bandwidth_gbps)
    return Constant(**about, low=low, high=max(low, high))


def value_of(gpu: Gpu, key: str) -> Any:
    """Value in use of a dotted key; None where the GPU lacks the level. An index is one word, such as `xor given`."""
    part, _, name = key.rpartition(".")
    holder: Any = getattr(gpu, part) if part else gpu
    if holder is None:
        return None
    if name == "index":
        piece = {"channel-fold": str(holder.index_interleave_bytes), "xor": "given"}.get(holder.index, "")
        return f"{holder.index} {piece}".strip()
    return 1.0 if key == "peak_tflops" else getattr(holder, name)


def _fits(entry: Mapping[str, Any], status: str) -> bool:
    return status in entry or status in entry.get("statuses", ())


def _status(gpu: Gpu, key: str) -> str:
    known = (fact.status for name, fact in gpu.facts.items() if name == key or name.startswith(f"{key}."))
    return next(known, "assumed")


def held_facts(gpu: Gpu) -> dict[str, str]:
    """Undocumented facts that are not varied, each with the reason, or `NO_RANGE` without one."""
    ranged = {
        entry["key"]
        for entry in _ranges()["range"]
        if gpu.arch.startswith(entry.get("arch", "")) and _fits(entry, _status(gpu, entry["key"]))
    }
    rules = _ranges()["held"].items()
    return {
        key: next((why for rule, why in rules if fnmatch(key, rule)), NO_RANGE)
        for key, fact in gpu.facts.items()
        if fact.status != "documented" and key not in ranged
    }


def drawn_constants(scorer: Scorer) -> list[Constant]:
    """Constants that a scorer's replay reads and that have a range."""
    found = constants_of(scorer.gpu, scorer.kernel.resources, jitter_ns=scorer.jitter_ns)
    idle = set() if scorer.replay == "timed" else {"jitter_ns"}
    if scorer.kernel.launches == 1:
        idle.add("mall.kept_between_launches")
    if not scorer.kernel.vector_ops or scorer.kernel.resources.burst_loads:
        idle.add("limits.matrix_beside_vector")
    return [constant for constant in found if constant.key not in idle]


def counting_settings(scorer: Scorer, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings that may change a count: all of them in the timed replay."""
    if scorer.replay == "timed":
        return dict(settings)
    return {key: value for key, value in settings.items() if key not in RATES and not key.endswith(RATE_ENDS)}


def one_at_a_time(constants: Sequence[Constant]) -> Iterator[tuple[str, dict[str, Setting]]]:
    """Each constant alone at each end of its range: (key, settings)."""
    for constant in constants:
        for end in constant.ends():
            yield constant.key, {constant.key: end}


def latin_hypercube_settings(constants: Sequence[Constant], draws: int, seed: int) -> list[dict[str, Setting]]:
    """Settings of all constants together, from a seeded Latin hypercube.

    Source: McKay, Beckman and Conover, Technometrics 21(2), 1979 (Latin hypercube sampling).
    """
    rows = latin_hypercube(draws, len(constants), seed)
    found = [
        {constant.key: constant.at(float(share)) for constant, share in zip(constants, row, strict=True)}
        for row in rows
    ]
    for number, settings in enumerate(found):
        if "jitter_ns" in settings:
            settings["seed"] = seed + 1 + number
    return found


def latin_hypercube(draws: int, dimensions: int, seed: int) -> np.ndarray:
    """(draws, dimensions) float in [0, 1): one point in each of ``draws`` equal parts along every dimension.

    scipy's `qmc.LatinHypercube` draws other points for a seed, so that every published range would move.
    """
    rng = np.random.default_rng(seed)
    parts = np.array([rng.permutation(draws) for _ in range(dimensions)]).reshape(dimensions, draws).T
    return (parts + rng.random(parts.shape)) / max(1, draws)
