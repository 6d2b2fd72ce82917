"""How far workgroups drift apart on an NVIDIA GPU: when each gets where, and on which SM.

    python -m benchmarks.fidelity.measure_drift FOLDER

Runs `LAUNCHES`, checks their results, and writes into the folder one ``.npz`` a launch, ``at`` (n_workgroups, 33)
int64 [ns] and ``sm`` (n_workgroups,), and ``drift.csv``, the figures of `drift`. A table so made is
``benchmarks/fidelity/data/drift/h200.csv``.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from benchmarks.fidelity import h200, orders
from benchmarks.fidelity.drift import drift_of
from benchmarks.fidelity.nvidia_kernels import NOTES
from benchmarks.fidelity.nvidia_launch import MAKERS, Launch

TILE = {"BM": 128, "BN": 128, "BK": 64}
LAUNCHES: tuple[tuple[str, dict[str, int], tuple[str, ...]], ...] = (
    ("gemm", {"M": 8192, "N": 8192, "K": 16384, **TILE}, ("row", "scatter")),
    ("gemm", {"M": 8192, "N": 8192, "K": 2048, **TILE}, ("row",)),
    ("gemm", {"M": 6144, "N": 6144, "K": 6144, **TILE}, ("row", "grp8")),
    ("gemm", {"M": 1408, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, one workgroup an SM
    ("gemm", {"M": 2816, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, two an SM
    ("attention", {"H": 32, "S": 8192, "D": 128, "BQ": 64, "BK": 64}, ("row", "col")),
    ("attention", {"H": 64, "S": 8192, "D": 128, "BQ": 128, "BK": 64}, ("row", "col")),
)


def main() -> None:
    """Run each launch twice, keep the second, and exit with status 1 if a result is wrong."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    lines = []
    for kernel, size, names in LAUNCHES:
        shape = h200.KERNELS[kernel]
        launch, output, wanted = MAKERS[kernel](size, shape.warps)
        for name in names:
            output.zero_()
            at, sm = _measured(launch, orders.tiles_of(name, *shape.tiles(size), 1))
            sizes = "x".join(str(n) for n in size.values())
            if not torch.allclose(output.float(), wanted, atol=0.05, rtol=0.02):
                sys.exit(f"{kernel} {sizes}: wrong result under {name}")
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
    clock = torch.zeros(tiles.size, NOTES, device="cuda", dtype=torch.int64)
    for _ in range(2):
        launch(order, clock)
        torch.cuda.synchronize()
    notes = clock.cpu().numpy()
    return notes[:, :-1] - notes[:, :-1].min(), notes[:, -1]


if __name__ == "__main__":
    main()
