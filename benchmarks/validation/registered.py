"""``python -m swizzle_benchmarks.validation.registered FOLDER``: register predictions for an MI300X, then nobody's run.

Writes a folder that anybody with the card can run in about ten minutes: a bundle for each launch, ``predicted.json``
with the figures of their orders, and ``run.py``, which needs Python, PyTorch, Triton and rocprofv3. The SHA-256 of
``predicted.json`` goes into ``registered.toml`` and the README, by which ``swizzle-sim import FOLDER`` scores a run;
the folder is packed into ``data/registered``.
It is the last thing to do with a model: whatever changes it afterwards needs another set under another name.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.progress import Progress
from swizzle_sim.base.release import version
from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.hardware.registered import PREDICTED, names
from swizzle_sim.language import Swizzle, family, holds
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.price import as_compiled
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import gpu
from xcd_model.replay.traffic import READ_MISSES

from .draws import KERNELS, Sizes

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "swizzle_sim/hardware/registered.toml"
SETS = Path(__file__).parent / "data/registered"
DEVICE, SEED, MOST, SECOND = "mi300x", 300, 200, 17  # predictions in all; launches of which two orders are predicted
LAUNCHES = {  # 30
    **{"gemm": 8, "attention_gqa": 4, "attention": 3, "transpose": 3, "stencil_2d": 3, "grouped_gemm": 2},
    **{"conv_2d": 2, "batched_gemm": 2, "gemm_jagged": 1, "moe_gemm": 1, "mla_decode": 1},
}
PLANE = (
    *("contiguous+group_m(size=8)", "contiguous+column", "group_m(size=8)", "wgm(size=-8)", "xcd_swizzle(group=4)"),
    *(
        "wgm(size=4, xcc=8, group=-1)",
        "contiguous+hilbert",
        "chunked(chunk=64)+row",
        "contiguous+longest_first(size=8)",
    ),
    *("row_panels(height=4)", "column_panels(width=4)", "reverse", "contiguous"),
)
BOXES = ("contiguous", "contiguous+boxes(x=4, y=4, z=1)", "chunked(chunk=64)", "contiguous+boxes(x=8, y=8, z=1)")
RUN = '''"""Run the bundles beside this file one after the other; those that have a result are done: python run.py."""

import subprocess
import sys
from pathlib import Path

for bundle in sorted(path.parent for path in Path(__file__).resolve().parent.glob("*/confirm.py")):
    if not (bundle / "result.json").exists():
        print(bundle.name, flush=True)
        subprocess.run([sys.executable, str(bundle / "confirm.py"), "--samples", "50", *sys.argv[1:]], check=False)
'''


def drawn(seed: int) -> Iterator[tuple[str, Sizes, list[str]]]:
    """Kernel, sizes and orders of each launch; the same for the same seed."""
    rng, place = np.random.default_rng(seed), 0
    for name, times in LAUNCHES.items():
        for _ in range(times):
            sizes = KERNELS[name].sizes(lambda low, high: int(rng.integers(low, high + 1)))
            grid = kernel(name, **sizes).grid
            fit = [one for one in (PLANE if grid.shape else BOXES) if holds(one, grid, gpu(DEVICE).xcds)]
            picked = rng.choice(len(fit), 2 if place < SECOND else 1, replace=False)
            place += 1
            yield name, sizes, [fit[one] for one in picked]


def predicted(scorer: Scorer, order: str) -> tuple[Score, float]:
    """Score of an order as its rewritten kernel is compiled, and bytes that its L2s read over the fabric."""
    swizzle = Swizzle.parse(family(order), order)
    own = scorer if order == "identity" else as_compiled(scorer, swizzle)[0]
    traffic = own.traffic(scorer.permutation(swizzle))
    score = own.score_traffic(traffic, baseline_us=scorer.baseline.time_us)
    return score, float(traffic.total(READ_MISSES) * scorer.gpu.l2.fetch_bytes)


def predicted_launch(name: str, sizes: Sizes, orders: list[str], folder: Path) -> tuple[list[dict[str, Any]], str]:
    """`predictions` of one launch that was drawn."""
    return predictions(kernel(name, **sizes), orders, folder)


def predictions(what: Kernel, orders: list[str], folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Figures of one launch, whose bundle is written, and the bundle's digest."""
    scorer = Scorer(compiled_for(what, gpu(DEVICE)), gpu(DEVICE))
    each = [predicted(scorer, order) for order in ("identity", *orders)]
    finalists = [
        Finalist(name=order, source=family(order), score=score)
        for order, (score, _) in zip(orders, each[1:], strict=True)
    ]
    made = make_bundle(scorer.kernel, scorer.gpu, finalists, folder, baseline=scorer.baseline, check=False)
    found = []
    for candidate, (score, read_bytes) in zip(made["candidates"], each, strict=True):
        figures = {"l2_hit_rate": round(score.l2_hit_rate, 4), "read_bytes": read_bytes}
        if score is not each[0][0]:
            figures["time_ratio"] = round(1 / score.speedup, 4)
        told = {"bundle": folder.name, "candidate": candidate["id"], "order": candidate["name"]}
        found += [{**told, "figure": name, "value": value} for name, value in figures.items()]
    return found, made["bundle"]


def write(folder: Path, seed: int, launches: int | None = None, processes: int | None = None) -> str:
    """Write the folder, of the first ``launches`` alone if given; the digest of its predictions."""
    folder.mkdir(parents=True)
    found: list[dict[str, Any]] = []
    bundles: dict[str, str] = {}
    jobs = {folder / f"{number:02d}-{one[0]}": one for number, one in enumerate(drawn(seed))}
    with Progress("predicting", "launches") as progress, ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        waiting = {place: pool.submit(predicted_launch, *jobs[place], place) for place in list(jobs)[:launches]}
        for place, future in waiting.items():  # in the order of the launches, whatever the number of processes
            more, bundles[place.name] = future.result()
            found += more
            progress(len(bundles), len(waiting), note=place.name)
    about = {"gpu": DEVICE, "version": version(), "seed": seed, "bundles": bundles, "predictions": found[:MOST]}
    text = (json.dumps(about, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
    (folder / PREDICTED).write_bytes(text)
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    return hashlib.sha256(text).hexdigest()


def pack(folder: Path, name: str) -> None:
    """Put the folder into the archive of a set; the same folder gives the same archive."""
    SETS.mkdir(exist_ok=True)
    with tarfile.open(SETS / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            member = tarfile.TarInfo(str(Path(name) / path.relative_to(folder)))
            member.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(member, file)


def readme_words() -> str:
    """What the README says of the sets that are registered."""
    if not names():
        return "No set of predictions is registered yet."
    listed = "; ".join(f"`{name}`: `{sha}`" for sha, name in names().items())
    return (
        f"{MOST} predictions for an MI300X are fixed before anybody measures them. The SHA-256 of `{PREDICTED}` "
        f"proves it: {listed}.\n"
        f"`python run.py` in the archive of `{SETS.relative_to(ROOT)}` runs their bundles (about ten minutes; Python, "
        "PyTorch, Triton, rocprofv3), and "
        "`swizzle-sim import FOLDER` scores them."
    )


def main() -> None:
    """Write a set, and its hash where it is registered."""
    parser = argparse.ArgumentParser(description="Register predictions for an MI300X before anybody runs them.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="mi300x-1", help="of the set; a registered name is not used twice")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, help="launches at a time; one a core by default")
    given = parser.parse_args()
    if given.name in names().values() or not re.fullmatch(r"[a-z0-9-]+", given.name):
        parser.error(f"--name {given.name}: registered already, or not of a-z, 0-9 and -")
    sha = write(given.folder, given.seed, processes=given.processes)
    pack(given.folder, given.name)
    with TABLE.open("a", encoding="utf-8") as file:
        file.write(f'\n[[set]]\nname = "{given.name}"\nsha256 = "{sha}"\n')
    print(f"registered: {given.name} {sha}; now `python -m swizzle_benchmarks.evidence.docs.regenerate`")


if __name__ == "__main__":
    main()
