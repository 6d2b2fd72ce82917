"""The shipped GPU descriptions as one Markdown page, with the source of every number."""

from __future__ import annotations

from typing import Any

from xcd_model.gpu import Gpu, gpu, gpu_names

_MARK = {"documented": "", "measured": " (m)", "assumed": " (a)"}
_INTRO = """\
# GPU descriptions

Generated from `xcd_model/gpus/*.toml` by `python -m xcd_model.catalogue > docs/gpus.md`; a test compares the two.
An unmarked value is documented; (m) is measured; (a) is assumed, and its source says why.
"""


def catalogue_markdown() -> str:
    """Build the text of ``docs/gpus.md``: all GPUs side by side, then the sources of each.

    Returns
    -------
    text : str
    """
    gpus = [gpu(name) for name in gpu_names()]
    parts = [_INTRO, "## Side by side\n", _comparison(gpus)]
    for each in gpus:
        parts += [f"## {each.title}\n", _summary(each), _sources(each)]
    return "\n".join(parts)


def _comparison(gpus: list[Gpu]) -> str:
    keys = list(dict.fromkeys(key for each in gpus for key in each.facts))
    rows = [[f"`{key}`", *(_cell(each, key) for each in gpus)] for key in keys]
    return _table(["fact", *(each.name for each in gpus)], rows)


def _summary(each: Gpu) -> str:
    counts = [f"{_count(each, status)} {status}" for status in _MARK]
    return f"`{each.name}`: {each.arch}, {each.partition}/{each.memory_mode}, {each.cus} CUs; {', '.join(counts)}.\n"


def _sources(each: Gpu) -> str:
    rows = [[f"`{key}`", _number(fact.value), fact.status, fact.source] for key, fact in each.facts.items()]
    return _table(["fact", "value", "status", "source"], rows)


def _cell(each: Gpu, key: str) -> str:
    fact = each.facts.get(key)
    return f"{_number(fact.value)}{_MARK[fact.status]}" if fact else "-"


def _count(each: Gpu, status: str) -> int:
    return sum(fact.status == status for fact in each.facts.values())


def _number(value: Any) -> str:
    """Write a value with thousands apart and no idle decimals."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:_}" if isinstance(value, int) else str(value)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    print(catalogue_markdown(), end="")
