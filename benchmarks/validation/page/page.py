"""The text of the fidelity page: targets, variants side by side, the split, ranks, and every row, worst first."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from ..contributed import COLUMNS, NEEDED
from ..predict import Prediction
from ..quantities import QUANTITIES
from ..rows import DATA
from ..split import half_of
from ..statistics import baselines_of, summarise
from .choices import choices_section
from .ranks import believe_section, ranks_section
from .repeatability import again_section
from .split import split_section
from .tables import SUMMARY, figure, summary_cells, table
from .targets import targets_section

STANDINGS = ("shown", "likely", "not known")
FAR_POINTS, FAR_PCT = 5.0, 15.0
WHY = f"""\
Kernels with rows that are over {FAR_POINTS:g} points or {FAR_PCT:g} % off, and why. *Shown*: a measurement or an
ablation says so, in the decision that is named or in the words. *Likely*: nothing contradicts it, nothing proves it.

"""


@cache
def explanations() -> dict[tuple[str, str], tuple[str, str]]:
    """Standing, one of `STANDINGS`, and words of each (GPU, kernel) of ``data/explanations.csv``."""
    with (DATA / "explanations.csv").open(encoding="utf-8", newline="") as file:
        return {(line["gpu"], line["kernel"]): (line["standing"], line["explanation"]) for line in csv.DictReader(file)}


def is_far(one: Prediction) -> bool:
    """Whether a row is off by more than can be let pass without an explanation."""
    return abs(one.error or 0.0) > (FAR_PCT if QUANTITIES[one.row.quantity].relative else FAR_POINTS)


def why_section(model: Sequence[Prediction]) -> str:
    """One line for each kernel of a GPU with rows that are far off."""
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for one in model:
        groups.setdefault((one.row.gpu, one.row.kernel), []).append(one)
    lines = []
    for (gpu, kernel), rows in groups.items():
        far = [one for one in rows if is_far(one)]
        if far:
            standing, words = explanations().get((gpu, kernel), ("not known", ""))
            lines.append([gpu, kernel, f"{len(far)} of {len(rows)}", _worst(far), standing, words])
    return WHY + table(["GPU", "kernel", "rows", "worst of each quantity", "standing", "explanation"], lines)


def _worst(far: Sequence[Prediction]) -> str:
    worst: dict[str, float] = {}
    for one in far:
        error = one.error or 0.0
        if abs(error) > abs(worst.get(one.row.quantity, 0.0)):
            worst[one.row.quantity] = error
    units = {name: "%" if QUANTITIES[name].relative else "points" for name in worst}
    return ", ".join(f"{name} {error:+.0f} {units[name]}" for name, error in worst.items())


CONTRIBUTE = """\
## Contribute a row

On a node with a MI300X or its kin, or with an NVIDIA GPU, any kernel of `swizzle-sim kernels` under any swizzle:

    swizzle-sim bundle gemm M=8192 --swizzle contiguous --swizzle 'group_m(size=8)' --gpu mi300x -o mine
    python mine/confirm.py                     # there: needs the driver, PyTorch, Triton, and rocprofv3 or ncu
    python -m swizzle_benchmarks.validation.contribute mine

The kernels of the H200 table under the orders of that table, or others, on an NVIDIA GPU:

    python -m swizzle_benchmarks.lab counters --help

By hand, with any profiler, such as

    rocprofv3 --pmc TCC_HIT_sum TCC_MISS_sum TCC_EA0_RDREQ_sum --kernel-include-regex NAME \\
        -d DIR -o run --output-format csv -- COMMAND

a CSV with the columns

    {columns}

`contribute` checks every row and takes all of a file or none of it. A row whose {needed} is empty is refused, with the
field named: nobody could measure it again. So is one of a GPU or kernel that is not known here, or whose order is not
what it says. `kernel` and `problem` (JSON, integers by size name) are those of `swizzle-sim kernels`, or of a kernel
named in the tables above. `mapping` is the order: a swizzle in the closed language (docs/language.md), or a formula,
`def f(pid, n, X=8)` over a one-dimensional grid or `def f(pid, nm, nn, X=8)` over tiles, assignments of integer
arithmetic and one return. Left empty, `order` names it: row, col, grp8, scatter and so on. `bijective` is True or
False. `quantity` is one of {quantities}. On AMD the L2 hit rate is 100 TCC_HIT_sum / (TCC_HIT_sum + TCC_MISS_sum),
both from one pass. `low`, `high`, `baseline` (the same quantity of the launch order, in the same session) and `note`
may be empty. `resources` (JSON: registers, shared_bytes) is what a workgroup of the compiled kernel took; without it
those of our own compile for AMD are used.
"""


def contribute_section() -> str:
    """Text of the section."""
    return CONTRIBUTE.format(columns=", ".join(COLUMNS), needed=", ".join(NEEDED), quantities=", ".join(QUANTITIES))


SHOWN = ("l2_hit_pct", "l2_read_misses", "l2_hits", "l2_misses", "dram_read_bytes", "time_us", "throughput_tflops")
INTRO = """\
# Fidelity: the model against real counters

Generated by `make fidelity` (`python -m swizzle_benchmarks.validation`); `fidelity.csv` beside this page holds every
figure of it. Measured values are counters of real hardware, see `benchmarks/validation/data/`; predicted values are
simulated, with one set of constants per GPU, those of `docs/gpus.md`. What a kernel is described by (tiles, registers,
loads in flight) is its own; for the H200's stencils it is that of each order's compiled code. Errors are predicted
minus measured: in points for rates, in percent of the measured value for the rest. Sensitivity to unpublished
constants is another question: `swizzle-sim score --uncertainty`. Targets, repeated measurements, both halves, ranks
and every row are on [a page of tables](fidelity-tables.md).

Registers and shared memory come from our own compile, as a user's do, for the kernels of the suite on MI300X; of the
H200's kernels they are what Nsight Compute counted, and of MI355X's what was published, since their sources are not
here. `python -m swizzle_benchmarks.validation.suite_path` predicts 24 H200 launches from source and GPU name alone.

"""
TABLES = """\
# Fidelity: the tables

Generated with [the page](fidelity.md) that they are behind, which says how to read them.

"""
READING = """\
Trust A is three or more agreeing measurements (on the H200 within 5 %, or 1 point), B two or a single clean one, C
one, D points that disagree with each other, X an order that is no permutation: its kernel computed some tiles many
times.

Orders: `row` and `col` go through tiles in rows or columns, `grp8` in groups of 8 rows, `band8` deals eight bands of
the grid out in turn, `band8grp4` both, `scatter` multiplies by a large odd number, `contiguous` gives each XCD
neighbouring workgroups, `chunked64` 64 at a time. `baseline` and `identity` are the launch order; `rm_chunk` and its
like are formulas of the paper's logs, in the column `mapping` of `benchmarks/validation/data/mi300x_swizzleperf.csv`.

"""
SUMMARIES: tuple[tuple[str, Callable[[Prediction], str]], ...] = (
    ("By GPU and quantity", lambda one: f"{one.row.gpu} | {one.row.quantity}"),
    ("By kernel and quantity", lambda one: f"{one.row.kernel} | {one.row.quantity}"),
)


def page(predictions: Sequence[Prediction]) -> str:
    """The page that is read: what to believe, what choosing by the model costs, and why rows disagree."""
    variants = list(dict.fromkeys(one.variant for one in predictions))
    model = [one for one in predictions if one.variant == variants[0]]
    parts = [INTRO, "## What to believe\n", believe_section(model)]
    parts += ["## What choosing by it costs\n", choices_section(predictions, variants)]
    parts += ["## How to read the tables\n", READING, "## Why rows disagree\n", why_section(model)]
    return "\n".join([*parts, contribute_section()])


def tables_page(predictions: Sequence[Prediction], pictures: Mapping[str, Sequence[str]]) -> str:
    """The long tables behind the page, down to every row."""
    variants = list(dict.fromkeys(one.variant for one in predictions))
    model = [one for one in predictions if one.variant == variants[0]]
    parts = [TABLES, "## Targets\n", targets_section(predictions, variants)]
    repeated = again_section(model)
    if repeated:
        parts += ["## The H200 against itself\n", repeated]
    parts += ["## Fit half and held-out half\n", split_section(model)]
    parts += ["## Ranks within each workload\n", ranks_section(predictions, variants)]
    for what, paths in pictures.items():
        parts += [f"## {what}\n", *(f"![{what}]({path})\n" for path in paths)]
    for title, key in SUMMARIES:
        parts += [f"## {title}\n", _summaries(predictions, variants, key)]
    for quantity in SHOWN:
        rows = [one for one in predictions if one.row.quantity == quantity]
        if rows:
            parts += [f"## Rows: {quantity} [{QUANTITIES[quantity].unit}]\n", _rows(rows, variants)]
    return "\n".join([*parts, _cut(model)])


def _summaries(predictions: Sequence[Prediction], variants: Sequence[str], key: Callable[[Prediction], str]) -> str:
    lines = []
    for name in dict.fromkeys(key(one) for one in predictions):
        for variant in variants:
            rows = [one for one in predictions if key(one) == name and one.variant == variant]
            found = summarise(rows, baselines_of(rows))
            if found:
                lines.append([*name.split(" | "), variant, *summary_cells(found)])
    return table([*("of", "quantity", "variant"), *SUMMARY], lines)


def _rows(predictions: Sequence[Prediction], variants: Sequence[str]) -> str:
    """Rows of one quantity, worst error of the first variant first."""
    by_row: dict[str, dict[str, Prediction]] = {}
    for one in predictions:
        by_row.setdefault(one.row.id, {})[one.variant] = one
    ordered = sorted(by_row.values(), key=lambda line: -abs(line[variants[0]].error or 0.0))
    lines = []
    for line in ordered:
        row, error = line[variants[0]].row, line[variants[0]].error
        span = f" ({figure(row.low)} to {figure(row.high)})" if row.low < row.high else ""
        about = [f"`{row.id}`", row.trust, half_of(row)]
        values = [figure(line[name].value) if name in line else "-" for name in variants]
        lines.append([*about, figure(row.measured) + span, "-" if error is None else f"{error:+.1f}", *values])
    return table(["row", "trust", "half", "measured", f"error of {variants[0]}", *variants], lines)


def _cut(model: Iterable[Prediction]) -> str:
    notes = {one.row.kernel: str(one.counts["cut"]) for one in model if one.counts.get("cut")}
    return "".join(f"`{kernel}` is {note}.\n" for kernel, note in notes.items())
