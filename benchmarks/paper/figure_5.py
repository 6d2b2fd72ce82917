"""Figure 5: which XCD computes each tile of a GEMM, for the paper's example of four XCDs and for the MI300X."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.paper.jobs import Job
from benchmarks.paper.searches import arms_job, arms_name, texts_job
from benchmarks.paper.settings import GPU, Settings
from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle import Grid, Swizzle, family
from xcd_model import gpu, xcd_of

EXAMPLE_XCDS, EXAMPLE_TILES = 4, (4, 5)  # section A.2
CONTIGUOUS = "contiguous"
# A plain reading of the text: workgroups of an XCD by ceiling division; the code itself is a picture in the paper.
BY_CEILING = "pid = pid % num_xcds * tl.cdiv(num_pids, num_xcds) + pid // num_xcds"
PLAIN, STREAMK = "gemm", "gemm_streamk"


def jobs(settings: Settings) -> list[Job]:
    """Families and search of both GEMMs, and the contiguous order on them."""
    made = []
    for name in (PLAIN, STREAMK):
        made += [arms_job(settings, name), _contiguous(settings, name)]
    return made


def _contiguous(settings: Settings, name: str) -> Job:
    return texts_job(f"contiguous {name}", settings.kernel(name), {CONTIGUOUS: family(CONTIGUOUS)})


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Maps, panels an XCD touches, and simulated hit rates."""
    device = gpu(GPU)
    grid = Grid((EXAMPLE_TILES[0] * EXAMPLE_TILES[1],), EXAMPLE_TILES)
    before, after = (
        _tiles(grid.num_pids, np.arange(grid.num_pids) % EXAMPLE_XCDS, order).reshape(EXAMPLE_TILES)
        for order in (np.arange(grid.num_pids), Swizzle.parse(family(CONTIGUOUS)).permutation(grid, EXAMPLE_XCDS, {}))
    )
    example = {
        "title": f"the paper's example: {EXAMPLE_TILES[0]} x {EXAMPLE_TILES[1]} tiles, {EXAMPLE_XCDS} XCDs",
        "xcds": EXAMPLE_XCDS,
        "maps": [_map("as launched", before), _map(CONTIGUOUS, after)],
    }
    return {
        "gpu": GPU,
        "quick": settings.quick,
        "rows": [example, *(_of_gpu(settings, name, found, device) for name in (PLAIN, STREAMK))],
        "by_ceiling": BY_CEILING,
        "by_ceiling_domain": Swizzle.parse(BY_CEILING).verify(grid, EXAMPLE_XCDS, {}).domain,
        "contiguous_domain": Swizzle.parse(family(CONTIGUOUS)).verify(grid, EXAMPLE_XCDS, {}).domain,
    }


def _of_gpu(settings: Settings, name: str, found: Mapping[str, Mapping[str, Any]], device) -> dict[str, Any]:
    work, arms = settings.kernel(name), found[arms_name(name)]
    contiguous = found[f"contiguous {name}"]["texts"][CONTIGUOUS]["score"]
    best = max((arms["families"], arms["search"]), key=lambda arm: arm["score"]["l2_hit_rate"])
    texts = [
        ("as launched", family("identity"), arms["launched"]),
        (CONTIGUOUS, family(CONTIGUOUS), contiguous),
        ("best found: " + best["name"].replace("identity", "as launched"), best["source"], best["score"]),
    ]
    xcd = xcd_of(work.grid.num_pids, device, work.programs)
    maps = []
    for label, text, score in texts:
        order = Swizzle.parse(text).permutation(work.grid, device.xcds, work.problem)
        of_id = _tiles(work.grid.num_pids, xcd, order)
        tiles = of_id.reshape(work.grid.tiles) if work.grid.tiles else _streamk_tiles(work, of_id)
        maps.append(_map(label, tiles, score))
    size = " x ".join(str(work.problem[axis]) for axis in "MNK")
    what = "one tile a workgroup" if name == PLAIN else f"Stream-K on {work.grid.num_pids} workgroups, as measured"
    title = f"{device.title}: {size}, {what}"
    return {"title": title, "kernel": name, "xcds": device.xcds, "replay": arms["replay"], "maps": maps}


def _tiles(n: int, xcd: np.ndarray, order: np.ndarray) -> np.ndarray:
    """XCD of each id that a swizzle answers."""
    found = np.empty(n, np.int64)
    found[order] = xcd
    return found


def _streamk_tiles(work: Kernel, xcd_of_program: np.ndarray) -> np.ndarray:
    """XCD of each tile that one program computes whole; -1 for tiles that several share.

    Source: the kernel, `benchmarks/suite/gemm_streamk_triton.py`.
    """
    size = work.problem
    rows, cols = (-(-size[axis] // size[f"BLOCK_SIZE_{axis}"]) for axis in "MN")
    t = np.arange(rows * cols)
    group, within = np.divmod(t, size["GROUP_M"] * cols)
    high = np.minimum(rows - group * size["GROUP_M"], size["GROUP_M"])
    found = np.empty((rows, cols), np.int64)
    whole = t < t.size - t.size % size["PROGRAMS"]
    found[group * size["GROUP_M"] + within % high, within // high] = np.where(
        whole, xcd_of_program[t % size["PROGRAMS"]], -1
    )
    return found


def _map(label: str, tiles: np.ndarray, score: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A map with the row and column panels that an XCD touches, on average."""
    used = [x for x in np.unique(tiles) if x >= 0]
    panels = [sum(np.unique(axis).size for axis in np.nonzero(tiles == x)) for x in used]
    rates = {} if score is None else {"l2_hit_rate": score["l2_hit_rate"], "speedup": score["speedup"]}
    return {"label": label, "xcd": tiles.tolist(), "panels_per_xcd": float(np.mean(panels)), **rates}
