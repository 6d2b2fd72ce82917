"""``pages/kernels-tried.md``: the results of the last run, one row a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import PAGES
from .sources import HERE, KERNELS, SOURCES

RESULTS = HERE / "results.json"
PAGE = PAGES / "kernels-tried.md"
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

| kernel | package | captured | s | best | s | rewritten | s | searched on |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

Seconds are of the whole command, start and compile included, on 2 shared cores.
"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Text of the page."""
    cells = [_cells(name, rows.get(name, {})) for name in KERNELS]
    done = {step: sum(_is_done(row, step) for row in rows.values()) for step in ("capture", "optimize", "rewrite")}
    return TEXT.format(
        captured=done["capture"],
        searched=done["optimize"],
        rewritten=done["rewrite"],
        total=len(KERNELS),
        rows="\n".join(f"| {' | '.join(row)} |" for row in cells),
    )


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
