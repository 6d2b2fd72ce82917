"""One kernel over sizes, as launched and under the same swizzles at each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.kernels import kernel
from swizzle_sim.swizzle import Swizzle, family
from swizzle_sim.tuning.jobs import FILE, PointStore, run_points
from swizzle_sim.tuning.sweep import evaluate, point_of
from xcd_model import gpu


def sweep(about: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Score ``about["swizzles"]``, family specifications, on ``about["kernel"]`` at each of ``about["problems"]``.

    Returns
    -------
    found : dict
        ``replay`` and ``rows``, as `swizzle_sim.tuning.sweep.evaluate` gives them, in the order of the problems.
    """
    device, swizzles = gpu(about["gpu"]), [Swizzle.parse(family(spec), name=spec) for spec in about["swizzles"]]
    points = [
        point_of(kernel(about["kernel"], **problem), device, swizzles, about["replay"]) for problem in about["problems"]
    ]
    with PointStore(folder, resume=(folder / FILE).exists()) as store:
        rows = run_points(
            points, evaluate, store, backend="serial",
            on_point=lambda point, row, done, total: say(f"size {done} of {total}"),
        )  # fmt: skip
    return {"replay": about["replay"], "rows": rows}
