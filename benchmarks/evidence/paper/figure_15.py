"""Figure 15: hit rate over problem sizes, with orders that are bijections at every one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_benchmarks.validation.sources import kernel_modules
from swizzle_sim.search.sweep import hurts
from swizzle_sim.workload.kernels import kernel

from . import style
from .formulas import FORMULAS
from .jobs import Job
from .published import SWEPT
from .searches import SCORES
from .settings import GPU, Settings
from .style import (
    FAMILIES,
    LAUNCHED,
    LIMIT,
    MEASURED,
    MODEL_COLOURS,
    PRINTED_COLOUR,
    SEARCH,
    listed,
    number_of,
    one_line,
    pct,
    table,
)
from .work import sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
            code=(*SCORES, *kernel_modules(name), "swizzle_sim.search.sweep"),
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


COLOURS, MARKS = (FAMILIES, SEARCH, MODEL_COLOURS[0]), ("s", "D", "^")


def sweeps(data: Mapping[str, Any]) -> Figure:
    """L2 hit rate over sizes."""
    figure = style.canvas(13, 9.5)
    for panel, row in zip(figure.subplots(2, 2).flat, data["kernels"], strict=True):
        _panel(panel, row)
    return style.finish(figure, f"Figure 15: hit rate over problem sizes, {style.gpu_name(data)}", quick=data["quick"])


def _panel(axes: Axes, row: Mapping[str, Any]) -> None:
    at = np.arange(len(row["sizes"]))
    axes.plot(at, _pct(row["bound"]), ":", color=LIMIT, label="bound")
    axes.plot(at, _pct(row["launched"]), "o-", color=LAUNCHED, lw=2, label="launch order")
    for (spec, values), colour, mark in zip(row["swizzles"].items(), COLOURS, MARKS, strict=False):
        axes.plot(at, _pct(values), mark + "--", color=colour, ms=5, lw=1.3, label=spec)
    for n, one in enumerate(row["hurts"]):
        x = row["sizes"].index(one["size"])
        y = 100 * row["swizzles"][one["swizzle"]][x]
        axes.plot([x], [y], "o", mfc="none", mec=MEASURED, ms=11, mew=1, label="" if n else "hurts: below launch order")
    _printed_ends(axes, at, row["printed"])
    axes.set_title(f"{style.one_line(row['kernel'])}: simulated, {row['replay']} replay", fontsize=10)
    axes.set_xticks(at, row["sizes"], rotation=45, ha="right", fontsize=7.5)
    axes.set_xlabel("rows x columns" if " x " in row["sizes"][0] else "side", fontsize=9)
    style.rates(axes)
    axes.legend(fontsize=7, ncols=2, loc="best", framealpha=0.85)


def _printed_ends(axes: Axes, at: np.ndarray, printed: Mapping[str, Any]) -> None:
    """What the text says of both ends; open marks, as what was swizzled there is no bijection."""
    for key, line, label in (
        ("launched", ":", "paper's text: launch order"),
        ("swizzled", "--", "paper's text: swizzled, no bijection"),
    ):
        pairs = [(x, y) for x, y in zip((at[0], at[-1]), printed[key], strict=True) if y is not None]
        if pairs:
            axes.plot(*zip(*pairs, strict=True), line, marker="X", mfc="white", mec=PRINTED_COLOUR,
                      color=PRINTED_COLOUR, lw=1, ms=8, alpha=0.9, label=label)  # fmt: skip


def _pct(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else 100 * v for v in values], float)


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    heads = ("kernel", "order", "hurts at", "worst loss [points]", "gains at", "best gain [points]")
    rows = [line for row in data["kernels"] for line in _lines(row)]
    return "\n\n".join(
        [
            f"Simulated, {data['kernels'][0]['replay']} replay; every order drawn is a bijection at every size. A "
            f"loss or gain is one of at least {LEAST} points of L2 hit rate against the launch order at the same "
            "size.",
            table(heads, rows, left=2),
            "**Sizes where a swizzle hurts**\n\n" + "\n".join(_hurts(row) for row in data["kernels"]),
            "**What the paper swizzled with here**\n\n" + "\n".join(_paper(row) for row in data["kernels"]),
        ]
    )


def _lines(row: Mapping[str, Any]) -> list[list[str]]:
    lines = []
    for spec, rates in row["swizzles"].items():
        pairs = zip(row["launched"], rates, strict=True)
        gains = [100 * (rate - launched) for launched, rate in pairs if launched is not None and rate is not None]
        lost, won = [g for g in gains if g <= -LEAST], [g for g in gains if g >= LEAST]
        of = number_of(len(gains), "size")
        lines.append(
            [
                one_line(row["kernel"]),
                f"`{spec}`",
                f"{len(lost)} of {of}",
                f"{min(lost):.1f}" if lost else "-",
                f"{len(won)} of {of}",
                f"{max(won):+.1f}" if won else "-",
            ]
        )
    return lines


def _hurts(row: Mapping[str, Any]) -> str:
    by_swizzle: dict[str, list[str]] = {}
    for size in row["sizes"]:
        for one in row["hurts"]:
            if one["size"] == size:
                by_swizzle.setdefault(one["swizzle"], []).append(f"{size} (-{one['points']:.1f})")
    name = one_line(row["kernel"])
    if not by_swizzle:
        return f"- {name}: none of these sizes."
    return "\n".join(f"- {name}, `{spec}`: {', '.join(sizes)}" for spec, sizes in by_swizzle.items())


def _paper(row: Mapping[str, Any]) -> str:
    printed, name = row["printed"], one_line(row["kernel"])
    if not printed["words"]:
        return f"- {name}: not in the paper's figure; its run script has it, by a {printed['pattern']}: a bijection."
    held = printed["bijection_at"]
    formula = ""
    if held is not None:
        formula = f" Its printed formula is a bijection at {len(held)} of these {len(row['sizes'])} sizes"
        formula += f" ({listed(held)})." if held else "."
    ends = [pct(row["launched"][0]), pct(row["launched"][-1])]
    return (
        f"- {name}: “{printed['words']}”. The public run script swizzles by the {printed['pattern']}, which computes "
        f"{printed['computes']}: no bijection.{formula} As launched, simulated from the smallest to the largest size: "
        f"{ends[0]} to {ends[1]} %."
    )
