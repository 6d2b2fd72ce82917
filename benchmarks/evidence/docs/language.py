"""The generated parts of ``docs/language.md``: the allow-list as it is in `swizzle_sim.language.rules`."""

from __future__ import annotations

from swizzle_sim.language import rules

from .commands import with_bars

MEANS = {
    "program_id": "workgroup id along axis 0, 1 or 2 of the launch",
    "num_programs": "workgroups along axis 0, 1 or 2 of the launch",
    "cdiv": "quotient rounded up: (a + b - 1) // b",
    "min": "the smaller of two or more",
    "max": "the larger of two or more",
    "abs": "without its sign",
    "int": "the same value",
    "where": "`where(condition, a, b)`; both sides are evaluated, as a GPU does",
}


def allowed() -> str:
    """Tables of operators and calls."""
    operators = " ".join(f"`{op}`" for op in rules.BINARY_OPS.values())
    comparisons = " ".join(f"`{op}`" for op in rules.COMPARE_OPS.values())
    spellings: dict[str, list[str]] = {}
    for spelled, what in rules.FUNCTIONS.items():
        spellings.setdefault(what, []).append(f"`{spelled}`")
    rows = [
        ("operators", operators + " and unary `-` `~`", "signed 32-bit integers"),
        ("comparisons", comparisons + " `and` `or` `not`, `a if c else b`", "may be chained; both sides are evaluated"),
        *(("call", " ".join(spelled), MEANS[what]) for what, spelled in spellings.items()),
        ("call", f"`{rules.PAIR_FUNCTION}`", "quotient and remainder, assigned to two names"),
        ("loop", "`for` over " + " ".join(f"`{name}`" for name in rules.RANGES), "the step is a positive literal"),
    ]
    return _table(("kind", "spelled", "meaning"), rows)


def limits() -> str:
    """Table of the limits on one text."""
    rows = [
        ("text", f"{rules.MAX_TEXT_BYTES // 1024} KiB"),
        ("nodes of its syntax tree", f"{rules.MAX_NODES:,}"),
        ("nesting", f"{rules.MAX_DEPTH} levels"),
        ("loops in loops", str(rules.MAX_LOOPS)),
        ("a name", f"{rules.MAX_NAME_LENGTH} characters"),
        ("a value", f"{rules.INT32_MIN:,} to {rules.INT32_MAX:,}"),
    ]
    return _table(("of", "at most"), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(with_bars(cell) for cell in line) + " |" for line in lines)
