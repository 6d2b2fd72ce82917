"""`scored`: predictions that were registered by their hash before anybody ran them, against a run of their bundles.

    predicted.json    what is predicted: a figure of an order of a launch; its SHA-256 is in ``registered.toml``
    NN-kernel/        a bundle for each launch, named by its digest in predicted.json
    run.py            runs the bundles one after the other, on a node that has nothing else

So a prediction can be changed neither after a run nor in it: the file has the hash, and the file names the bundles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

from swizzle_sim.hardware.node.manifest import MANIFEST
from swizzle_sim.hardware.results import Measurement, check_result, measurements_of, of_kinds, read_json, read_result
from xcd_model.errors import HardwareError
from xcd_model.spec.load import tomllib

PREDICTED = "predicted.json"
RESULT = "result.json"
# Figures, and the error from which a prediction is a miss: points of 100, relative, relative.
FIGURES = {"l2_hit_rate": 0.05, "read_bytes": 0.2, "time_ratio": 0.05}


@dataclass(frozen=True)
class Outcome:
    """One prediction and what was measured of it."""

    bundle: str
    order: str
    figure: str  # one of `FIGURES`
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Of a rate predicted less measured, of anything else relative."""
        gap = self.predicted - self.measured
        return gap if self.figure == "l2_hit_rate" else gap / self.measured


@dataclass(frozen=True)
class Registered:
    """A run of registered predictions: what was measured of them, and how many were not."""

    name: str
    kind: str  # ``measured`` or ``replayed``
    predictions: int
    outcomes: tuple[Outcome, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Of each figure how many were measured, how many came true, and the median error."""
        found = []
        for figure, most in FIGURES.items():
            errors = [abs(one.error) for one in self.outcomes if one.figure == figure]
            true = sum(error <= most for error in errors)
            middle = median(errors) if errors else None
            found.append(
                {"figure": figure, "measured": len(errors), "within": most, "true": true, "median_error": middle}
            )
        return found


def names() -> dict[str, str]:
    """Name of each registered set of predictions by its SHA-256."""
    text = resources.files("swizzle_sim.hardware").joinpath("registered.toml").read_text(encoding="utf-8")
    return {one["sha256"]: one["name"] for one in tomllib.loads(text).get("set", ())}


def scored(folder: Path) -> Registered:
    """Outcomes of the registered predictions in a folder whose bundles were run, all or some of them."""
    path = folder / PREDICTED
    document, digest = read_json(path), hashlib.sha256(path.read_bytes()).hexdigest()
    if digest not in names():
        known = ", ".join(f"{name} {sha[:12]}" for sha, name in names().items()) or "none yet"
        raise HardwareError(
            f"{path}: SHA-256 {digest[:12]} is no registered set of predictions ({known}): take the file as published",
            code="other-bundle",
        )
    with of_kinds(str(path)):
        by_bundle: dict[str, list[Mapping[str, Any]]] = {}
        for one in document["predictions"]:
            by_bundle.setdefault(str(one["bundle"]), []).append(one)
        found, kinds = [], set()
        for bundle, predictions in by_bundle.items():
            if (folder / bundle / RESULT).is_file():
                kind, outcomes = _outcomes(folder / bundle, str(document["bundles"][bundle]), predictions)
                kinds.add(kind)
                found += outcomes
    kind = "measured" if kinds == {"measured"} else "replayed"
    return Registered(names()[digest], kind, len(document["predictions"]), tuple(found))


def _outcomes(folder: Path, digest: str, predictions: Sequence[Mapping[str, Any]]) -> tuple[str, list[Outcome]]:
    """Whether a bundle's result was measured, and outcomes of its predictions that it holds a figure of."""
    manifest, result = read_json(folder / MANIFEST), read_result(folder / RESULT)
    if manifest["bundle"] != digest:
        raise HardwareError(f"{folder}: not the bundle of the predictions ({digest[:12]})", code="other-bundle")
    check_result(result, manifest)
    measured = {one.candidate: one for one in measurements_of(result)}
    launched = next(iter(measured.values()))
    found = []
    for one in predictions:
        value = _value(str(one["figure"]), measured.get(str(one["candidate"])), launched)
        if value is not None:
            found.append(Outcome(folder.name, str(one["order"]), str(one["figure"]), float(one["value"]), value))
    return str(result["kind"]), found


def _value(figure: str, one: Measurement | None, launched: Measurement) -> float | None:
    """Measured figure; None where it was not, or where the outputs were wrong."""
    if one is None or one.right in ("differs", "failed"):
        return None
    if figure == "time_ratio":
        return one.time_cold_us / launched.time_cold_us if one.time_cold_us and launched.time_cold_us else None
    value = {"l2_hit_rate": one.l2_hit_rate, "read_bytes": one.read_bytes}[figure]
    return value or None
