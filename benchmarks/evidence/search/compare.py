"""Families, random parameters, two-stage search and edits of formulas, with the same number of evaluations.

python -m swizzle_benchmarks.evidence.search.compare                      # ten kernels: 20 minutes of a core
python -m swizzle_benchmarks.evidence.search.compare --kernels gemm softmax --evaluations 20 --seeds 2
python -m swizzle_benchmarks.evidence.search.compare --write              # the first, and rewrite pages/search.md

Trials are stored in runs/compare as they finish: an interrupted comparison goes on, and no trial is run twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.base.release import version
from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.search.jobs import FILE, PointStore, run_points
from swizzle_sim.search.ranking import default_objectives
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

from .. import PAGES
from . import optimum
from .methods import METHODS, timed
from .page import by_gpu, draw, page, picture_of, table

EVALUATIONS, SEEDS = 60, 5
SIZES: dict[str, dict[str, dict[str, int]]] = {
    "mi300x": {  # the paper's ten kernels, at sizes whose replay takes milliseconds
        "gemm": {"M": 8192, "N": 6144, "K": 1024},
        "softmax": {"M": 4096, "N": 4096},
        "layer_norm": {"M": 4096, "N": 4096},
        "transpose": {"M": 2048, "N": 2048},
        "stencil_2d": {"M": 1024, "N": 1024},
        "fdtd_2d": {"Nx": 512, "Ny": 512},
        "smith_waterman": {"M": 2048, "N": 2048},
        "spmv": {"M": 2048, "N": 4096, "NNZ_PER_ROW": 128},
        "black_scholes": {"n_assets": 2**21},
        "fused_elementwise": {"n_elements": 2**21},
    },
    "h200": {  # its L2 holds all of those: three that read more, or whose work is uneven
        "attention": {"CAUSAL": 1, "H": 32, "S": 2048},
        "transpose": {"M": 4096, "N": 8192},
        "gemm": {"M": 8192, "N": 8192, "K": 1024},
    },
}
KERNELS = tuple(dict.fromkeys(name for sizes in SIZES.values() for name in sizes))


def points_of(kernels: Sequence[str], evaluations: int, seeds: int) -> list[dict[str, Any]]:
    """Every trial, JSON-ready; kernels one after the other."""
    about = {"evaluations": evaluations, "version": version()}
    boards = {name: {"gpu": name, "objective": default_objectives(name, "timed")[0].name} for name in SIZES}
    return [
        {**about, **boards[device], "kernel": name, "problem": sizes, "method": method, "seed": seed}
        for device in SIZES
        for name, sizes in SIZES[device].items()
        if name in kernels
        for method in METHODS
        for seed in range(seeds)
    ]


def trial(point: Mapping[str, Any]) -> dict[str, Any]:
    """Run one trial."""
    device = gpu(point["gpu"])
    work = compiled_for(kernel(point["kernel"], **point["problem"]), device)
    return asdict(timed(METHODS[point["method"]], work, device, point["evaluations"], point["seed"]))


def compare(points: Sequence[Mapping[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Trials of all points; those that ``folder`` lacks are run one at a time."""
    with PointStore(folder, resume=(folder / FILE).exists()) as store, Progress("comparing", "trials") as progress:
        if missing := next((point for point in points if store.find(point) is None), None):
            trial({**missing, "evaluations": 1})  # compiles the kernels, once a machine

        def on_point(point: Mapping[str, Any], row: Mapping[str, Any], done: int, total: int) -> None:
            best = f"{100 * max(row['rates']):.2f} %, {min(row['times_us']):.1f} us"
            progress(done, total, note=f"{point['gpu']}, {point['kernel']}, {point['method']}: {best}")

        return run_points(points, trial, store, backend="serial", on_point=on_point)


def optimum_text(folder: Path) -> str:
    """Text of `optimum_table`, which takes minutes, stored as the trials are."""
    point = {"what": "optimum", "evaluations": list(optimum.EVALUATIONS), "seeds": optimum.SEEDS, "version": version()}
    with PointStore(folder, resume=True) as store:
        if store.find(point) is None:
            store.add(point, {"text": optimum.optimum_table(say=print)})
        return (store.find(point) or {})["text"]


def main() -> None:
    """Print the table, or write the page and its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=KERNELS)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--cache", type=Path, default=Path("runs/compare"))
    parser.add_argument("--write", action="store_true", help="write pages/search.md and its pictures")
    options = parser.parse_args()
    points = points_of(options.kernels, options.evaluations, options.seeds)
    rows = compare(points, options.cache)
    if not options.write:
        for name, mine, of in by_gpu(points, rows):
            print(f"{name}\n\n{table(mine, of)}\n")
        return
    (PAGES / "search.md").write_text(page(points, rows, optimum_text(options.cache)), encoding="utf-8")
    for name, mine, of in by_gpu(points, rows):
        draw(mine, of, PAGES / picture_of(name))
    print("written: pages/search.md and its pictures")


if __name__ == "__main__":
    main()
