"""The shipped GPU descriptions as one Markdown page, with the source of every number."""

from __future__ import annotations

from typing import Any

from swizzle_benchmarks.validation.page.tables import table
from xcd_model import Gpu, gpu, gpu_modes, gpu_names
from xcd_model.spec.facts import Fact
from xcd_model.spec.load import base_of

_MARK = {"documented": "", "measured": " (m)", "fitted": " (f)", "assumed": " (a)"}
_INTRO = """\
# GPU descriptions

Generated from `xcd_model/spec/gpus/*.toml` by `python -m swizzle_benchmarks.evidence.docs.regenerate`. An unmarked
value is documented; (m) is measured; (f) is fitted: chosen by how well the model then meets measured rows; (a) is
assumed; (d) is known in ways that differ by GPU. `swizzle-sim gpus --json` has source and range of every value.
Nothing was measured for this project on a GPU that is described upon another (column *upon*): what is measured of the
other, or fitted to it, is assumed of this one.
"""
_FITTED = """\
Rows are ids of `benchmarks/evidence/pages/fidelity.csv`, or tables under `benchmarks/validation`.
"""
_MODES = """\
One row is one device of a chip in that mode, the other devices idle. In NPS1 it reaches the whole Infinity Cache and
HBM bandwidth; with more NUMA domains it stays in its own. `--gpu` takes the name in the first column. A device with one
XCD (CPX) has one L2: no remap over XCDs changes anything there, only the order of the tiles in that L2.
"""
_ALIKE = """\
{count} facts that are the same in all {vendor} descriptions:
"""
_DIFFER = """\
{count} facts on which they differ; a list is in the TOML file:
"""
_LISTED = "(a list)"
VENDORS = {"AMD": "gfx", "NVIDIA": "sm_"}
COLUMNS = {  # of the first table
    "GPU": "title",
    "XCDs": "xcds",
    "CUs or SMs a XCD": "cus_per_xcd",
    "clock [MHz]": "clock_mhz",
    "L2 [bytes]": "l2.size_bytes",
    "Infinity Cache [bytes]": "mall.size_bytes",
    "LDS a CU [bytes]": "limits.lds_bytes_per_cu",
    "HBM [GB/s]": "hbm.peak_bandwidth_gbps",
    "dense fp16 [TFLOPS]": "peak_tflops.fp16",
}


def catalogue_markdown() -> str:
    """Text of ``docs/gpus.md``: all GPUs at a glance, those of each maker side by side, modes and fitted constants."""
    gpus = [gpu(name) for name in gpu_names()]
    parts = [_INTRO, "## At a glance\n", _glance(gpus)]
    for vendor, prefix in VENDORS.items():
        parts += [f"## {vendor} side by side\n", *_comparison(vendor, [g for g in gpus if g.arch.startswith(prefix)])]
    parts += ["## Partition and memory modes\n", _MODES, _modes(gpus)]
    parts += ["## Fitted constants\n", _FITTED, _fitted(gpus)]
    return "\n".join(parts)


def _glance(gpus: list[Gpu]) -> str:
    rows = []
    for each in gpus:
        cells = [_cell(each, key) if key != "title" else f"`{each.name}` {each.title}" for key in COLUMNS.values()]
        known = [str(sum(fact.status == status for fact in each.facts.values())) for status in _MARK]
        rows.append([*cells, base_of(each.name) or "-", *known])
    return table([*COLUMNS, "upon", *_MARK], rows)


def _comparison(vendor: str, gpus: list[Gpu]) -> list[str]:
    """Two tables: the facts that differ, with a column a GPU, and those that do not."""
    keys = list(dict.fromkeys(key for each in gpus for key in each.facts))
    found = {key: [each.facts.get(key) for each in gpus] for key in keys}
    alike = {key: row for key, row in found.items() if None not in row and len({str(fact.value) for fact in row}) == 1}
    rows = [[f"`{key}`", *(_short(_cell(each, key)) for each in gpus)] for key in keys if key not in alike]
    same: dict[str, list[str]] = {}
    for key, row in alike.items():
        part, _, name = key.rpartition(".")
        mark = _MARK[row[0].status] if len({fact.status for fact in row}) == 1 else " (d)"
        same.setdefault(part or "GPU", []).append(f"{name} {_short(_value(key, row[0]))}{mark}")
    return [
        _DIFFER.format(count=len(rows)),
        table(["fact", *(each.name for each in gpus)], rows),
        _ALIKE.format(count=len(alike), vendor=vendor),
        table(["of", "facts"], [[f"`{part}`", ", ".join(facts)] for part, facts in same.items()]),
    ]


def _short(cell: str) -> str:
    """A cell of a side-by-side table: a list of numbers is not written out."""
    listed, _, mark = cell.rpartition(" (") if cell.endswith(")") else (cell, "", "")
    return f"{_LISTED}{' (' + mark if mark else ''}" if ", " in listed else cell


def _modes(gpus: list[Gpu]) -> str:
    rows = []
    for chip in gpus:
        pairs = gpu_modes(chip.name)
        for pair in pairs if len(pairs) > 1 else ():
            each = gpu(chip.name, partition=pair[0], memory_mode=pair[1])
            mall = each.mall.size_bytes / 2**20 if each.mall else 0
            figures = (each.xcds, mall, each.hbm.size_bytes / 2**30, each.hbm.bandwidth_gbps)
            rows.append([f"`{each.name}`", *(_number(round(figure, 1)) for figure in figures)])
    header = ["name", "XCDs", "MALL [MiB]", "HBM [GiB]", "HBM [GB/s]"]
    return table(header, rows)


def _fitted(gpus: list[Gpu]) -> str:
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in gpus:
        for key, fact in each.facts.items():
            if fact.fitted_to:
                fitted = (f"`{key}`", _short(_value(key, fact)), ", ".join(f"`{row}`" for row in fact.fitted_to))
                found.setdefault(fitted, []).append(f"`{each.name}`")
    return table(
        ["fact", "value", "GPU", "rows"], [[*cells[:2], ", ".join(of), cells[2]] for cells, of in found.items()]
    )


def _cell(each: Gpu, key: str) -> str:
    fact = each.facts.get(key)
    return f"{_value(key, fact)}{_MARK[fact.status]}" if fact else "-"


def _value(key: str, fact: Fact) -> str:
    if isinstance(fact.value, list):
        return ", ".join(hex(one) if key.endswith("index_rows") else _number(one) for one in fact.value)
    if key.endswith("coherence_bits"):
        return hex(fact.value)
    return _number(fact.value)


def _number(value: Any) -> str:
    """Write a value with thousands apart and no idle decimals."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:_}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    print(catalogue_markdown(), end="")
