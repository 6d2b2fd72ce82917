"""How GEMM's workgroups drift apart, by GPC from wave to wave, and the two of an SM from each other.

The first 64 SMs are two of each of eight GPCs in turn: SM ``s`` is of GPC ``s // 2 % 8``; those beyond are left out of
its mean.
"""

from __future__ import annotations

import numpy as np

COLUMNS = ("begin", "end", "sm", "warp")
GPCS, IN_TURN = 8, 64
LAUNCHES = (
    (8192, 8192, 2048, 128, "row"),
    (8192, 8192, 4096, 128, "row"),
    (8192, 8192, 8192, 128, "row"),
    (8192, 8192, 8192, 128, "grp8"),
    (8192, 8192, 16384, 128, "row"),
    (8192, 8192, 16384, 128, "col"),
    (8192, 8192, 16384, 128, "scatter"),
    (8192, 8192, 28672, 128, "row"),
    (6144, 6144, 6144, 128, "row"),
    (16384, 16384, 2048, 128, "row"),
    (2816, 1536, 2048, 128, "row"),
    (2816, 1536, 8192, 128, "row"),
    (2816, 1536, 65536, 128, "row"),
    (8192, 8192, 8192, 256, "row"),
    (8192, 8192, 28672, 256, "row"),
)


def by_gpc(notes: np.ndarray, held: int) -> dict[str, object]:
    """Turns, their mean, and in percent of it: how they spread over SMs, over GPCs, within GPCs, and each GPC's."""
    begin, end, sm, _ = notes.T
    begins = [np.sort(begin[sm == one]) for one in np.unique(sm)]
    depth = (min(map(len, begins)) - 1) // held
    took = float((end - begin).mean())
    turn = np.array([one[depth * held] - one[0] for one in begins]) / depth / took
    more = 100 * (turn - turn.mean())
    gpc = np.where(np.arange(more.size) < IN_TURN, np.arange(more.size) // 2 % GPCS, -1)
    parts = [more[gpc == one] for one in range(GPCS)]
    means = {f"gpc_{one}": round(float(part.mean()), 2) for one, part in enumerate(parts)}
    return {
        "workgroups_per_sm": held,
        "turns": depth,
        "turn_us": round(took / 1e3, 2),
        "spread_pct": round(float(more.std()), 2),
        "between_pct": round(float(np.std([part.mean() for part in parts])), 2),
        "within_pct": round(float(np.sqrt(np.mean([part.var() for part in parts]))), 2),
        **means,
    }


def of_pairs(notes: np.ndarray) -> dict[str, object]:
    """How long the older of an SM's first two takes of the younger; where a later one finds its neighbour [%]."""
    begin, end, sm, _ = notes.astype(float).T
    ratio, found = [], []
    for one in np.unique(sm):
        mine = np.flatnonzero(sm == one)
        old, young = mine[:2]
        ratio.append((end[old] - begin[old]) / (end[young] - begin[young]))
        later = mine[np.argsort(begin[mine])]
        for who in later[max(4, len(later) // 2) :]:
            beside = [it for it in later if it != who and begin[it] <= begin[who] < end[it]]
            found += [100 * (begin[who] - begin[it]) / (end[it] - begin[it]) for it in beside[:1]]
    quartiles = np.percentile(found, (25, 50, 75)).round().tolist() if found else [None] * 3
    places = {f"neighbour_is_at_p{p}_pct": at for p, at in zip((25, 50, 75), quartiles, strict=True)}
    return {"first_wave_older_over_younger": round(float(np.median(ratio)), 3), **places}
