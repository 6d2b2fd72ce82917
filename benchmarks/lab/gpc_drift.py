"""How GEMM's workgroups drift apart: by GPC from wave to wave, and the two of an SM from each other.

``gpc-drift`` notes when each workgroup begins and ends, its SM and its first warp; of the second of two launches, the
L2 overwritten before each. ``h200_gpcs.csv`` says how much longer than on average a turn (the begin of a workgroup to
that of the next in its place) takes on the SMs of each GPC; ``h200_pairs.csv`` how two workgroups of an SM stand. The
first 64 SMs are two of each of eight GPCs in turn: SM ``s`` is of GPC ``s // 2 % 8``; those beyond are left
out of its mean.
"""

# ruff: noqa: PLC0415  torch and Triton are there only where the GPU is

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np

from swizzle_benchmarks.validation.workloads import orders

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


def gpc_drift(folder: Path) -> None:
    """Measure `LAUNCHES` and write both tables; exit with status 1 if a result is wrong."""
    import torch

    gpcs, pairs = [], []
    for m, n, k, wide, order in LAUNCHES:
        notes = measured(m, n, k, wide, order)
        about = {"gpu": torch.cuda.get_device_name(), "problem": f"{m}x{n}x{k}x128x{wide}x64", "order": order}
        held = 2 if wide == 128 else 1  # workgroups an SM, by shared memory
        if len(notes) >= 1000:  # several waves
            gpcs.append(about | by_gpc(notes, held))
        if held == 2:
            pairs.append(about | of_pairs(notes))
    for name, lines in (("gpcs", gpcs), ("pairs", pairs)):
        with (folder / f"h200_{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(lines)


def measured(m: int, n: int, k: int, wide: int, order: str) -> np.ndarray:
    """(n_workgroups, 4) int64: `COLUMNS`, times in ns."""
    import torch

    from .nvidia_kernels import noted_gemm

    torch.manual_seed(0)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16) / math.sqrt(k)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    tiles = torch.from_numpy(orders.tiles_of(order, m // 128, n // wide, 1)).to("cuda", torch.int32)
    notes = torch.zeros(tiles.numel(), len(COLUMNS), device="cuda", dtype=torch.int64)
    other = torch.empty(128 << 20, device="cuda", dtype=torch.int8)
    for _ in range(2):
        other.zero_()
        torch.cuda.synchronize()
        noted_gemm[(tiles.numel(),)](
            tiles, a, b, c, m, n, k, notes, BM=128, BN=wide, BK=64, num_warps=8, num_stages=3
        )  # fmt: skip
        torch.cuda.synchronize()
    if not torch.allclose(c.float(), (a @ b).float(), atol=0.05, rtol=0.02):
        sys.exit(f"{m} x {n} x {k}: wrong result under {order}")
    return notes.cpu().numpy()


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
