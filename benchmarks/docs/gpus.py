"""The shipped GPU descriptions as one Markdown page, with the source of every number."""

from __future__ import annotations

from typing import Any

from xcd_model import Gpu, gpu, gpu_modes, gpu_names
from xcd_model.spec.facts import Fact
from xcd_model.spec.load import load_modes, shipped

from ..fidelity.page.tables import table

_MARK = {"documented": "", "measured": " (m)", "fitted": " (f)", "assumed": " (a)"}
_INTRO = """\
# GPU descriptions

Generated from `xcd_model/spec/gpus/*.toml` by `python -m swizzle_benchmarks.docs.regenerate`; a test compares the two.
An unmarked value is documented; (m) is measured; (f) is fitted: chosen by how well the model then meets measured rows,
which the column *status* names (ids of `docs/fidelity.csv`, or tables under `benchmarks/fidelity`); (a) is assumed, and
its source gives the reason.
The energy rates are ranges, written value [low to high]; only differences between candidates on one GPU mean anything.
"""
_MODES = """\
One row is one device of a chip in that mode, the other devices idle. In NPS1 it reaches the whole Infinity Cache and
HBM bandwidth; with more NUMA domains it stays in its own. `--gpu` takes the name in the first column.
"""


def catalogue_markdown() -> str:
    """Build the text of ``docs/gpus.md``: all GPUs side by side, then the sources of each.

    Returns
    -------
    text : str
    """
    gpus = [gpu(name) for name in gpu_names()]
    parts = [_INTRO, "## Side by side\n", _comparison(gpus), "## Partition and memory modes\n", _MODES, _modes(gpus)]
    for each in gpus:
        facts = {**each.facts, **load_modes(shipped(each.name)).facts}
        parts += [f"## {each.title}\n", _summary(each, facts), _sources(facts)]
    return "\n".join(parts)


def _comparison(gpus: list[Gpu]) -> str:
    keys = list(dict.fromkeys(key for each in gpus for key in each.facts))
    rows = [[f"`{key}`", *(_cell(each, key) for each in gpus)] for key in keys]
    return table(["fact", *(each.name for each in gpus)], rows)


def _summary(each: Gpu, facts: dict[str, Fact]) -> str:
    counts = [f"{sum(fact.status == status for fact in facts.values())} {status}" for status in _MARK]
    return f"`{each.name}`: {each.arch}, {each.partition}/{each.memory_mode}, {each.cus} CUs; {', '.join(counts)}.\n"


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
