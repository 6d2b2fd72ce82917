"""Tables of the documentation that the product's own lists give: families, and codes of findings."""

from __future__ import annotations

from swizzle_sim.language.families import FAMILIES, Family
from swizzle_sim.testing.codes import RULES

_HEAD = """\
# Families

<!-- Generated: python -m swizzle_benchmarks.evidence.docs.regenerate -->

A spec names families, joined by `+`: placements first, one order last, as in `contiguous+group_m(size=8)`. A
placement maps `pid` to `pid` and works on any grid. An order reads `pid` as a rank, assigns `pid_m, pid_n`, and needs
a grid with two tile axes; a 3-D order assigns `pid_x, pid_y, pid_z` and needs a launch of three axes. For attention the
rows are query blocks and the columns heads. *Bijective where* is exact: there and nowhere else, on grids with the axes.

| family | kind | parameters (default, range) | bijective where | what it does | source |
| --- | --- | --- | --- | --- | --- |
"""


def families_table() -> str:
    """Text of ``docs/families.md``."""
    return _HEAD + "".join(_row(one) for one in FAMILIES.values())


def _row(one: Family) -> str:
    parameters = "<br>".join(
        f"`{key}`: {rule.doc} ({rule.default}, {rule.low} to {rule.high})" for key, rule in one.parameters.items()
    )
    kind = {0: "placement", 2: "order", 3: "order, 3-D"}[one.axes]
    where = one.condition if one.condition == "always" else f"`{one.condition}`"
    return f"| `{one.name}` | {kind} | {parameters} | {where} | {one.summary} | {one.source} |\n"


def codes_table() -> str:
    """Table of the codes, for the documentation."""
    rows = [f"| {rule.code} | {rule.name} | {rule.meaning} |" for rule in RULES]
    return "\n".join(["| code | name | |", "| --- | --- | --- |", *rows])
