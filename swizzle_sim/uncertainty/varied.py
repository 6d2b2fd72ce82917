"""A scorer under other constants: one draw, applied."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from swizzle_sim.scoring import Scorer
from swizzle_sim.uncertainty.constants import Setting
from xcd_model import Cache, Gpu
from xcd_model.errors import SpecError
from xcd_model.spec.facts import Range

Settings = Mapping[str, Setting]
HASHED_BITS = 38  # address bits that a drawn hash reads: beyond any tensor


def varied(scorer: Scorer, settings: Settings) -> Scorer:
    """Return a scorer of the same kernel with other constants; the trace is shared, so the line size must stay.

    Parameters
    ----------
    scorer : Scorer
    settings : mapping of str to number, bool or str
        By key of `Constant`; ``seed`` is of the timed replay: speeds of workgroups, and jitter.
    """
    trace, resources = scorer.trace, scorer.kernel.resources
    in_flight = int(settings.get("instructions_in_flight", resources.instructions_in_flight))
    kernel = replace(
        scorer.kernel,
        build_trace=lambda line_bytes: trace,
        resources=replace(resources, instructions_in_flight=in_flight),
    )
    made = Scorer(
        kernel,
        changed(scorer.gpu, settings),
        replay=scorer.replay,
        seed=int(settings.get("seed", scorer.seed)),
        jitter_ns=float(settings.get("jitter_ns", scorer.jitter_ns)),
    )
    most = made.gpu.limits.workgroups_per_cu
    made.occupancy = min(int(settings.get("workgroups_per_cu", scorer.occupancy)), most)
    return made


def changed(gpu: Gpu, settings: Settings) -> Gpu:
    """GPU under the settings that are its own.

    Raises
    ------
    SpecError
        If a value breaks a rule of the description.
    """
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
    """Part of a GPU with other constants; of one that has a range, another value in it.

    Raises
    ------
    SpecError
        If a value breaks a rule of the part.
    """
    changed = dict(values)
    for name, value in values.items():
        held = getattr(part, name)
        if isinstance(held, Range):
            try:
                changed[name] = replace(held, value=value)
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
    """Fields of an index in words: ``modulo``, ``channel-fold 256`` (bytes), ``xor 1`` or ``low-bits 1`` (seed)."""
    name, _, detail = words.partition(" ")
    fields: dict[str, Any] = {"index": name, "index_channels": None, "index_interleave_bytes": None, "index_rows": None}
    if name == "channel-fold":
        fields |= {"index_channels": min(16, level.sets), "index_interleave_bytes": int(detail)}
    elif name in ("xor", "low-bits"):
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

    The bits are those of a line of 128 B. Source: decision 0031, the column "256 B, bit 13".
    """
    rng = random.Random(seed)
    line, inside = level.line_bytes.bit_length() - 1, level.sets.bit_length() - 1 - 4
    channel = [1 << line + 1, 1 << line + 2, 1 << line + 3, 1 << line + 4 | 1 << line + 6]
    low, *others = (1 << bit for bit in (line, *range(line + 5, HASHED_BITS)))
    named, upper = [low, *others[: inside - 1]], others[inside - 1 :]
    return (*channel, *(bit | sum(rng.getrandbits(1) * at for at in upper) for bit in named))
