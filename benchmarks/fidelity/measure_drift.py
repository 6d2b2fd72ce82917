"""How far workgroups drift apart on an NVIDIA GPU: when each gets where, and on which SM.

    python -m benchmarks.fidelity.measure_drift FOLDER

Runs `LAUNCHES` and writes into the folder one ``.npz`` a launch, ``at`` (n_workgroups, 33) int64 [ns] and ``sm``
(n_workgroups,), and ``drift.csv``, the figures of `drift`. ``benchmarks/fidelity/data/drift/h200.csv`` is such a table.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from benchmarks.fidelity import orders
from benchmarks.fidelity.drift import drift_of
from benchmarks.fidelity.drift_kernels import POINTS, drift_attention, drift_gemm

Sizes = dict[str, int]
Launch = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
TILE = {"BM": 128, "BN": 128, "BK": 64}
LAUNCHES: tuple[tuple[str, Sizes, tuple[str, ...]], ...] = (
    ("gemm", {"M": 8192, "N": 8192, "K": 16384, **TILE}, ("row", "scatter")),
    ("gemm", {"M": 8192, "N": 8192, "K": 2048, **TILE}, ("row",)),
    ("gemm", {"M": 6144, "N": 6144, "K": 6144, **TILE}, ("row", "grp8")),
    ("gemm", {"M": 1408, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, one workgroup an SM
    ("gemm", {"M": 2816, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, two an SM
    ("attention", {"H": 32, "S": 8192, "D": 128, "BQ": 64, "BK": 64}, ("row", "col")),
    ("attention", {"H": 64, "S": 8192, "D": 128, "BQ": 128, "BK": 64}, ("row", "col")),
)


def main() -> None:
    """Run each launch twice and keep the second."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    lines = []
    for kernel, size, names in LAUNCHES:
        launch, rows, cols = MAKERS[kernel](size)
        for name in names:
            at, sm = _measured(launch, orders.tiles_of(name, rows, cols, 1))
            sizes = "x".join(str(n) for n in size.values())
            np.savez_compressed(folder / f"{kernel}-{sizes}-{name}.npz", at=at, sm=sm)
            lines.append(line_of(torch.cuda.get_device_name(), kernel, sizes, name, at, sm))
            print(", ".join(str(value) for value in lines[-1].values()), flush=True)
    with (folder / "drift.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


def line_of(gpu: str, kernel: str, sizes: str, order: str, at: np.ndarray, sm: np.ndarray) -> dict[str, object]:
    """A line of the table."""
    figures = {name: round(value, 2) for name, value in asdict(drift_of(at, sm)).items()}
    return {"gpu": gpu, "kernel": kernel, "problem": sizes, "order": order, **figures}


def _measured(launch: Launch, tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = torch.from_numpy(tiles).to("cuda", torch.int32)
    at = torch.zeros(tiles.size * POINTS, device="cuda", dtype=torch.int64)
    sm = torch.zeros(tiles.size, device="cuda", dtype=torch.int32)
    for _ in range(2):
        launch(order, at, sm)
        torch.cuda.synchronize()
    times = at.cpu().numpy().reshape(-1, POINTS)
    return times - times.min(), sm.cpu().numpy()


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def _gemm(size: Sizes) -> tuple[Launch, int, int]:
    m, n, k, bm, bn, bk = size.values()
    a, b = _random(m, k) / math.sqrt(k), _random(k, n)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    meta = {"EVERY": k // bk // 32, "BM": bm, "BN": bn, "BK": bk, "num_warps": 8, "num_stages": 3}
    return lambda order, at, sm: drift_gemm[(order.numel(),)](order, at, sm, a, b, c, m, n, k, **meta), m // bm, n // bn


def _attention(size: Sizes) -> tuple[Launch, int, int]:
    h, s, d, bq, bk = size.values()
    q, k, v = (_random(h, s, d) for _ in range(3))
    o = torch.empty_like(q)
    meta = {"SCALE": d**-0.5, "D": d, "EVERY": s // bk // 32, "BQ": bq, "BK": bk, "num_warps": 8, "num_stages": 3}
    return lambda order, at, sm: drift_attention[(order.numel(),)](order, at, sm, q, k, v, o, s, **meta), h, s // bq


MAKERS: dict[str, Callable[[Sizes], tuple[Launch, int, int]]] = {"gemm": _gemm, "attention": _attention}

if __name__ == "__main__":
    main()
