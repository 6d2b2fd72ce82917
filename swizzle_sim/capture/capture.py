"""`capture`: a Triton launch to its trace, with no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swizzle_sim.capture.memory import AddressSpace, check_memory
from swizzle_sim.capture.process import OnProgress, worker_reply
from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.launch import Launch
from xcd_model import Trace
from xcd_model.errors import CaptureError

LINE_BYTES = 128  # of all GPUs that are modelled


@dataclass(frozen=True, eq=False)
class Captured:
    """A trace and how it was come by."""

    launch: Launch
    trace: Trace
    triton: str  # version that interpreted the kernel
    how: str
    checked: tuple[int, ...]  # workgroups whose lines were compared with real interpretation
    n_paths: int | None  # control-flow paths that the workgroups take; None where all were interpreted
    # operations of the matrix products of all workgroups by type, see `swizzle_sim.capture.language`
    flops: dict[str, float]
    dependencies: dict[str, str]  # digest of each of the user's files that the kernel was loaded with


def capture(launch: Launch, **options: Any) -> Captured:
    """Capture one launch; see `capture_each` for the options. Raises its error."""
    return capture_all([launch], **options)[0]


def capture_all(launches: Sequence[Launch], **options: Any) -> list[Captured]:
    """As `capture_each`; raises the first error."""
    found = capture_each(launches, **options)
    for one in found:
        if isinstance(one, CaptureError):
            raise one
    return [one for one in found if isinstance(one, Captured)]


def capture_each(
    launches: Sequence[Launch],
    *,
    line_bytes: int = LINE_BYTES,
    full: bool = False,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> list[Captured | CaptureError]:
    """Capture launches, all in one process."""
    for launch in launches:
        Grid(launch.grid)  # refuses what no hardware launches
    request = {
        "verb": "capture",
        "launches": [launch.as_dict() for launch in launches],
        "line_bytes": line_bytes,
        "full": full,
        "seed": seed,
    }
    inputs = {f"inputs-{i}": _inputs(launch, full, seed) for i, launch in enumerate(launches)}
    with worker_reply(request, {key: value for key, value in inputs.items() if value}, on_progress) as (reply, folder):
        found: list[Captured | CaptureError] = []
        for i, (launch, item) in enumerate(zip(launches, reply["items"], strict=True)):
            if "error" in item:
                found.append(CaptureError(item["error"]["message"], code=item["error"]["code"]))
                continue
            tensors = AddressSpace.place(launch.storage).tensors(line_bytes)
            with np.load(folder / f"trace-{i}.npz") as arrays:
                trace = Trace(line_bytes=line_bytes, tensors=tensors, **dict(arrays))
            how = "interpreted" if full else "followed"
            counted = {"n_paths": item["paths"], "flops": item["flops"], "checked": tuple(item["checked"])}
            of = {"triton": reply["triton"], "how": how, "dependencies": reply["dependencies"]}
            found.append(Captured(launch, trace, **of, **counted))
        return found


def _inputs(launch: Launch, full: bool, seed: int) -> dict[str, np.ndarray]:
    wanted = {name for name, array in launch.storage.items() if array.is_index or (full and array.role != "out")}
    if not wanted:
        return {}
    check_memory([(name, array.n_items * array.item_bytes) for name, array in launch.storage.items() if name in wanted])
    made = launch.make_inputs(seed)
    return {name: np.asarray(made[name]) for name in wanted if name in made}
