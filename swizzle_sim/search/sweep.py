"""Sweeps: points (a kernel at a size, on a GPU, with swizzles), their scores, and the sizes where a swizzle hurts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from swizzle_sim.capture.process import triton_version
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.recorded import kernel_at
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import CompileError, LanguageError, NotBijective, SearchError, SwizzleSimError, UnknownName

MOST_POINTS = 10_000
FIGURES = ("l2_hit_rate", "mall_hit_rate", "hbm_read_bytes", "hbm_write_bytes", "time_us", "bound_l2_hit_rate")
FORMS = "1024,2048, or low..high, or low..high step n, or powers low..high"


@dataclass(frozen=True)
class Hurt:
    """A size where a swizzle has a lower L2 hit rate than the launch order, by so many points."""

    at: str
    swizzle: str
    points: float


def read_sizes(text: str) -> list[int]:
    """Read ``1024,2048`` or ``1024..16384 step 1024`` or ``powers 1024..16384``."""
    from swizzle_sim.search.templates.template import read_values  # noqa: PLC0415  (a cycle through the package otherwise)

    written = " ".join(text.split())
    listed = written if ".." in written or written[:1] in tuple("{[") else f"{{{written}}}"
    try:
        return list(read_values(listed, FORMS))
    except ValueError as rule:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise LanguageError(str(rule), filename=f"--values {shown!r}", code="parameter") from None


def size_points(
    work: Kernel,
    gpu: Gpu,
    swizzles: Sequence[Swizzle],
    over: Sequence[str],
    values: Sequence[int],
    replay: str,
    *,
    compile: bool = False,
) -> list[dict[str, Any]]:
    """Points of a sweep in which all sizes of ``over`` take the same value."""
    for name in over:
        if name not in work.problem:
            raise UnknownName(f"size of kernel {work.name}", name, work.problem)
    if work.file.endswith(".npz"):
        raise SearchError(f"{work.name} is a recorded trace of one size: it cannot be swept over sizes", code="sweep")
    if not over or len(values) > MOST_POINTS:
        raise SearchError(f"{len(values)} sizes of {len(over)} names: a sweep has up to {MOST_POINTS}", code="sweep")
    sizes = [{**work.problem, **dict.fromkeys(over, v)} for v in values]
    return [point_of(work, gpu, swizzles, replay, one, compile=compile) for one in sizes]


def hurts(labels: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Hurt]:
    """Sizes where a swizzle loses hit rate, worst first."""
    found = []
    for label, row in zip(labels, rows, strict=True):
        for name, score in row["swizzles"].items():
            if row["launched"] is not None and "error" not in score:
                lost = 100 * (row["launched"]["l2_hit_rate"] - score["l2_hit_rate"])
                found += [Hurt(label, name, lost)] if lost > 0 else []
    return sorted(found, key=lambda one: -one.points)


def point_of(
    work: Kernel,
    gpu: Gpu,
    swizzles: Sequence[Swizzle],
    replay: str,
    problem: Mapping[str, int] | None = None,
    *,
    compile: bool = False,
) -> dict[str, Any]:
    """Point of a sweep, JSON-ready."""
    return {
        "kernel": work.file or work.name,
        "is_file": bool(work.file),
        "problem": dict(work.problem if problem is None else problem),
        "gpu": gpu.as_dict(),
        "swizzles": [[one.name or f"candidate {i + 1}", one.source] for i, one in enumerate(swizzles)],
        "replay": replay,
        **({"compile": compiler()} if compile else {}),  # stored sweeps of earlier versions go on without
    }


def compiler() -> str | bool:
    """Triton that compiles, by which a stored row is known too; True where there is none."""
    try:
        return triton_version()
    except CompileError:
        return True


def evaluate(point: Mapping[str, Any], scored: Callable[[Scorer, Swizzle], Score] = Scorer.score) -> dict[str, Any]:
    """Scores of a point, in any process."""
    try:
        scorer = scorer_of(point)
        launched = _figures(scorer.baseline)
    except SwizzleSimError as error:
        return {"launched": None, "swizzles": {}, "error": str(error)}
    found: dict[str, Any] = {}
    for name, source in point["swizzles"]:
        try:
            found[name] = _figures(scored(scorer, Swizzle.parse(source, name=name)))
        except (NotBijective, LanguageError) as error:
            found[name] = {"error": str(error)}
    return {"launched": launched, "swizzles": found, "error": ""}


def scorer_of(point: Mapping[str, Any]) -> Scorer:
    """Scorer of a point, kept in the process for the next one."""
    known = point["kernel"], _text(point["problem"]), _text(point["gpu"]), point["replay"]
    return _scorer(*known, point.get("compile", False))


def _figures(score: Score) -> dict[str, Any]:
    values = score.as_dict()
    return {key: values[key] for key in FIGURES}


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


@lru_cache(maxsize=2)
def _scorer(name: str, problem: str, gpu: str, replay: str, compile: bool) -> Scorer:
    device = Gpu.from_dict(json.loads(gpu))
    work = kernel_at(name, json.loads(problem), device.arch)
    if compile:
        from swizzle_sim.capture.occupancy import compiled_for  # noqa: PLC0415

        work = compiled_for(work, device)
    return Scorer(work, device, replay=replay)
