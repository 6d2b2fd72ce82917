"""What the page says of figure 16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.drawing import NO_RUN, one_line
from benchmarks.paper.wording import listed, pct, table


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    names = list(dict.fromkeys(model for row in data["kernels"] for model in row["models"]))
    rows = [
        [one_line(row["kernel"]), row["words"], *(pct(row[key]) for key in ("launched", "families", "search", "bound")),
         *(_cell(row["models"].get(model)) for model in names)]
        for row in data["kernels"]
    ]  # fmt: skip
    heads = ("kernel", "the paper (no values printed)", "as launched", "best family", "search", "bound", *names)
    there = [found for row in data["kernels"] for found in row["models"].values() if found]
    head = (
        f"{len(there)} recorded runs of models, their best scored again here."
        if there
        else f"{NO_RUN.capitalize()}: of the paper's models ({listed(names)}) and of all others, on these kernels."
    )
    return "\n\n".join(
        [head + _replies(data["replies"]), table(heads, rows, left=2), "L2 hit rates in per cent, simulated."]
    )


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return NO_RUN
    return pct(found["score"]["l2_hit_rate"]) if found["score"] else "no bijection"


def _replies(replies: Mapping[str, Any] | None) -> str:
    if replies is None:
        return ""
    return (
        f" One recording of bare replies exists ({replies['model']}; `tests/agent/replies_smollm2.json`, made to test "
        f"the plumbing on a small GEMM): {replies['readable']} of its {replies['proposals']} proposals hold a "
        "readable swizzle."
    )
