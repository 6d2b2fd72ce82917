"""Figure 5: which XCD computes each tile of a GEMM, for the paper's example of four XCDs and for the MI300X."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.language.lattice import unconditional
from swizzle_sim.report.display.colours import OTHER, XCDS, on_colour
from swizzle_sim.workload.kernels import Kernel
from xcd_model import gpu, xcd_of

from . import style
from .jobs import Job
from .searches import arms_job, arms_name, texts_job
from .settings import GPU, Settings
from .style import pct, points, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        "maps": [_map("launch order", before), _map(CONTIGUOUS, after)],
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
        ("launch order", family("identity"), arms["launched"]),
        (CONTIGUOUS, family(CONTIGUOUS), contiguous),
        ("best found: " + best["name"].replace("identity", "launch order"), best["source"], best["score"]),
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


NUMBERED_SIDE = 16
SHARED = "#e5e5e5"


def maps(data: Mapping[str, Any]) -> Figure:
    """One row an architecture and kernel, one map an order."""
    from matplotlib.patches import Patch

    figure = style.canvas(11.5, 12.5)
    parts = figure.subfigures(len(data["rows"]), 1)
    for part, row in zip(parts, data["rows"], strict=True):
        simulated = f"; simulated, {row['replay']} replay" if "replay" in row else "; no replay: where tiles go"
        part.suptitle(row["title"] + simulated, fontsize=9.5)
        axes = part.subplots(1, 3)
        for one, panel in zip(row["maps"], axes, strict=False):
            _draw(panel, one, row["xcds"])
        for panel in axes[len(row["maps"]) :]:
            panel.axis("off")
    handles = [Patch(color=colour, label=f"XCD {x}") for x, colour in enumerate(XCDS)]
    handles.append(Patch(color=SHARED, label="tile of several workgroups"))
    figure.legend(handles=handles, loc="outside lower left", ncols=9, frameon=False, fontsize=8)
    return style.finish(figure, "Figure 5: XCD of each tile of C", quick=data["quick"])


def _draw(axes: Axes, one: Mapping[str, Any], xcds: int) -> None:
    from matplotlib.colors import ListedColormap

    tiles = np.array(one["xcd"])
    colours = [SHARED, *(XCDS[x % len(XCDS)] for x in range(xcds))]
    axes.imshow(tiles, cmap=ListedColormap(colours), vmin=-1.5, vmax=xcds - 0.5, interpolation="nearest")
    rate = f"L2 hit rate {100 * one['l2_hit_rate']:.1f} %\n" if "l2_hit_rate" in one else ""
    label = one["label"] if len(one["label"]) <= 44 else one["label"].replace("+", "+\n", 1)
    axes.set_title(f"{label}\n{rate}{one['panels_per_xcd']:.1f} panels an XCD", fontsize=8.5)
    axes.set_xlabel("tile column", fontsize=8, color=OTHER)
    axes.set_ylabel("tile row", fontsize=8, color=OTHER)
    axes.tick_params(labelsize=7)
    style.whole_numbers(axes.xaxis, axes.yaxis)
    if max(tiles.shape) <= NUMBERED_SIDE:
        for (m, n), x in np.ndenumerate(tiles):
            if x >= 0:
                axes.text(n, m, str(x), ha="center", va="center", fontsize=8, color=on_colour(XCDS[x % len(XCDS)]))


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    rows = []
    for row in data["rows"]:
        for one in row["maps"]:
            rate = pct(one.get("l2_hit_rate"))
            speedup = f"{one['speedup']:.3f}" if "speedup" in one else "-"
            rows.append([row["title"], one["label"], f"{one['panels_per_xcd']:.1f}", rate, speedup])
    first = data["rows"][0]["maps"]
    heads = ("GEMM", "order", "panels an XCD", "L2 hit rate [%]", "predicted speedup")
    found = [_verdict(row) for row in data["rows"][1:]]
    return "\n\n".join(
        [
            "Panels an XCD: row panels of A and column panels of B that its tiles need, on average. In the paper's "
            f"example a contiguous range of tiles an XCD takes them from {first[0]['panels_per_xcd']:.1f} to "
            f"{first[1]['panels_per_xcd']:.1f}. {' '.join(found)}",
            table(heads, rows, left=2),
            "The paper's code is a picture. Its text speaks of a ceiling division for the workgroups of an XCD; the "
            f"plain reading, `{data['by_ceiling']}`, is a bijection where `{data['by_ceiling_domain']}`. The maps use "
            f"`contiguous`, the same on such grids and a bijection {_where(data['contiguous_domain'])}. Maps and hit "
            "rates are simulated; for what was counted on hardware see figure 2.",
        ]
    )


def _where(domain: str) -> str:
    return "on " + domain if unconditional(domain) else f"where `{domain}`"


def _verdict(row: Mapping[str, Any]) -> str:
    launched, contiguous, best = row["maps"]
    gain = 100 * (contiguous["l2_hit_rate"] - launched["l2_hit_rate"])
    what = "takes" if abs(gain) >= 0.05 else "leaves"
    more = 100 * (best["l2_hit_rate"] - max(launched["l2_hit_rate"], contiguous["l2_hit_rate"]))
    end = f"the best found is {more:.1f} points better" if more >= 0.05 else "nothing found beats the better of both"
    return (
        f"On {row['title']}, `contiguous` {what} the simulated hit rate "
        + (f"from {pct(launched['l2_hit_rate'])} to " if abs(gain) >= 0.05 else "at ")
        + f"{pct(contiguous['l2_hit_rate'])} % ({points(gain)} points); {end}."
    )
