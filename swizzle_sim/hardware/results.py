"""Results of a node: read, checked against the bundle they name, stored with the run."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.hardware.measurement import Measurement, measurement_of
from swizzle_sim.hardware.node.machine import check_machine
from swizzle_sim.hardware.node.manifest import FORMAT, MANIFEST, Refused, identity
from xcd_model.errors import HardwareError
from xcd_model.files import read_text

BUNDLES = "bundles"
MEASUREMENTS = "measurements"
SAME = {  # of a result and its bundle, with the code of the refusal where they differ
    **{"kernel": "other-kernel", "source_sha256": "other-kernel", "problem": "other-size", "gpu": "other-gpu"},
    **{"bundle": "other-bundle"},
}
NEEDED = ("format", "bundle", "kernel", "problem", "source_sha256", "gpu", "kind", "machine", "candidates")


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


def keep_bundle(run: Path, manifest: Mapping[str, Any]) -> Path:
    """Note in a run that a bundle was made of it."""
    return _keep(run / BUNDLES, manifest)


def keep_result(run: Path, result: Mapping[str, Any]) -> Path:
    """Store a result with its run; one of the same bundle is replaced."""
    return _keep(run / MEASUREMENTS, result)


@of_kinds("the document to keep")
def _keep(folder: Path, document: Mapping[str, Any]) -> Path:
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
