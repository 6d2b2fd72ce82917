"""Points of a sweep: a kernel at a size, on a GPU, with swizzles; and their scores, in any process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from swizzle_sim.kernels import Kernel, kernel
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle
from xcd_model import Gpu
from xcd_model.errors import LanguageError, NotBijective, SwizzleSimError

KEPT = ("l2_hit_rate", "mall_hit_rate", "hbm_read_bytes", "hbm_write_bytes", "time_us", "bound_l2_hit_rate")


def point_of(
    work: Kernel, gpu: Gpu, swizzles: Sequence[Swizzle], replay: str, problem: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """A point, JSON-ready.

    Parameters
    ----------
    work : Kernel
    gpu : Gpu
    swizzles : sequence of Swizzle
        Besides the order as launched.
    replay : str
    problem : mapping of str to int, optional
        In place of the kernel's sizes.
    """
    return {
        "kernel": work.file or work.name,
        "is_file": bool(work.file),
        "problem": dict(work.problem if problem is None else problem),
        "gpu": gpu.as_dict(),
        "swizzles": [[one.name or f"candidate {i + 1}", one.source] for i, one in enumerate(swizzles)],
        "replay": replay,
    }


def evaluate(point: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of a point.

    Returns
    -------
    row : dict
        ``launched`` and ``swizzles``: the figures `KEPT` by name, or why there are none; ``error`` where the kernel or
        the GPU refuses the size.
    """
    try:
        scorer = _scorer(
            point["kernel"], point["is_file"], _text(point["problem"]), _text(point["gpu"]), point["replay"]
        )
        launched = _kept(scorer.baseline)
    except SwizzleSimError as error:
        return {"launched": None, "swizzles": {}, "error": str(error)}
    found: dict[str, Any] = {}
    for name, source in point["swizzles"]:
        try:
            found[name] = _kept(scorer.score(Swizzle.parse(source, name=name)))
        except (NotBijective, LanguageError) as error:
            found[name] = {"error": str(error)}
    return {"launched": launched, "swizzles": found, "error": ""}


def _kept(score: Any) -> dict[str, Any]:
    values = score.as_dict()
    return {key: values[key] for key in KEPT}


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


@lru_cache(maxsize=2)
def _scorer(name: str, is_file: bool, problem: str, gpu: str, replay: str) -> Scorer:
    device = Gpu.from_dict(json.loads(gpu))
    if is_file:
        from swizzle_sim.capture.user_kernel import load  # noqa: PLC0415

        return Scorer(load(name, json.loads(problem), device.arch), device, replay=replay)
    return Scorer(kernel(name, **json.loads(problem)), device, replay=replay)
