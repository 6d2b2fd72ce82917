"""An autotuner's configurations as kernels, each captured and compiled; those of equal tiles share one capture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from swizzle_sim.capture.occupancy import compile_launch
from swizzle_sim.capture.process import OnProgress, shared_worker, worker_reply
from swizzle_sim.capture.user_kernel import inputs_of, kernel_of, name_of, request_of, stored_capture
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu, Trace, workgroups_per_cu
from xcd_model.errors import CaptureError, CompileError, ReplayError

COMPILED = ("num_warps", "num_stages", "options", "config")  # parts of a launch that a trace does not depend on


@dataclass(frozen=True, eq=False)
class Configuration:
    """One configuration of an autotuner."""

    place: int  # in the autotuner's list, from 0
    chosen: Mapping[str, Any]  # constants and compile options
    kernel: Kernel | None = None  # captured, with the resources of its compile; None where it is refused
    refused: str = ""  # why it is not scored: it does not compile, spills, does not fit a CU, or cannot be captured


def configurations(
    name: str, sizes: Mapping[str, int], gpu: Gpu, on_progress: OnProgress | None = None
) -> Iterator[Configuration]:
    """Yield the configurations that an autotuner would try at given sizes, each when it is ready."""
    request = request_of(name, sizes)
    if "config" in request:
        raise CaptureError(f"{name} names one configuration: leave out @{request['config']}", code="declaration")
    with shared_worker():
        with worker_reply({"verb": "configurations", **request}) as (reply, _):
            listed = reply["configurations"]
        if not listed:
            raise CaptureError(f"{reply['name']} has no autotuner, so no configurations", code="declaration")
        captured: dict[str, tuple[Trace, dict[str, Any]]] = {}
        for one in listed:
            yield _ready(one, request, gpu, captured, on_progress)


def _ready(
    one: Mapping[str, Any],
    request: Mapping[str, Any],
    gpu: Gpu,
    captured: dict[str, tuple[Trace, dict[str, Any]]],
    on_progress: OnProgress | None,
) -> Configuration:
    place = one["place"]
    if "error" in one:
        return Configuration(place, {}, refused=one["error"])
    launch, request = one["launch"], {**request, "config": place}
    chosen = {**launch["constexprs"], **launch.get("options", {})}
    chosen |= {key: launch[key] for key in ("num_warps", "num_stages")}
    same = json.dumps({key: value for key, value in launch.items() if key not in COMPILED}, sort_keys=True)
    try:
        compiled = compile_launch(Launch.from_dict(launch, inputs_of(request)), gpu.arch)
        if spilled := compiled.vgpr_spills + compiled.sgpr_spills:
            return Configuration(place, chosen, refused=f"spills {spilled} registers, whose cost is not modelled")
        workgroups_per_cu(compiled.resources, gpu)
        if same not in captured:
            captured[same] = stored_capture(request, on_progress, gpu.arch)
    except (CaptureError, CompileError, ReplayError) as error:
        return Configuration(place, chosen, refused=str(error))
    trace, manifest = captured[same]
    manifest = {**manifest, "launch": launch, "resources": {gpu.arch: asdict(compiled.resources)}}
    return Configuration(place, chosen, kernel_of(trace, manifest, gpu.arch, request, file=name_of(request)))
