"""Narrow passes over memory by order, replayed beside the measured ones, whose constants saw none of them.

Tiles of 32 rows, 64 to 512 B wide, of matrices of 1 GiB, read, written or copied across, down or in drawn order by
workgroups of one tile or of four. Reads and writes of four, which keep memory busy, are replayed, and copies of one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track

from swizzle_benchmarks.validation.rows import DATA
from xcd_model import Gpu, IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.replay.service_times import speed_variation_of

BYTES, ROWS, LANE_BYTES = 1 << 30, 32, 16
TILES = 4  # of a workgroup, and as many loads of a thread
PITCHES = (4096, 32768)  # of those that are replayed
ODD_PITCH = 13248  # of copies too: half lines, so that every second row begins within a line


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


def measured_walks() -> list[dict[str, str]]:
    """Reads and writes of the measured table with workgroups of `TILES` tiles and rows of `PITCHES`."""
    lines = _table("h200_walks.csv")
    return [one for one in lines if int(one["tiles"]) == TILES and int(one["pitch_bytes"]) in PITCHES]


def measured_copies() -> list[dict[str, str]]:
    """Copies by workgroups of one tile, in no drawn order, with rows of `PITCHES` and `ODD_PITCH`."""
    lines = [one for one in _table("h200_walks_again.csv") if one["what"] == "copy" and "drawn" not in one["order"]]
    return [one for one in lines if one["tiles"] == "1" and int(one["pitch_bytes"]) in (*PITCHES, ODD_PITCH)]


def _table(name: str) -> list[dict[str, str]]:
    with (DATA / "machine" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def replayed(lines: Iterable[Mapping[str, str]], device: Gpu, matrix_bytes: int = BYTES) -> Iterator[Walk]:
    """Replay measured lines on a GPU."""
    for line in lines:
        what, order, width, pitch = line["what"], line["order"], int(line["width_bytes"]), int(line["pitch_bytes"])
        tiles, down, across = int(line["tiles"]), matrix_bytes // (pitch * ROWS), pitch // width
        down -= down % tiles
        lanes = width // LANE_BYTES
        build = TraceBuilder(n_workgroups=down * across // tiles, line_bytes=device.l2.line_bytes)
        read, _, written = order.partition("-")
        passes = {"read": [(build.read, read)], "write": [(build.write, read)]}
        for access, by in passes.get(what, [(build.read, read), (build.write, written)]):
            row, column = np.divmod(_tiles(by, down, across).reshape(-1, tiles).T, across)
            sides = {"rows": down * ROWS, "cols": pitch // LANE_BYTES, "item_bytes": LANE_BYTES}
            matrix = build.array(access.__name__, **sides)
            places = zip(row * ROWS, column * lanes, strict=True)
            build.step(*(access(matrix, row=r, col=c, rows=ROWS, cols=lanes) for r, c in places))
        workgroups = device.limits.waves_per_cu * device.limits.wave_size // (ROWS * lanes)
        got = replay_timed(
            prepare(build.trace(), device),
            np.arange(down * across // tiles),
            workgroups_per_cu=min(workgroups, device.limits.workgroups_per_cu),
            issue=IssueModel(tiles, 0, speed_variation=speed_variation_of(device)),
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
    lines, stderr = measured_walks() + measured_copies(), Console(stderr=True)
    for one in track(replayed(lines, gpu("h200")), "walks", len(lines), console=stderr, transient=True):
        error = 100 * (one.simulated_ps / one.measured_ps - 1)
        print(
            f"| {one.what} | {one.width_bytes} | {one.pitch_bytes} | {one.order} | {one.measured_ps:.1f} | "
            f"{one.simulated_ps:.1f} | {error:+.0f} % | {one.opening_ps:.1f} |",
            flush=True,
        )
