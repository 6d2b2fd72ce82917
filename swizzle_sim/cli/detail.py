"""What ``score`` says beyond one row of figures: counts by level and tensor, and the plots of one candidate."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.scoring import Score, Scorer
    from xcd_model import Traffic

COLUMNS = ("L1\nreads", "L1 hit\n[%]", "L2\nrequests", "L2 hit\n[%]", "L2\nmisses", "HBM read\n[MB]", "HBM write\n[MB]")


def scored_on(scorer: Scorer) -> dict[str, Any]:
    """What every JSON document of scores begins with: the kernel, the GPU and the replay."""
    return {
        "kernel": scorer.kernel.name,
        "gpu": scorer.gpu.name,
        "problem": dict(scorer.kernel.problem),
        "replay": scorer.replay,
        "kind": "simulated",
        "seed": scorer.seed,
        "jitter_ns": scorer.jitter_ns,
    }


def print_levels(traffic: Traffic, title: str, note: str) -> None:
    """Print requests, hit rates and bytes of each tensor, and of all."""
    from swizzle_sim.cli.output import table
    from xcd_model.analysis.levels import traffic_as_dict

    counts = traffic_as_dict(traffic)
    parts = {**counts["by_tensor"], "all": counts["all"]}
    table(title, ("tensor", *COLUMNS), [(name, *_cells(part)) for name, part in parts.items()], note=note)


def _cells(part: dict[str, dict[str, int]]) -> list[str]:
    l1, l2, hbm = part["l1"], part["l2"], part["hbm"]
    return [
        str(l1["requests"]),
        _share(l1["hits"], l1["requests"]),
        str(l2["requests"]),
        _share(l2["hits"], l2["requests"]),
        str(l2["misses"]),
        f"{hbm['read_bytes'] / 1e6:.1f}",
        f"{hbm['write_bytes'] / 1e6:.1f}",
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"


def write_plots(folder: Path, name: str, traffics: tuple[Traffic, Traffic], scores: tuple[Score, Score]) -> list[Path]:
    """Write hit rate over time and per XCD, the order as launched beside the candidate; return the files.

    Raises
    ------
    RunError
        If the folder cannot be written.
    """
    from swizzle_sim.report import over_time, per_xcd, png
    from xcd_model.errors import RunError

    note = f"simulated, {'lockstep' if traffics[0].turns else 'timed'} replay"
    figures = {"over_time.png": over_time(*traffics, after=name), "per_xcd.png": per_xcd(*scores, name=name)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, figure in figures.items():
            (folder / file).write_bytes(png(figure, note=note))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from None
    return [folder / file for file in figures]


def threads() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def assigned(document: dict[str, Any], bound: float, traffic: Traffic) -> None:
    """Add to a JSON document what only ``score`` works out."""
    from xcd_model.analysis.levels import traffic_as_dict

    document["assigned_bound_l2_hit_rate"] = bound
    document["traffic"] = traffic_as_dict(traffic)
