"""The pictures of a run as PNG files, for slides and mails; the page draws its own."""

from __future__ import annotations

from collections.abc import Sequence

from swizzle_sim.history import Attempt
from swizzle_sim.report.figures import best_so_far, over_time, per_xcd, png, xcd_map
from swizzle_sim.report.replays import Replayed
from swizzle_sim.report.tiles import is_ribbon, tile_map
from swizzle_sim.scoring import Score, Scorer
from xcd_model import xcd_of


def draw(
    scorer: Scorer,
    attempts: Sequence[Attempt],
    replayed: tuple[Replayed, Replayed],
    baseline: Score,
    best: Score,
) -> dict[str, bytes]:
    """Draw the four pictures of a run.

    Parameters
    ----------
    scorer : Scorer
    attempts : sequence of Attempt
    replayed : (Replayed, Replayed)
        As launched, and under the best swizzle.
    baseline, best : Score

    Returns
    -------
    files : dict of str to bytes
        PNG files by name.
    """
    kernel, gpu = scorer.kernel, scorer.gpu
    xcd = xcd_of(kernel.grid.num_pids, gpu, kernel.programs)
    maps = [tile_map(kernel.grid, xcd, one.order) for one in replayed]
    figures = {
        "map.png": xcd_map(*maps, title="XCD of each tile", num_xcds=gpu.xcds, ribbon=is_ribbon(kernel.grid)),
        "progress.png": best_so_far(attempts, baseline.l2_hit_rate, baseline.bound_l2_hit_rate),
        "over_time.png": over_time(*(one.traffic for one in replayed)),
        "per_xcd.png": per_xcd(baseline, best),
    }
    note = f"simulated, {scorer.replay} replay"
    return {name: png(figure, note=note) for name, figure in figures.items()}
