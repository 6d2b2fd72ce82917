"""The manifest of a trace file, which somebody else may have written: every value that a command reads is checked.

A checksum says that a file is whole, not who wrote it; so a wrong type or a figure that cannot be is found here and
not by the compiled replays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import MAX_SIZE
from xcd_model import Resources
from xcd_model.errors import SizeError, TraceError

TEXTS = ("source", "how", "triton")
FACTS = ("name", "summary", "sharing", "dtype")
# Least and most of the figures of a compiled kernel: far beyond any GPU's, and far from the ends of an int64.
RESOURCES = {
    "threads": (1, 1 << 20),
    "vgprs": (0, 1 << 20),
    "lds_bytes": (0, 1 << 30),
    "instructions_in_flight": (1, 1 << 20),
    "code_bytes": (0, 1 << 40),
    "loads_per_step": (0, 1 << 20),
    "remap_instructions": (0, 1 << 20),
    "step_instructions": (0, 1 << 20),
    "step_cycles": (0, 1 << 30),
    "ahead_cycles": (0, 1 << 30),
    "burst_loads": (0, 1 << 10),
    "burst_cycles": (0, 1 << 30),
    "busy_cycles": (0, 1 << 30),
}
LATER = tuple(RESOURCES)[4:]  # not in files of earlier versions


def check_manifest(manifest: Mapping[str, Any], n_workgroups: int) -> None:
    """Hold a manifest against what a kernel is made of.

    Parameters
    ----------
    manifest : mapping
        As JSON has it.
    n_workgroups : int
        Of its trace.

    Raises
    ------
    TraceError
        Names the key, its value and the rule.
    """
    for key in TEXTS:
        _text(manifest, key)
    facts = _mapping(manifest, "facts")
    for key in FACTS:
        _text(facts, key)
    _sizes(facts.get("problem"), "facts.problem")
    for key in ("flops", *(key for key in ("issued_flops",) if key in facts)):
        flops = facts.get(key)
        if isinstance(flops, bool) or not isinstance(flops, int | float) or not 0 <= flops < math.inf:
            _refuse(f"facts.{key}", flops, "a number of at least 0")
    programs = _there(facts, "programs")
    if programs is not None:
        _integer(programs, "facts.programs", 1, MAX_SIZE)
    if "claims" in facts:
        claims = _mapping(facts, "claims")
        for key, least in (("pools", 1), ("local", 0)):
            _integer(claims.get(key), f"facts.claims.{key}", least, MAX_SIZE)
        if not isinstance(claims.get("steals", False), bool):
            _refuse("facts.claims.steals", claims["steals"], "true or false")
    _mapping(manifest, "launch")
    grid = _grid(manifest.get("grid"), _there(facts, "tiles"), "grid")
    if grid.num_pids != n_workgroups:
        _refuse("grid", str(grid), f"the trace has {n_workgroups} workgroups")
    grids = manifest.get("grids")
    if not isinstance(grids, list) or not all(isinstance(at, Mapping) for at in grids):
        _refuse("grids", grids, "a list of grids, each with its sizes")
    for at in grids:
        _grid(at.get("grid"), _there(at, "tiles"), "grids")
        _sizes(at.get("sizes"), "grids")
        _sizes(at.get("values", {}), "grids")
    _resources(_mapping(manifest, "resources"))


def _resources(resources: Mapping[str, Any]) -> None:
    """Figures of each architecture, or why it has none."""
    if "gfx942" not in resources:
        _refuse("resources", sorted(resources), "gfx942 is among them")
    for arch, found in resources.items():
        if not isinstance(found, Mapping):
            _refuse(f"resources.{arch}", found, "a mapping")
        if "error" in found:
            _text(found, "error")
            continue
        for key, (least, most) in RESOURCES.items():
            if key not in LATER or key in found:
                _integer(found.get(key), f"resources.{arch}.{key}", least, most)
        for key in ("after_products", "past_l1"):
            if not isinstance(found.get(key, False), bool):
                _refuse(f"resources.{arch}.{key}", found[key], "true or false")
        _text(found, "source")
        if extra := sorted(set(found) - set(Resources.__dataclass_fields__)):
            _refuse(f"resources.{arch}", extra, "unknown")


def _grid(sides: Any, tiles: Any, key: str) -> Grid:
    if not isinstance(sides, list) or not (tiles is None or (isinstance(tiles, list) and len(tiles) == 2)):
        _refuse(key, (sides, tiles), "a list of sides, and two counts of tiles or none")
    try:
        return Grid(tuple(sides), tuple(tiles) if tiles else None)
    except SizeError as error:
        raise TraceError(f"{key}: {error}") from None


def _sizes(sizes: Any, key: str) -> None:
    if not isinstance(sizes, Mapping):
        _refuse(key, sizes, "sizes by name")
    for name, value in sizes.items():
        _integer(value, f"{key}.{name}", -MAX_SIZE - 1, MAX_SIZE)


def _integer(value: Any, key: str, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        _refuse(key, value, f"an integer of {least} to {most}")


def _there(holder: Mapping[str, Any], key: str) -> Any:
    """A value that may be null, and is not left out."""
    if key not in holder:
        _refuse(key, "missing", "a value or null")
    return holder[key]


def _mapping(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if not isinstance(value, Mapping):
        _refuse(key, value, "a mapping")
    return value


def _text(holder: Mapping[str, Any], key: str) -> None:
    if not isinstance(holder.get(key), str):
        _refuse(key, holder.get(key), "a text")


def _refuse(key: str, value: Any, rule: str) -> NoReturn:
    raise TraceError(f"{key} = {repr(value)[:60]}: {rule}")
