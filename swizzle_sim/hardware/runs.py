"""Bundles and agreements of a run folder."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from swizzle_sim.hardware.agreement import Agreement, agreement
from swizzle_sim.hardware.bundle import Finalist, Origin, make_bundle
from swizzle_sim.hardware.node.manifest import digest
from swizzle_sim.hardware.results import BUNDLES, keep, pairs_in
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.history import FILE, History
from swizzle_sim.search.ranking import ranking_of
from swizzle_sim.search.recorded import recorded_gpu, recorded_kernel
from swizzle_sim.workload.kernels import Kernel, kernel, kernel_names
from xcd_model import gpu
from xcd_model.errors import HardwareError

ORIGINAL_SOURCE = "kernel_original.py"


def bundle_run(run: Path, top: int, folder: Path, *, seed: int = 0, **how: Any) -> dict[str, Any]:
    """Bundle the best candidates of a run as `make_bundle` does, and note it in the run."""
    with History(run) as history:
        about, attempts = history.about, list(history)
    best = [one for one in ranking_of(about, run).order(attempts) if one.number != 0][:top]
    finalists = [Finalist(name=one.name, source=one.source, number=one.number, score=one.score) for one in best]
    baseline = next((one.score for one in attempts if one.number == 0), None)
    manifest = make_bundle(
        recorded_kernel(about),
        recorded_gpu(about),
        finalists,
        folder,
        baseline=baseline,
        origin=Origin(run=run.name if run.is_absolute() else str(run), replay=about["replay"], seed=seed),
        **how,
    )
    keep(run / BUNDLES, manifest)
    return manifest


def agreements_in(where: Path, replay: str | None = None) -> list[Agreement]:
    """Agreement of every result in a run folder or a bundle folder."""
    found = []
    for manifest, result in pairs_in(where):
        other = replay is not None and replay != manifest["replay"]
        used = {**manifest, "replay": replay or manifest["replay"]}
        if other:
            used["candidates"] = [{**one, "predicted": None} for one in manifest["candidates"]]
        found.append(agreement(used, result, predictor(where, used)))
    return found


def predictor(where: Path, manifest: Mapping[str, Any]) -> Callable[[str | None], Mapping[str, Any]]:
    """Simulated figures of an order, for candidates without a prediction in their bundle."""

    @cache
    def scorer() -> Scorer:
        run = next((one for one in (where, Path(manifest["run"] or where)) if (one / FILE).is_file()), None)
        if run is not None:
            with History(run) as history:
                about = history.about
            workload, device = recorded_kernel(about), recorded_gpu(about)
        else:
            workload, device = _bundled_kernel(where, manifest), gpu(manifest["gpu"]["name"])
        if device.xcds != manifest["gpu"]["xcds"]:
            raise HardwareError(
                f"{device.name} has {device.xcds} XCDs, the bundle is for {manifest['gpu']['xcds']}", code="other-gpu"
            )
        return Scorer(workload, device, replay=manifest["replay"])

    def predict(source: str | None) -> Mapping[str, Any]:
        score = scorer().score(Swizzle.parse(source or family("identity")))
        return {"kind": "simulated", **score.as_dict()}

    return predict


def _bundled_kernel(where: Path, manifest: Mapping[str, Any]) -> Kernel:
    """Kernel of a bundle of no run here: the registry's if the bundle holds its source, else the bundle's own."""
    name, problem = manifest["kernel"], manifest["problem"]
    source = where / ORIGINAL_SOURCE
    if name in kernel_names():
        launch = kernel(name).launch
        if launch is None or digest(launch.path.read_bytes()) == manifest["source_sha256"]:
            return kernel(name, **problem)
    declared = _declared(source, manifest["function"])
    if declared is None:
        return kernel(name, **problem)
    from swizzle_sim.capture.user_kernel import load  # noqa: PLC0415

    return load(f"{source}:{declared}", problem, gpu(manifest["gpu"]["name"]).arch)


def _declared(source: Path, function: str) -> str | None:
    """Variable that ``Kernel(function, ...)`` is assigned to in a user's file."""
    if not source.is_file():
        return None
    for node in ast.parse(source.read_bytes()).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not node.value.args:
            continue
        called, first = (ast.unparse(part) for part in (node.value.func, node.value.args[0]))
        if called.split(".")[-1] == "Kernel" and first == function and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    return None
