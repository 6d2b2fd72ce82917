"""``pages/kernels-tried.md``: the results of the last run, one row a kernel."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from .. import PAGES
from .sources import HERE, KERNELS, SOURCES

RESULTS = HERE / "results.json"
PAGE = PAGES / "kernels-tried.md"
SPELLINGS = HERE.parents[1] / "validation" / "data" / "spellings_h200.csv"
TEXT = """# Published kernels tried

Kernels that nobody of this project wrote, each loaded from its untouched file with no torch and no GPU, as
`benchmarks/evidence/kernels_tried/declarations` launches it. *Captured*: workgroups of the trace, sampled ones
compared with real interpretation line by line. *Best*: what `optimize` ranks first on MI300X in a minute of search or
less, before its compile: the L2 hit rate in launch order and with it, the predicted speedup (by which orders are not
ranked there), and how many candidates were tried, 2 where no order can gain hits. *Rewritten*: a remap was put into
the file (of the program's id, or of a persistent loop's tile), both files were interpreted side by side at small sizes
with all outputs equal bit for bit, and compiled.
Written by `python -m swizzle_benchmarks.evidence.kernels_tried FOLDER`, then `--page FOLDER`; do not edit.

**{captured} of {total} are captured, {searched} searched, {rewritten} rewritten and verified.**

What a rewrite costs by its spelling alone: {spelled} of these kernels ran on an H200 as they are and rewritten by
orders that leave every program where it is (`benchmarks/validation/data/spellings_h200.csv`). They took {least:.3f} to
{most:.3f} of the kernel's time, at most {above:.1f} % more than predicted from the compiled code.

| kernel | package | captured | s | best | s | rewritten | s | searched on |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

Seconds are of the whole command, start and compile included, on 2 shared cores.
"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Text of the page."""
    cells = [_cells(name, rows.get(name, {})) for name in KERNELS]
    rows_of = [(one["kernel"], float(one["predicted_ratio"]), float(one["measured_ratio"])) for one in _spellings()]
    done = {step: sum(_is_done(row, step) for row in rows.values()) for step in ("capture", "optimize", "rewrite")}
    return TEXT.format(
        captured=done["capture"],
        searched=done["optimize"],
        rewritten=done["rewrite"],
        total=len(KERNELS),
        spelled=len({kernel for kernel, *_ in rows_of}),
        least=min(measured for *_, measured in rows_of),
        most=max(measured for *_, measured in rows_of),
        above=max(100 * (measured / predicted - 1) for _, predicted, measured in rows_of),
        rows="\n".join(f"| {' | '.join(row)} |" for row in cells),
    )


def _spellings() -> list[dict[str, str]]:
    with SPELLINGS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _is_done(row: Mapping[str, Any], step: str) -> bool:
    return step in row and "refused" not in row[step]


def _cells(name: str, row: Mapping[str, Any]) -> list[str]:
    kernel, found = KERNELS[name], [f"`{KERNELS[name]['function']}`", ""]
    found[1] = f"{kernel['source']} {SOURCES[kernel['source']].short}"
    for step, words in (("capture", _captured), ("optimize", _best), ("rewrite", _rewritten)):
        about = row.get(step)
        if about is None:
            found += ["not tried", ""]
            continue
        refused = about.get("refused")
        found += [f"no: {refused}".replace("|", "\\|") if refused else words(about), str(about["seconds"])]
    return [*found, row.get("optimize", {}).get("on", "")]


def _captured(about: Mapping[str, Any]) -> str:
    return f"{about['workgroups']} workgroups"


def _best(about: Mapping[str, Any]) -> str:
    before, after = about["hits"]
    best = f"`{about['best']}` {before:.1f} to {after:.1f} %, {about['speedup']:.3f}; {about['tried']} tried"
    return best if after > before else f"no hits gained: {best}"


def _rewritten(about: Mapping[str, Any]) -> str:
    equal = f"equal at {about['sizes']} small sizes" if about["sizes"] else "a sample of its programs equal"
    return f"{about['remapped']}, {equal}, {about['moved']} programs moved"
