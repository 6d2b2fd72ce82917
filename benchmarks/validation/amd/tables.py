"""The measured rows of AMD GPUs: what was tuned, timed or chosen, and which half of them may choose a constant.

Rows choose or judge by a hash of (types, M, N, K): so no size is in both halves. Of the sweep 8192 chooses and 12288
judges; of attention the causal shapes of one batch choose.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .maps import Tensile

DATA = Path(__file__).parents[1] / "data" / "amd"
FEWEST_WANTED = 152  # tiles of a GEMM whose tuner chose an XCD remap or none
FEWEST_TILES = 304  # a workgroup a CU; below it most orders of a launch are one
MOST_LOADS = 1_000_000  # of a GEMM that is replayed: those of more, one in ten, take as long as all the others together
SHARE = 0.02  # of its file's rows that an order must win to be a candidate there
# from when to when kernels took dimension 1 for StaggerU's mapping 0, and dimension 0 for any other. Source:
# ROCm/hipBLASLt 1f9423f6, declareStaggerParms, which branches where it must not; mended by ROCm/rocm-libraries#4358
SWAPPED = ("2023-12-17", "2026-02-05")
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "fp8bf8": 1, "int8": 1, "int32": 4}


def lines_of(name: str) -> list[dict[str, str]]:
    """Rows of one file of ``data/amd``."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chooses(*parts: object) -> bool:
    """Whether a row is of the half that may choose constants, by its types and sizes."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).digest()[0] % 2 == 0


@dataclass(frozen=True)
class Gemm:
    """One GEMM as Tensile tiled it; dimension 0 is M. ``layout`` names A and B: N has M (of B, K) contiguous."""

    types: tuple[str, str, str]
    layout: str
    size: tuple[int, int, int]
    tile: tuple[int, int]
    depth: int
    stagger: int
    prefetch: int
    # of the kernel in the logic file: what it multiplies, which may be narrower than what it loads; StaggerU's shift,
    # and its mapping, which says what it staggers by (0 the tile along dimension 0, 1 along dimension 1, 3 both)
    dtype: str
    threads: int
    lds_bytes: int
    stagger_shift: int
    stagger_mapping: int

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles along dimension 0 and 1."""
        return -(-self.size[0] // self.tile[0]), -(-self.size[1] // self.tile[1])

    @property
    def loads(self) -> int:
        """Tensor instructions of all workgroups."""
        return self.tiles[0] * self.tiles[1] * (2 * -(-self.size[2] // self.depth) + 1)

    @property
    def kind(self) -> str:
        """Types together, as the page has them."""
        return "fp8" if BYTES[self.types[0]] == BYTES[self.types[1]] == 1 else "bf16, fp16, mixed"

    @property
    def name(self) -> str:
        """Identifies the trace."""
        sizes = "x".join(map(str, (*self.size, *self.tile, self.depth)))
        stagger = f"{self.stagger}.{self.stagger_shift}.{self.stagger_mapping}"
        kernel = f"{self.dtype}.{self.threads}.{self.lds_bytes}"
        return f"{'-'.join(self.types)}:{self.layout}:{sizes}:{stagger}:{self.prefetch}:{kernel}"

    @property
    def chooses(self) -> bool:
        """Whether it is of the choosing half."""
        return chooses(*self.types, *self.size)


@dataclass(frozen=True)
class Tuned:
    """A problem of one file, the order that won it, and the orders that win there."""

    file: str
    gemm: Gemm
    winner: Tensile
    candidates: tuple[Tensile, ...]
    commonest: Tensile
    measured_us: float | None


@cache
def tuned(fewest: int = FEWEST_TILES) -> tuple[Tuned, ...]:
    """Tuned GEMMs of MI300X of so many tiles: the last version of each problem of a file; one batch, K whole."""
    last: dict[tuple[str, ...], dict[str, str]] = {}
    names = ("source_path", "dtype_a", "dtype_b", "dtype_d", "layout", "M", "N", "K", "batch")
    lines = tuned_lines()
    for line in sorted(lines, key=lambda line: line["commit_date"]):
        last[tuple(line[name] for name in names)] = line
    times = _measured(lines)
    of_file: dict[str, list[dict[str, str]]] = {}
    for line in last.values():
        of_file.setdefault(line["source_path"], []).append(line)
    found = []
    for file, group in of_file.items():
        wins = Counter(order_of(line) for line in group)
        candidates = tuple(sorted(order for order, n in wins.items() if n >= SHARE * len(group)))
        common = wins.most_common(1)[0][0]
        for line in group:
            if line["batch"] == line["split_u"] == "1" and int(line["tiles"]) >= fewest:
                gemm, won = gemm_of(line), order_of(line)
                if gemm.loads > MOST_LOADS:
                    continue
                found.append(Tuned(file, gemm, won, candidates, common, times.get((gemm, won))))
    return tuple(found)


def tuned_lines() -> list[dict[str, str]]:
    """Rows of the tuned table with what their logic files say of the kernel, where that was found."""
    pairs = zip(lines_of("tuned_gemm_mi300x.csv"), lines_of("launched_gemm_mi300x.csv"), strict=True)
    return [line | launched for line, launched in pairs if launched["threads"]]


def _measured(lines: list[dict[str, str]]) -> dict[tuple[Gemm, Tensile], float]:
    """Least time of each kernel and order that has one [us]."""
    times: dict[tuple[Gemm, Tensile], float] = {}
    for line in lines:
        if line["microseconds"] and line["batch"] == line["split_u"] == "1":
            key = gemm_of(line), order_of(line)
            times[key] = min(times.get(key, float("inf")), float(line["microseconds"]))
    return times


def order_of(line: dict[str, str]) -> Tensile:
    """Order that won a row; 0 and 1 are one, and an XCC of 1 has no group."""
    xcc = max(1, int(line["wgmxcc"]))
    return Tensile(int(line["wgm"]) or 1, xcc, int(float(line["wgmxcc_group"] or 0)) if xcc > 1 else 0)


def gemm_of(line: dict[str, str]) -> Gemm:
    """GEMM of a row of the tuned table."""
    numbers = {name: int(line[name]) for name in ("M", "N", "K", "macro_tile_0", "macro_tile_1", "depth_u")}
    kernel = {name: int(line[name]) for name in ("threads", "lds_bytes", "stagger_shift", "stagger_mapping")}
    if int(line["stagger_u"]) and SWAPPED[0] <= line["commit_date"] < SWAPPED[1]:
        kernel["stagger_mapping"] = int(kernel["stagger_mapping"] == 0)
    return Gemm(
        types=(line["dtype_a"], line["dtype_b"], line["dtype_d"]),
        layout=line["layout"],
        size=(numbers["M"], numbers["N"], numbers["K"]),
        tile=(numbers["macro_tile_0"], numbers["macro_tile_1"]),
        depth=numbers["depth_u"],
        stagger=int(line["stagger_u"]),
        prefetch=int(line["prefetch"]),
        dtype=line["arithmetic"],
        **kernel,
    )


@dataclass(frozen=True)
class Wanted:
    """A GEMM that a tuner left with an XCD remap or without, and its order without and with one."""

    gemm: Gemm
    plain: Tensile
    remapped: Tensile
    wanted: bool


@cache
def wants_xcc() -> tuple[Wanted, ...]:
    """Winners with WGMXCC, and as many without from the same files; those get the remap that wins most there."""
    rows = tuned(FEWEST_WANTED)
    of_file: dict[str, Counter[tuple[int, int]]] = {}
    for one in rows:
        if one.winner.xcc > 1:
            of_file.setdefault(one.file, Counter())[one.winner[1:]] += 1
    with_it = [Wanted(one.gemm, Tensile(one.winner.wgm), one.winner, True) for one in rows if one.winner.xcc > 1]
    without = [
        Wanted(one.gemm, one.winner, Tensile(one.winner.wgm, *of_file[one.file].most_common(1)[0][0]), False)
        for one in rows
        if one.file in of_file and one.winner.xcc == 1
    ]
    without.sort(key=lambda one: hashlib.sha256(one.gemm.name.encode()).hexdigest())
    return (*with_it, *without[: len(with_it)])


@dataclass(frozen=True)
class Aiter:
    """A GEMM of aiter's FlyDSL kernels on MI355X; ``wanted`` says whether it was won with ``xcd_swizzle`` 4."""

    size: tuple[int, int, int]
    tile: tuple[int, int, int]
    options: str
    item_bytes: int = 1
    wanted: bool = False
    b_slower_pct: float | None = None  # of ``xcd_swizzle`` 4 against 0, where both were timed

    @property
    def name(self) -> str:
        """Identifies the trace."""
        return "x".join(map(str, (*self.size, *self.tile))) + f":{self.options}"

    @property
    def chooses(self) -> bool:
        """Whether it is of the choosing half."""
        return chooses("fp8", *self.size)


@cache
def aiter_wants() -> tuple[Aiter, ...]:
    """Tuned rows that were won with ``xcd_swizzle`` 0 or 4."""
    return tuple(
        Aiter(
            (int(line["M"]), int(line["N"]), int(line["K"])),
            _sizes(line["tile"]),
            line["options"],
            wanted=line["won_with_xcd_swizzle"] == "4",
        )
        for line in lines_of("wants_xcd_swizzle_mi355x.csv")
    )


@cache
def aiter_pairs() -> tuple[Aiter, ...]:
    """GEMMs timed with both; those whose K is split are left out."""
    return tuple(
        Aiter(
            _sizes(line["shape"]),
            _sizes(line["tile"]),
            line["kernel"].split()[-1],
            b_slower_pct=float(line["b_slower_pct"]),
        )
        for line in lines_of("dense_remap_pairs_mi355x.csv")
        if line["tile"][0].isdigit() and ("_sk" not in line["kernel"] or line["kernel"].endswith("_sk1"))
    )


def _sizes(text: str) -> tuple[int, int, int]:
    first, second, third = map(int, text.split("x"))
    return first, second, third


@cache
def sweep() -> dict[int, dict[int, float]]:
    """Measured time of each GROUP_SIZE_M, by size; relative."""
    found: dict[int, dict[int, float]] = {}
    for line in lines_of("group_sweep_pairs_mi300x.csv"):
        of = found.setdefault(int(line["shape"].split("x")[0]), {})
        for side in "ab":
            of[int(line[f"order_{side}"].split("(")[1].split(")")[0])] = float(line[f"value_{side}"])
    return found


@cache
def attention() -> dict[tuple[int, ...], dict[str, float]]:
    """Throughput of each order, by (B, H, HKV, S, CAUSAL); relative."""
    found: dict[tuple[int, ...], dict[str, float]] = {}
    for line in lines_of("attention_throughput_mi300x.csv"):
        shape = tuple(int(line[name]) for name in ("batch", "heads", "kv_heads", "keys", "causal"))
        found.setdefault(shape, {})[line["order"]] = 100 + float(line["throughput_vs_reference_pct"])
    return found
