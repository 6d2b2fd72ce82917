"""Time of narrow passes over memory by order, and the same passes in the model, whose constants saw none of them.

``walks`` runs `walks.cu` into ``walks.csv``: tiles of 32 rows, 64 to 512 B wide, of matrices of 1 GiB, read or written
across, down or in drawn order by workgroups of one tile or of four. ``walks-replay`` replays those of four, which keep
memory busy, and prints measured and simulated time beside what activating rows adds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from xcd_model import Gpu, IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.replay.service_times import speed_variation_of

from ..fidelity.rows import DATA
from .cuda_programs import cuda_source, outputs

BYTES, ROWS, LANE_BYTES = 1 << 30, 32, 16
TILES = 4  # of a workgroup, and as many loads of a thread
PITCHES = (4096, 32768)  # of those that are replayed


@dataclass(frozen=True)
class Walk:
    """One pass, and what came of it: picoseconds a row of a tile, and how many of them rows of memory take to open."""

    what: str
    width_bytes: int
    pitch_bytes: int
    order: str
    measured_ps: float
    simulated_ps: float
    opening_ps: float


def walks(folder: Path) -> None:
    """Time narrow passes over memory by order."""
    (folder / "walks.csv").write_text(outputs(cuda_source("walks.cu"))[0], encoding="utf-8")


def measured_walks() -> list[dict[str, str]]:
    """Lines of the measured table with workgroups of `TILES` tiles and rows of `PITCHES`."""
    with (DATA / "machine" / "h200_walks.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return [one for one in lines if int(one["tiles"]) == TILES and int(one["pitch_bytes"]) in PITCHES]


def replayed(lines: Iterable[Mapping[str, str]], device: Gpu, matrix_bytes: int = BYTES) -> Iterator[Walk]:
    """Replay measured lines on a GPU."""
    issue = IssueModel(TILES, 0, speed_variation=speed_variation_of(device))
    for line in lines:
        what, order, width, pitch = line["what"], line["order"], int(line["width_bytes"]), int(line["pitch_bytes"])
        down, across = matrix_bytes // (pitch * ROWS), pitch // width
        row, column = np.divmod(_tiles(order, down, across).reshape(-1, TILES).T, across)
        build = TraceBuilder(n_workgroups=row.shape[1], line_bytes=device.l2.line_bytes)
        matrix = build.array("x", rows=down * ROWS, cols=pitch // LANE_BYTES, item_bytes=LANE_BYTES)
        lanes, access = width // LANE_BYTES, build.read if what == "read" else build.write
        sides = {"rows": ROWS, "cols": lanes}
        build.step(*(access(matrix, row=r * ROWS, col=c * lanes, **sides) for r, c in zip(row, column, strict=True)))
        workgroups = device.limits.waves_per_cu * device.limits.wave_size // (ROWS * lanes)
        got = replay_timed(
            prepare(build.trace(), device),
            np.arange(row.shape[1]),
            workgroups_per_cu=min(workgroups, device.limits.workgroups_per_cu),
            issue=issue,
        )
        ps = (one / (down * across * ROWS * 1e3) for one in (got.time_fs, got.activation_fs))
        yield Walk(what, width, pitch, order, float(line["ps"]), *ps)


def _tiles(order: str, down: int, across: int) -> np.ndarray:
    tiles = np.arange(down * across)
    if order == "down":
        return tiles.reshape(down, across).T.ravel()
    return np.random.default_rng(0).permutation(tiles) if order == "drawn" else tiles


def walks_replayed() -> None:
    """Print measured and simulated time of the passes, and what opening rows is of it."""
    print("| pass | width, B | pitch, B | order | measured, ps | simulated, ps | error | opening rows, ps |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    lines, stderr = measured_walks(), Console(stderr=True)
    for one in track(replayed(lines, gpu("h200")), "walks", len(lines), console=stderr, transient=True):
        error = 100 * (one.simulated_ps / one.measured_ps - 1)
        print(
            f"| {one.what} | {one.width_bytes} | {one.pitch_bytes} | {one.order} | {one.measured_ps:.1f} | "
            f"{one.simulated_ps:.1f} | {error:+.0f} % | {one.opening_ps:.1f} |",
            flush=True,
        )
