"""``pages/remaps.md``: the corpus with its verdicts; no number in it is written by hand."""

from __future__ import annotations

from .. import PAGES
from .corpus import EVERY, PUBLIC, WRONG
from .judge import Judged, judge
from .printed import PRINTED

_HEAD = """\
# Remaps in public code, checked

<!-- Generated: python -m swizzle_benchmarks.evidence.docs.regenerate --all -->

Formulas of public kernels, of the SwizzlePerf paper and some that are wrong in a realistic way, re-written in
[the language](../../../docs/language.md) (formulas carry over, code does not; what is wrong is wrong in the formula as
published at the time). *No hint* is what `swizzle-sim check` says of the text alone: **proved** for every grid, or
**refuted** with the smallest launch that fails of those tried. *Where it is right* is a condition that suffices; *it
is* says whether that is proved or only tested. Nothing was run on a GPU.

"""


def main() -> None:
    """Write the page."""
    path = PAGES / "remaps.md"
    path.write_text(remaps_page(), encoding="utf-8")
    print("written:", path)


def remaps_page() -> str:
    """Text of the page."""
    parts = [_HEAD]
    for title, remaps in (
        ("Public code", PUBLIC),
        ("Wrong in a realistic way", WRONG),
        ("The paper's figures", PRINTED),
    ):
        found = [judge(remap) for remap in remaps]
        parts += [
            f"## {title}\n\n",
            "| remap | source | no hint | where it is right | it is |\n| --- | --- | --- | --- | --- |\n",
        ]
        parts += [_row(one) for one in found]
        parts.append("\n")
        parts += [_text(one) for one in found]
    return "".join(parts).rstrip("\n") + "\n"


def _row(one: Judged) -> str:
    said = f"**{one.outcome.status}**"
    if one.outcome.point:
        xcds = one.outcome.point.num_xcds
        said += f" at {one.outcome.point.grid}, {xcds} XCD{'s' * (xcds != 1)}"
    elif one.outcome.covers:
        said += f", {one.outcome.covers}"
    right = one.remap.right
    where = right if right == EVERY else f"`{right}`" if right else "no simple condition is known"
    state = one.within.status if one.within else one.outcome.status if right == EVERY else "-"
    return f"| {one.remap.name} | {one.remap.source} | {said} | {where} | {state} |\n"


def _text(one: Judged) -> str:
    wrong = one.outcome.counterexample
    said = f"{wrong.message}.\n\n" if wrong else ""
    if one.remap.fails:
        sides, xcds, computed = one.remap.fails
        total = 1
        for side in sides:
            total *= side
        shape = " x ".join(str(side) for side in sides)
        said += f"At {shape} tiles and {xcds} XCDs it computes {computed} of {total}.\n\n"
    return f"### {one.remap.name}\n\n```python\n{one.remap.text.strip()}\n```\n\n{said}"
