"""Results of a node: read, checked against the bundle they name, stored with the run; a `Measurement` a candidate."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.hardware.node.formulas import doubts_of, hit_rate, missing, quantities
from swizzle_sim.hardware.node.machine import check_machine
from swizzle_sim.hardware.node.manifest import FORMAT, MANIFEST, RIGHT, Refused, identity
from xcd_model.errors import HardwareError
from xcd_model.files import read_text

BUNDLES = "bundles"
MEASUREMENTS = "measurements"
SAME = {  # of a result and its bundle, with the code of the refusal where they differ
    **{"kernel": "other-kernel", "source_sha256": "other-kernel", "problem": "other-size", "gpu": "other-gpu"},
    **{"bundle": "other-bundle"},
}
NEEDED = ("format", "bundle", "kernel", "problem", "source_sha256", "gpu", "kind", "machine", "candidates")
KINDS = ("measured", "replayed")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Counts and times of one candidate on one GPU."""

    candidate: str  # its id in the bundle, and what the proposer called it
    name: str
    kind: str  # ``replayed``: from a stand-in or a recording; never to be reported as a measurement
    # one of `RIGHT`, ``differs``, ``failed`` or ``unchecked``: the worse of before and after timing
    right: str
    # 0 to 1. AMD: TCC_HIT over TCC_HIT + TCC_MISS, in requests. NVIDIA: of the sectors that SMs read.
    l2_hit_rate: float | None = None
    l2_hits: float | None = None  # requests (AMD), sectors read by SMs (NVIDIA)
    l2_misses: float | None = None
    # [bytes]: AMD: from and to the fabric, Infinity Cache hits among them. NVIDIA: from and to device memory.
    read_bytes: float | None = None
    write_bytes: float | None = None
    time_cold_us: float | None = None  # [us]: medians by GPU events
    time_warm_us: float | None = None
    # lowest and highest of the launches counted, by field; of the cold time the quartiles
    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # why a figure may not be what it seems

    def __post_init__(self):
        if self.kind not in KINDS:
            raise HardwareError(f"kind = {self.kind!r}: one of {', '.join(KINDS)}")


def measurement_of(candidate: str, entry: Mapping[str, Any], kind: str, arch: str) -> Measurement:
    """Measurement from a candidate's entry in a result."""
    counters = {name: one["value"] for name, one in entry.get("counters", {}).items()}
    counts = quantities(counters, arch)
    timing = entry.get("time_us", {})
    cold, warm = timing.get("cold"), timing.get("warm")
    passes = entry.get("passes", [])
    doubts = [*doubts_of(passes), *missing(counters, arch), *(note for one in passes for note in one["notes"])]
    return Measurement(
        candidate=candidate,
        name=entry["name"],
        kind=kind,
        right=_right(entry),
        l2_hit_rate=hit_rate(counts),
        **counts,
        time_cold_us=cold["median"] if cold else None,
        time_warm_us=warm["median"] if warm else None,
        spreads=spreads(passes, arch)
        | ({"time_cold_us": (cold["lower_quartile"], cold["upper_quartile"])} if cold else {}),
        doubts=tuple(dict.fromkeys(doubts)),
    )


def spreads(passes: Iterable[Mapping[str, Any]], arch: str) -> dict[str, tuple[float, float]]:
    """Lowest and highest of each quantity over launches."""
    found: dict[str, tuple[float, float]] = {}
    for launch in (launch for one in passes if one["state"] == "ok" for launch in one["dispatches"]):
        counts = quantities(launch["counters"], arch)
        for name, value in {**counts, "l2_hit_rate": hit_rate(counts)}.items():
            if value is not None:
                low, high = found.get(name, (value, value))
                found[name] = (min(low, value), max(high, value))
    return found


def _right(entry: Mapping[str, Any]) -> str:
    order = (*RIGHT, "unchecked", "differs", "failed")
    found = [entry.get(key, {}).get("how", "unchecked") for key in ("check_before", "check_after")]
    return max(found, key=order.index)


def read_json(path: Path) -> dict[str, Any]:
    """JSON document of a file."""
    try:
        found = json.loads(read_text(path), parse_constant=_finite, parse_float=_finite)
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read ({error.strerror})", code="format") from None
    except (ValueError, RecursionError) as error:
        raise HardwareError(f"{path}: no JSON ({error})", code="format") from None
    if not isinstance(found, dict):
        raise HardwareError(f"{path}: no JSON object", code="format")
    return found


def _finite(text: str) -> float:
    """Number of a JSON text, which may spell NaN and infinity though JSON has neither."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]} is no finite number")
    return value


@contextlib.contextmanager
def of_kinds(what: str) -> Iterator[None]:
    """Say in one line that a document holds a value of the wrong kind, or lacks one."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise HardwareError(f"{what}: a value is missing or of the wrong kind ({why})", code="format") from None


def read_result(path: Path) -> dict[str, Any]:
    """Result of a node, as ``confirm.py`` left it."""
    own = f"a profiler's own file: swizzle-sim lab counters {path}"
    if path.suffix != ".json":
        raise HardwareError(f"{path}: no result of confirm.py, which is JSON; {own}", code="format")
    found = read_json(path)
    missing = [key for key in NEEDED if key not in found]
    if missing:
        raise HardwareError(f"{path}: no result of confirm.py: it lacks {', '.join(missing)}; {own}", code="format")
    if found["format"] != FORMAT:
        raise HardwareError(
            f"{path}: result format {found['format']}, this version reads format {FORMAT}", code="other-bundle"
        )
    if found.get("refused"):
        raise HardwareError(f"{path}: the node did not confirm: {found['refused']}")
    return found


@of_kinds("the result, or its bundle's manifest")
def check_result(result: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Refuse a result that is not of this bundle, or not of the machine it is for."""
    if identity(manifest) != manifest["bundle"]:
        raise HardwareError(f"the manifest of bundle {manifest['bundle'][:12]} was changed", code="changed")
    for key, code in SAME.items():
        if result[key] != manifest[key]:
            raise HardwareError(f"the result's {key} is {result[key]}, the bundle's {manifest[key]}", code=code)
    if result["machine"]:
        try:
            check_machine(manifest["gpu"], result["machine"])
        except Refused as refusal:
            raise HardwareError(f"result of another GPU: {refusal}", code="other-gpu") from None
    wanted = {one["id"]: one["name"] for one in manifest["candidates"]}
    given = {key: entry.get("name") for key, entry in result["candidates"].items()}
    if given != wanted:
        raise HardwareError(f"the result's candidates are {given}, the bundle's {wanted}", code="changed")
    for key, entry in result["candidates"].items():
        if entry.get("check_before", {}).get("permutation") == "differs":
            raise HardwareError(
                f"{key} ({entry['name']}): the GPU computed other tiles than the bundle says", code="not-a-bijection"
            )


@of_kinds("the result")
def measurements_of(result: Mapping[str, Any]) -> list[Measurement]:
    """Measurement of each candidate, the launch order first."""
    arch = result["gpu"]["arch"]
    return [measurement_of(key, entry, result["kind"], arch) for key, entry in result["candidates"].items()]


@of_kinds("the document to keep")
def keep(folder: Path, document: Mapping[str, Any]) -> Path:
    """Store a manifest among the `BUNDLES` of a run, or a result among its `MEASUREMENTS`, in place of an older one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HardwareError(f"{folder}: cannot be made ({error.strerror})") from None
    path = folder / f"{document['bundle'][:16]}.json"
    write_whole(path, (json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
    return path


@of_kinds("the result, or a manifest beside it")
def manifest_for(result: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """Manifest that a result belongs to, from a run folder or a bundle folder."""
    if (where / MANIFEST).is_file():
        return read_json(where / MANIFEST)
    known = [read_json(path) for path in sorted((where / BUNDLES).glob("*.json"))]
    for manifest in known:
        if manifest["bundle"] == result["bundle"]:
            return manifest
    for manifest in known:
        check_result(result, manifest)  # says what differs
    raise HardwareError(f"{where}: no bundle was made of this run, and the folder is no bundle", code="other-bundle")


def pairs_in(where: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Manifest and result, checked, of everything measured in a run folder or a bundle folder."""
    paths = [where / "result.json"] if (where / MANIFEST).is_file() else sorted((where / MEASUREMENTS).glob("*.json"))
    found = []
    for path in paths:
        result = read_result(path)
        manifest = manifest_for(result, where)
        check_result(result, manifest)
        found.append((manifest, result))
    if not found:
        raise HardwareError(f"{where}: nothing measured here; swizzle-sim import brings a result in")
    return found
