"""`TiledGemm`: a GEMM as a library's table describes it, as a kernel that the model replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Resources, Trace, TraceBuilder
from xcd_model.errors import CaptureError

MOST_VGPRS = {64: 512, 32: 255}  # of a lane, by the lanes of a wave
OF_FOUR_WAVES = 512  # VGPRs of a lane, where a workgroup has up to four waves: a register file serves one of them


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A matrix that is multiplied: along the rows of C (0) or its columns (1), and how it lies in memory."""

    along: int
    item_bytes: int
    k_fast: bool = True  # whether neighbours along K are neighbours in memory
    together: int = 1  # rows stored side by side, step by step of K, as shuffled weights are


@dataclass(frozen=True, kw_only=True)
class TiledGemm:
    """C = A B with C's columns contiguous; Tensile's C, whose rows are, is the transposed product."""

    shape: tuple[int, int]
    k: int
    tile: tuple[int, int]
    depth: int  # of K in a step
    operands: tuple[Operand, Operand]  # in the order of their loads
    dtype: str
    lds_bytes: int
    out_bytes: int = 2
    waves: int = 4
    in_flight: int = 4
    stagger: int = 0  # Tensile's StaggerU, in strides of 2 ** shift steps of K, and its mapping: see `staggered`
    stagger_shift: int = 0
    stagger_mapping: int = 0
    rows_first: bool = False  # whether the launch has two dimensions, the rows of tiles fastest
    name: str = "tiled_gemm"

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.shape[0] // self.tile[0]), -(-self.shape[1] // self.tile[1])

    @property
    def grid(self) -> Grid:
        """The launch."""
        rows, cols = self.tiles
        return Grid((rows, cols)) if self.rows_first else Grid((rows * cols,), (rows, cols))

    @property
    def loads(self) -> int:
        """Tensor instructions of all workgroups."""
        return self.tiles[0] * self.tiles[1] * (2 * -(-self.k // self.depth) + 1)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TiledGemm:
        """Inverse of `as_dict`."""
        pairs = {name: tuple(values[name]) for name in ("shape", "tile")}
        return cls(**{**values, **pairs, "operands": tuple(Operand(**one) for one in values["operands"])})

    def kernel(self, lanes: int = 64) -> Kernel:
        """The kernel, launched row by row of tiles; accumulators and as many registers again as operands take."""
        (m, n), (rows, cols), threads = self.shape, self.tiles, lanes * self.waves
        most = min(MOST_VGPRS[lanes], OF_FOUR_WAVES // max(1, self.waves // 4))
        return Kernel(
            name=self.name, summary="a GEMM of a table", problem={"M": m, "N": n, "K": self.k}, dtype=self.dtype,
            grid=self.grid, flops=2.0 * m * n * self.k,
            issued_flops=2.0 * rows * self.tile[0] * cols * self.tile[1] * self.k,
            resources=Resources(
                threads=threads, vgprs=min(most, self.tile[0] * self.tile[1] // threads + 128),
                lds_bytes=self.lds_bytes, instructions_in_flight=self.in_flight, source="assumed of the tile",
            ),
            build_trace=self.trace, reference=_no_values, make_inputs=_no_values, triton_source="", sharing="",
            sources=(), at_grids=tuple,
        )  # fmt: skip

    def trace(self, line_bytes: int) -> Trace:
        """A step of K loads both operands; each workgroup begins where StaggerU says."""
        rows, cols = self.tiles
        build = TraceBuilder(n_workgroups=rows * cols, line_bytes=line_bytes)
        place = np.arange(rows * cols)
        at = (place % rows, place // rows) if self.rows_first else np.divmod(place, cols)
        steps = -(-self.k // self.depth)
        inner = (np.arange(steps)[None, :] + self.staggered(*at)[:, None]) % steps * self.depth
        loads = []
        for name, one in zip("ab", self.operands, strict=True):
            side, tile, first = self.shape[one.along], self.tile[one.along], at[one.along][:, None]
            if one.k_fast:
                by = one.together
                array = build.array(name, rows=-(-side // by), cols=by * self.k, item_bytes=one.item_bytes)
                box = {"row": first * (tile // by), "col": by * inner, "rows": tile // by, "cols": by * self.depth}
            else:
                array = build.array(name, rows=self.k, cols=side, item_bytes=one.item_bytes)
                box = {"row": inner, "col": first * tile, "rows": self.depth, "cols": tile}
            loads.append(build.read(array, **box))
        out = build.array("c", rows=self.shape[0], cols=self.shape[1], item_bytes=self.out_bytes)
        row, col = at[0] * self.tile[0], at[1] * self.tile[1]
        build.step(*loads)
        build.step(build.write(out, row=row, col=col, rows=self.tile[0], cols=self.tile[1]))
        return build.trace()

    def staggered(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """First step of tiles: ``(by & mask) << shift``, the mask halved until the loop's whole steps hold it.

        ``by`` is the column by mapping 0, the row by 1, the tile by 3; kernels of 2023-12 to 2026-02 take the row by 0,
        the column by others. Source: declareStaggerParms in ROCm/hipBLASLt 1f9423f6; ROCm/rocm-libraries#4358.
        """
        stagger = self.stagger
        while stagger and self.k // self.depth < stagger << self.stagger_shift:
            stagger //= 2
        by = {0: column, 1: row, 3: row * self.tiles[1] + column}.get(self.stagger_mapping, np.zeros_like(row))
        return (by & max(0, stagger - 1)) << self.stagger_shift


def _no_values(*_: Any) -> NoReturn:
    raise CaptureError("a row of a table has sizes, and no values of its tensors", code="table")


def launched_as(kernel: Kernel, order: Sequence[int] | np.ndarray) -> Kernel:
    """Kernel whose launch order is a permutation of another's, as a library launches it."""

    def build_trace(line_bytes: int) -> Trace:
        trace = kernel.build_trace(line_bytes)
        length = np.diff(trace.start)[order]
        start = np.concatenate([[0], np.cumsum(length)])
        place = np.repeat(trace.start[:-1][order] - start[:-1], length) + np.arange(start[-1])
        return replace(trace, base=trace.base[place], template=trace.template[place], start=start)

    return replace(kernel, build_trace=build_trace)
