"""The shipped GPU descriptions as one Markdown page, with the source of every number."""

from __future__ import annotations

from typing import Any

from swizzle_benchmarks.validation.page.tables import table
from xcd_model import Gpu, gpu, gpu_modes, gpu_names
from xcd_model.spec.facts import Fact
from xcd_model.spec.load import base_of, load_modes, shipped

_MARK = {"documented": "", "measured": " (m)", "fitted": " (f)", "assumed": " (a)"}
_INTRO = """\
# GPU descriptions

Generated from `xcd_model/spec/gpus/*.toml` by `python -m swizzle_benchmarks.evidence.docs.regenerate`; a test compares
the two. An unmarked value is documented; (m) is measured; (f) is fitted: chosen by how well the model then meets
measured rows, which the column *status* names (ids of `docs/fidelity.csv`, or tables under `benchmarks/validation`);
(a) is assumed, and
its source gives the reason.
Nothing was measured for this project on a GPU that is described upon another (column *upon*): what is measured of the
other, or fitted to it, is assumed of this one.
The energy rates are ranges, written value [low to high]; only differences between candidates on one GPU mean anything.
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
{count} facts on which they differ; masks of the set index stand with each GPU's sources:
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
    """Build the text of ``docs/gpus.md``: all GPUs at a glance, those of each maker side by side, then all sources.

    Returns
    -------
    text : str
    """
    gpus = [gpu(name) for name in gpu_names()]
    parts = [_INTRO, "## At a glance\n", _glance(gpus)]
    for vendor, prefix in VENDORS.items():
        parts += [f"## {vendor} side by side\n", *_comparison(vendor, [g for g in gpus if g.arch.startswith(prefix)])]
    parts += ["## Partition and memory modes\n", _MODES, _modes(gpus)]
    for each in gpus:
        facts = {**each.facts, **load_modes(shipped(each.name)).facts}
        below = gpu(base).facts if (base := base_of(each.name)) else {}
        own = {key: fact for key, fact in facts.items() if not _carried(fact, below.get(key))}
        parts += [f"## {each.title}\n", _summary(each, facts, len(facts) - len(own)), _sources(own)]
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
    same = [[f"`{key}`", _value(key, row[0]), _known_how(gpus, row)] for key, row in alike.items()]
    return [
        _DIFFER.format(count=len(rows)),
        table(["fact", *(each.name for each in gpus)], rows),
        _ALIKE.format(count=len(same), vendor=vendor),
        table(["fact", "value", "how it is known"], same),
    ]


def _known_how(gpus: list[Gpu], facts: list[Fact]) -> str:
    """Status of one fact over GPUs: ``measured: mi300x; assumed: the others``."""
    by_status: dict[str, list[str]] = {}
    for each, fact in zip(gpus, facts, strict=True):
        by_status.setdefault(fact.status, []).append(each.name)
    if len(by_status) == 1:
        return facts[0].status
    most = max(by_status, key=lambda status: len(by_status[status]))
    named = [f"{status}: {', '.join(by_status[status])}" for status in _MARK if status in by_status and status != most]
    return "; ".join([*named, f"{most}: the others"])


def _short(cell: str) -> str:
    """A cell of a side-by-side table: a list of numbers is not written out."""
    listed, _, mark = cell.rpartition(" (") if cell.endswith(")") else (cell, "", "")
    return f"{_LISTED}{' (' + mark if mark else ''}" if ", " in listed else cell


def _carried(fact: Fact, below: Fact | None) -> bool:
    """Whether a fact is the base's own, or taken from it."""
    return below is not None and (
        fact == below or fact.source.endswith(f", where it is {below.status}: {below.source}")
    )


def _summary(each: Gpu, facts: dict[str, Fact], carried: int) -> str:
    counts = [f"{sum(fact.status == status for fact in facts.values())} {status}" for status in _MARK]
    line = f"`{each.name}`: {each.arch}, {each.partition}/{each.memory_mode}, {each.cus} CUs; {', '.join(counts)}.\n"
    if not carried:
        return line
    base = gpu(base_of(each.name))
    same = " Documented facts stay so, as the architecture is the same." if base.arch == each.arch else ""
    return (
        f"{line}\nDescribed upon the {base.title} (`{base.name}`): {carried} facts are that one's, with its sources, "
        f"and assumed of this one where they are measured or fitted{'' if same else ' or documented'} there.{same}\n"
    )


def _modes(gpus: list[Gpu]) -> str:
    rows = []
    for chip in gpus:
        for pair in gpu_modes(chip.name):
            each = gpu(chip.name, partition=pair[0], memory_mode=pair[1])
            mall = (each.mall.size_bytes / 2**20, each.mall.latency_ns) if each.mall else (0, 0)
            hbm = (each.hbm.size_bytes / 2**30, each.hbm.bandwidth_gbps, each.hbm.latency_ns)
            figures = (chip.xcds // each.xcds, each.xcds, *mall, *hbm)
            rows.append([f"`{each.name}`", "/".join(pair), *(_number(round(figure, 1)) for figure in figures)])
    header = ["name", "mode", "devices", "XCDs each", "MALL [MiB]", "MALL [ns]", "HBM [GiB]", "HBM [GB/s]", "HBM [ns]"]
    return table(header, rows)


def _sources(facts: dict[str, Fact]) -> str:
    rows = [[f"`{key}`", _value(key, fact), _status(fact), fact.source] for key, fact in facts.items()]
    return table(["fact", "value", "status", "source"], rows)


def _status(fact: Fact) -> str:
    rows = ", ".join(f"`{one}`" for one in fact.fitted_to)
    return f"fitted to {rows}" if rows else fact.status


def _cell(each: Gpu, key: str) -> str:
    fact = each.facts.get(key)
    return f"{_value(key, fact)}{_MARK[fact.status]}" if fact else "-"


def _value(key: str, fact: Fact) -> str:
    if isinstance(fact.value, list):
        return ", ".join(hex(one) if key.endswith("index_rows") else _number(one) for one in fact.value)
    if key.endswith("coherence_bits"):
        return hex(fact.value)
    return _number(fact.value) + (f" [{_number(fact.low)} to {_number(fact.high)}]" if fact.low is not None else "")


def _number(value: Any) -> str:
    """Write a value with thousands apart and no idle decimals."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:_}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    print(catalogue_markdown(), end="")
