"""Measured rows: what real hardware counted, one record a number, with its source."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import contributed, published, repeatability

DATA = Path(__file__).with_name("data")
PAPER_SOURCE = "AMDResearch/intelliperf, branch hardware-aware-swizzling (75106f3): logs behind arXiv 2508.20258"
SHAPES_SOURCE = (
    "jamesbowley/gfx950-gluon-tutorials 2fdc8b5, experiments/aiter_256x256_loss_investigation, results/counters.csv: "
    "TCC_MISS_sum of v9 and v10, bf16, means of 200 launches"
)
DENSE_SOURCE = (
    "ROCm/rocm-libraries 65d3e7a, rocke, attention_thread_block_mapping_case_study.md, section 6.3: TCC_HIT over all, "
    "median of 4 dispatches under rocprofv3, in whole percent"
)
H200_SOURCE = "Nsight Compute 2025.3 on one NVIDIA H200, caches flushed before each launch"
PAPER_SIZES = {  # our name of a size: the logs' name
    "black_scholes": {"n_assets": "n_assets", "BLOCK_SIZE": "BLOCK_SIZE"},
    "fdtd_2d": {name: name for name in ("Nx", "Ny", "BLOCK_SIZE_X", "BLOCK_SIZE_Y")},
    "fused_elementwise": {"n_elements": "n_elements", "BLOCK_SIZE": "BLOCK_SIZE"},
    "gemm_streamk": {
        **{name: name for name in ("M", "N", "K", "GROUP_M")},
        **{f"BLOCK_SIZE_{axis}": f"BLOCK_{axis}" for axis in "MNK"},
        "PROGRAMS": "NUM_SMS",
    },
    "layer_norm": {"M": "M", "N": "N"},
    "smith_waterman": {name: name for name in ("M", "N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")},
    "softmax": {"M": "rows", "N": "cols"},
    "spmv": {"M": "M", "N": "N", "BLOCK_SIZE": "BLOCK_SIZE"},
    "stencil_2d": {name: name for name in ("M", "N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")},
    "transpose": {name: name for name in ("M", "N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")},
}
DENSE_SIZES = ("B", "H", "HKV", "S", "D", "CAUSAL")
H200_SIZES = ("M", "N", "K", "H", "S", "D", "BM", "BN", "BK", "BQ")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured number."""

    id: str  # unique over all rows
    gpu: str  # ``kernel`` as `swizzle_benchmarks.validation.workloads.from_row` knows it
    kernel: str
    problem: Mapping[str, int] = field(hash=False)  # sizes of the kernel
    order: str  # name of the order; with ``mapping`` empty, one of `swizzle_benchmarks.validation.workloads.orders`
    mapping: str = ""  # the order as text: a formula of `workloads.formulas`, or a swizzle of the closed language
    quantity: str  # A key of `swizzle_benchmarks.validation.quantities.QUANTITIES`
    unit: str
    measured: float
    low: float  # what repetitions or the source's range give; equal to ``measured`` where there is none
    high: float
    baseline: float | None = None  # the same quantity of the launch order, from the same log
    # A (three or more agreeing points) to D (points disagree), C for a single one; X for an order that is no
    # permutation
    trust: str = "C"
    bijective: bool = True
    # registers, shared memory and threads of a workgroup, where measured
    resources: Mapping[str, int] = field(default_factory=dict, hash=False)
    source: str
    note: str = ""

    @property
    def workload(self) -> str:
        """Kernel and sizes on a GPU: rows of one workload differ in order alone."""
        sizes = "x".join(str(value) for value in self.problem.values())
        return f"{self.gpu}:{self.kernel}:{sizes}"

    @property
    def table(self) -> str:
        """The table that the row came from: paper, published, shapes, dense, h200 or contributed."""
        return self.id.split("/", 1)[0]


def all_rows() -> list[Row]:
    """Every row, in the order of the tables."""
    found = [*paper_rows(), *published_rows(), *shape_rows(), *dense_rows(), *h200_rows(), *contributed_rows()]
    seen: set[str] = set()
    for row in found:
        if row.id in seen:
            raise contributed.ContributionError(f"row {row.id} is there twice: an id is unique")
        seen.add(row.id)
    return found


def paper_rows() -> Iterator[Row]:
    """L2 hit rates of the paper's kernels on MI300X."""
    for line in _lines("mi300x_swizzleperf.csv"):
        kernel = "gemm_streamk" if line["kernel"] == "gemm" else line["kernel"]
        measured = json.loads(line["problem"])
        problem = {ours: measured[theirs] for ours, theirs in PAPER_SIZES[kernel].items()}
        if kernel == "spmv":
            problem["NNZ_PER_ROW"] = round(measured["density"] * measured["N"])
        yield Row(
            id=f"paper/{line['formula_id']}",
            gpu="mi300x",
            kernel=kernel,
            problem=problem,
            order=line["formula_id"].split(":")[1],
            mapping=line["mapping"],
            quantity="l2_hit_pct",
            unit="%",
            measured=float(line["l2_pct"]),
            low=float(line["l2_min"]),
            high=float(line["l2_max"]),
            baseline=float(line["l2_pct"]) - float(line["delta_pp"]),
            trust=line["trust"],
            bijective=line["bijective"] == "True",
            source=PAPER_SOURCE,
            note=line["description"],
        )


def published_rows() -> Iterator[Row]:
    """Published counters of MI300X and MI355X."""
    for line in [*_lines("mi300x_published.csv"), *_lines("mi300x_published_more.csv")]:
        low, high = published.value_range(line["value"])
        case, quantity = published.CASES[line["id"]], published.QUANTITY[line["quantity"]]
        yield Row(
            id=f"published/{line['id']}:{quantity}",
            gpu=line["gpu"].lower(),
            kernel=case.kernel,
            problem=case.problem,
            order=case.order,
            quantity=quantity,
            unit=published.UNIT[line["quantity"]],
            measured=(low + high) / 2,
            low=low,
            high=high,
            source=line["source"],
            note=line["note"],
        )


def shape_rows() -> Iterator[Row]:
    """L2 misses of one GEMM on MI355X at 37 shapes, a workgroup a tile and persistent."""
    for line in _lines("mi355x_gemm_shapes.csv"):
        m, n, k = (int(line[name]) for name in "MNK")
        for column, case in published.shapes(m, n, k).items():
            measured = float(line[column])
            yield Row(
                id=f"shapes/{column}-{m}x{n}x{k}:l2_misses",
                gpu="mi355x",
                kernel=case.kernel,
                problem=case.problem,
                order=case.order,
                quantity="l2_misses",
                unit="requests",
                measured=measured,
                low=measured,
                high=measured,
                source=SHAPES_SOURCE,
            )


def dense_rows() -> Iterator[Row]:
    """L2 hit rates of AMD's dense attention under its orders and grids, on MI300X and MI355X."""
    lines = _lines("attention_orders.csv")
    problems = [{name: int(line[name]) for name in DENSE_SIZES} | {"BM": 256, "BN": 64} for line in lines]
    launched: dict[tuple[str, str], float] = {}
    for line, problem in zip(lines, problems, strict=True):  # the launch order comes before the others
        gpu, order, measured = line["gpu"].lower(), line["order"], float(line["l2_hit_pct"])
        sizes = "x".join(str(value) for value in problem.values())
        if order == "launched qb_minor":
            launched[gpu, sizes] = measured
        yield Row(
            id=f"dense/{gpu}-{sizes}:{order}:l2_hit_pct",
            gpu=gpu,
            kernel="attention_dense",
            problem=problem,
            order=order,
            quantity="l2_hit_pct",
            unit="%",
            measured=measured,
            low=measured - 0.5,
            high=measured + 0.5,
            baseline=launched[gpu, sizes],
            source=DENSE_SOURCE,
        )


def h200_rows() -> Iterator[Row]:
    """Counters of Triton kernels on one H200, four quantities a launch."""
    for line in _lines("h200_calibration.csv"):
        problem = {name: int(float(line[name])) for name in H200_SIZES if line[name]}
        sizes = "x".join(str(value) for value in problem.values())
        common: dict[str, Any] = {
            "gpu": "h200",
            "kernel": f"h200_{line['kernel']}",
            "problem": problem,
            "order": line["order"],
            "resources": {
                "registers": int(line["registers_per_thread"]),
                "shared_bytes": int(line["smem_per_block"]),
                "workgroups_per_cu": min(int(line[f"occ_limit_{what}"]) for what in ("regs", "smem", "warps")),
            },
            "source": H200_SOURCE,
        }
        for quantity, unit, value in _h200_values(line):
            name = f"h200/{line['kernel']}-{sizes}:{line['order']}:{quantity}"
            sure = repeatability.trust(common["kernel"], problem, line["order"], quantity, value)
            yield Row(
                id=name, quantity=quantity, unit=unit, measured=value, low=value, high=value, trust=sure, **common
            )


def _h200_values(line: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    yield "dram_read_bytes", "B", float(line["dram_read_bytes"])
    yield "dram_write_bytes", "B", float(line["dram_write_bytes"])
    hits, lookups = (float(line[f"l2_read_sectors_from_l1{end}"]) for end in ("_hit", ""))
    yield "l2_read_hit_pct", "%", 100 * hits / lookups
    yield "l1_hit_pct", "%", 100 * float(line["l1_load_sectors_hit"]) / float(line["l1_load_sectors"])
    yield "time_us", "us", float(line["ncu_time_ns"]) / 1e3


def contributed_rows() -> Iterator[Row]:
    """Rows that others have measured, see the fidelity page for the format."""
    for line in contributed.read(DATA / "contributed.csv"):
        yield Row(**line)


def _lines(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


QUICK = (
    "paper/fused_elementwise@64:",
    "paper/black_scholes@256:",
    "paper/smith_waterman@128x128:baseline",
    "paper/softmax@8192:chunk",
    "paper/softmax@8192:double_low3",
    "paper/layer_norm@8192:corner64",
    "paper/transpose@256x256:",
    "paper/fdtd_2d@128x128:fdx",
    "published/gluon-old",
    "h200/gemm-4096x4096x4096x128x256x64:row:",
    "h200/gemm-4096x4096x4096x128x256x64:grp8:",
    "h200/gemm-4096x4096x4096x128x256x64:scatter:",
)


def quick_rows(rows: Sequence[Row]) -> list[Row]:
    """Those of the rows that a few seconds suffice for."""
    return [row for row in rows if row.id.startswith(QUICK)]


def measured_speedups() -> dict[str, float]:
    """Speedup over the launch order by id of a row, of the paper's logs."""
    with (DATA / "mi300x_swizzleperf.csv").open(newline="", encoding="utf-8") as lines:
        return {f"paper/{line['formula_id']}": float(line["speedup"]) for line in csv.DictReader(lines)}
