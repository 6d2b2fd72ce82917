"""Figure 15: hit rate over problem sizes, with orders that are bijections at every one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.paper.formulas import FORMULAS
from benchmarks.paper.jobs import Job
from benchmarks.paper.published import SWEPT
from benchmarks.paper.searches import SCORES, suite_files
from benchmarks.paper.settings import GPU, Settings
from benchmarks.paper.sweeping import sweep
from swizzle_sim.kernels import kernel
from swizzle_sim.tuning.sweep import hurts

REPLAY = "timed"
LEAST = 0.05  # points: less is not called a loss
PRINTED = {"layer_norm": "6", "stencil_2d": "9"}  # figure that prints the kernel's formula
# Sizes of the public run scripts where they are known (rows x columns of layer norm are batch * sequence x hidden), and
# for GEMM and Smith-Waterman some between the powers of two: there a grid is no multiple of the XCDs.
SQUARES = {
    "smith_waterman": (512, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192),
    "stencil_2d": (512, 1024, 1536, 2048, 2560, 3072, 4096, 6144, 8192, 10240),
    "gemm": (512, 1024, 2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192),
}
ROWS = (
    *((16384, 768), (65536, 768), (32768, 1024), (65536, 1024), (131072, 1024)),
    *((131072, 2048), (262144, 2048), (16384, 8192), (32768, 8192), (8192, 16384)),
)
SWIZZLES = {
    "layer_norm": ("contiguous", "chunked(chunk=8)"),
    "smith_waterman": ("contiguous", "contiguous+group_m(size=8)", "column_panels(width=8)"),
    "stencil_2d": ("contiguous", "contiguous+group_m(size=8)", "column_panels(width=8)"),
    "gemm": ("contiguous", "contiguous+group_m(size=4)", "group_m(size=8)"),
}
SMALL_ROWS = ((64, 256), (100, 256))
SMALL = {
    "smith_waterman": (128, 192),
    "stencil_2d": (256, 320),
    "gemm": (512, 768),
}


def jobs(settings: Settings) -> list[Job]:
    """A sweep a kernel."""
    return [
        Job(
            name=_job(name),
            work=sweep,
            about={
                "kernel": name,
                "gpu": GPU,
                "replay": REPLAY,
                "swizzles": list(SWIZZLES[name]),
                "problems": [sizes for sizes, _ in _sizes(name, settings.quick)],
            },
            code=(*SCORES, "swizzle_sim.tuning.sweep"),
            files=suite_files(name),
            seconds=40.0,
        )
        for name in SWEPT
    ]


def _job(name: str) -> str:
    return f"sizes of {name}"


def _sizes(name: str, quick: bool) -> list[tuple[dict[str, int], str]]:
    """Sizes of a kernel with their names, the smallest problem first."""
    if name == "layer_norm":
        ordered = sorted(SMALL_ROWS if quick else ROWS, key=lambda pair: (pair[0] * pair[1], pair[0]))
        return [({"M": m, "N": n}, f"{m} x {n}") for m, n in ordered]
    axes = ("M", "N", "K") if name == "gemm" else ("M", "N")
    sides = SMALL[name] if quick else SQUARES[name]
    return [(dict.fromkeys(axes, side), str(side)) for side in sides]


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Curves, and where a swizzle hurts."""
    return {
        "gpu": GPU,
        "quick": settings.quick,
        "kernels": [_kernel(name, settings.quick, found[_job(name)]) for name in SWEPT],
    }


def _kernel(name: str, quick: bool, found: Mapping[str, Any]) -> dict[str, Any]:
    sizes, rows, said = _sizes(name, quick), found["rows"], SWEPT[name]
    labels = [label for _, label in sizes]
    lost = [one for one in hurts(labels, rows) if one.points >= LEAST]
    curves = {spec: [row["swizzles"].get(spec, {}).get("l2_hit_rate") for row in rows] for spec in SWIZZLES[name]}
    return {
        "kernel": name,
        "replay": found["replay"],
        "sizes": labels,
        "problems": [problem for problem, _ in sizes],
        "launched": [row["launched"] and row["launched"]["l2_hit_rate"] for row in rows],
        "bound": [row["launched"] and row["launched"]["bound_l2_hit_rate"] for row in rows],
        "swizzles": curves,
        "hurts": [{"size": one.at, "swizzle": one.swizzle, "points": one.points} for one in lost],
        "refused": [row["error"] for row in rows if row["error"]],
        "printed": {
            "launched": list(said.launched),
            "swizzled": list(said.swizzled),
            "pattern": said.pattern,
            "computes": said.computes,
            "words": said.words,
            "bijection_at": _holds(name, sizes),
        },
    }


def _holds(name: str, sizes: Sequence[tuple[dict[str, int], str]]) -> list[str] | None:
    """Sizes at which the formula that the paper prints is a bijection; None where it prints none."""
    formula = next((one for one in FORMULAS if one.label == PRINTED.get(name)), None)
    if formula is None:
        return None
    held = []
    for problem, label in sizes:
        grid = kernel(name, **problem).grid
        m, n = grid.launch if len(grid.launch) == 2 else (grid.launch[0], 1)
        held += [label] if formula.holds(m, n) else []
    return held
